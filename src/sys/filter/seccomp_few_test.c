/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter/seccomp_few.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "t.h"

static const uint16_t allow[] = { SYS_write,	  SYS_exit_group, SYS_connect,	 SYS_close,
				  SYS_getsockopt, SYS_fstat,	  SYS_newfstatat };

static int tcp, udp, pair[2];

static void install(bool dials)
{
	static const uint16_t absent[] = { SYS_openat };
	struct seccomp_few few = { .allow = allow,
				   .nallow = ARRAY_LEN(allow),
				   .absent = absent,
				   .nabsent = ARRAY_LEN(absent),
				   .dials = dials };

	tcp = socket(AF_INET, SOCK_STREAM, 0);
	udp = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(tcp >= 0 && udp >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	CHECK(seccomp_few_install(&few) == 0);
}

static bool fails(long r, int err)
{
	return r < 0 && errno == err;
}

static struct sockaddr_in nowhere(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(9) };

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sa;
}

static void fast_open_fails(void)
{
	struct sockaddr_in sa = nowhere();
	struct iovec iov = { "x", 1 };
	struct msghdr m = {
		.msg_name = &sa, .msg_namelen = sizeof sa, .msg_iov = &iov, .msg_iovlen = 1
	};
	const long upper = 1l << 32; /* the kernel ignores the upper half of the flags */

	CHECK(fails(sendto(tcp, "x", 1, MSG_FASTOPEN, (void *)&sa, sizeof sa), EPERM));
	CHECK(fails(sendto(tcp, "x", 1, MSG_FASTOPEN | MSG_DONTWAIT, (void *)&sa, sizeof sa),
		    EPERM));
	CHECK(fails(sendmsg(tcp, &m, MSG_FASTOPEN), EPERM));
	CHECK(fails(syscall(SYS_sendto, tcp, "x", 1l, upper | MSG_FASTOPEN, &sa, sizeof sa),
		    EPERM));
	CHECK(fails(syscall(SYS_sendmsg, tcp, &m, upper | MSG_FASTOPEN), EPERM));
}

static void a_program_that_may_not_dial_gets_no_connection(void)
{
	struct sockaddr_in sa = nowhere();
	struct mmsghdr many = { 0 };

	install(false);
	CHECK(fails(socket(AF_INET, SOCK_STREAM, 0), EPERM));
	CHECK(fails(socket(AF_UNIX, SOCK_STREAM, 0), EPERM));
	CHECK(fails(connect(tcp, (void *)&sa, sizeof sa), EPERM)); /* though it is in the list */
	CHECK(fails(connect(udp, (void *)&sa, sizeof sa), EPERM));
	CHECK(fails(bind(tcp, (void *)&sa, sizeof sa), EPERM));
	CHECK(fails(listen(tcp, 1), EPERM));
	CHECK(fails(sendmmsg(udp, &many, 1, 0), EPERM));
	fast_open_fails();
}

static void a_program_that_may_not_dial_can_use_open_sockets(void)
{
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	install(false);
	CHECK(sendto(pair[0], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) == 1);
	CHECK(sendmsg(pair[0], &m, MSG_DONTWAIT | MSG_NOSIGNAL) == 1);
}

static void a_program_that_dials_has_tcp_and_udp_only(void)
{
	struct sockaddr_in sa = nowhere();
	int fd;

	install(true);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && socket(AF_INET6, SOCK_DGRAM, 0) >= 0);
	CHECK(connect(udp, (void *)&sa, sizeof sa) == 0);
	CHECK(fails(socket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT));
	CHECK(fails(socket(AF_NETLINK, SOCK_DGRAM, 0), EAFNOSUPPORT));
	CHECK(fails(socket(AF_INET, SOCK_RAW, 0), EPROTONOSUPPORT));
	fast_open_fails();
}

static void all_other_calls_fail(void)
{
	install(false);
	CHECK(fails(syscall(SYS_openat, -1, "/", 0), ENOENT));
	CHECK(fails(syscall(SYS_getppid), ENOSYS));
	CHECK(fails(syscall(SYS_accept4, tcp, NULL, NULL, 0), ENOSYS));
}

T_MAIN(T(a_program_that_may_not_dial_gets_no_connection),
       T(a_program_that_may_not_dial_can_use_open_sockets),
       T(a_program_that_dials_has_tcp_and_udp_only), T(all_other_calls_fail))
