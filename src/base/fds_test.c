/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fds.h"

#include <fcntl.h>

#include "base/lingering_fixture.h"

static void a_socket_that_lingers_is_closed_at_once(void)
{
	int fd = lingering(), number = fd;

	begin_now();
	fds_discard(&fd, 1);
	check_soon();
	CHECK(fd == FD_NONE && fcntl(number, F_GETFD) < 0 && close(reader) == 0);
	fd = lingering();
	begin_now();
	fds_close_sent(&fd);
	check_soon();
	CHECK(fd == FD_NONE);
}

static void its_data_still_arrives(void)
{
	static char data[65536];
	int fd = lingering();
	size_t got = 0;
	ssize_t n;

	fds_discard(&fd, 1);
	while ((n = read(reader, data, sizeof data)) > 0)
		got += (size_t)n;
	CHECK(n == 0 && got > sizeof data); /* a normal end, not a reset */
}

static void what_does_not_fit_is_closed_at_once(void)
{
	union fds_control ctl;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl };
	int sv[2], fds[FDS_MOST], got[2];

	m.msg_controllen = sizeof ctl;
	for (int i = 0; i < FDS_MOST - 1; i++)
		fds[i] = STDIN_FILENO;
	fds[FDS_MOST - 1] = lingering();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
	put_fds(sv[0], fds, FDS_MOST);
	CHECK(close(fds[FDS_MOST - 1]) == 0);
	begin_now();
	CHECK(recvmsg(sv[1], &m, MSG_CMSG_CLOEXEC) == 1 && !(m.msg_flags & MSG_CTRUNC));
	CHECK(fds_take(&m, got, 2) == FDS_MOST);
	check_soon();
	CHECK(close(got[0]) == 0 && close(got[1]) == 0);
}

static void a_socket_is_closed_with_what_waits_in_it(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };

	for (size_t i = 0; i < 2; i++) {
		int sv[2], fd = lingering();

		CHECK(socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC, 0, sv) == 0);
		put_fds(sv[0], (int[]){ STDIN_FILENO }, 1);
		put_fds(sv[0], &fd, 1);
		CHECK(close(fd) == 0);
		begin_now();
		fds_close_socket(&sv[1]);
		check_soon();
		CHECK(sv[1] == FD_NONE && close(sv[0]) == 0 && close(reader) == 0);
	}
}

/* A unix socket that contains such a socket, passed on in turn. */
static void a_socket_within_a_socket_is_closed_at_once(void)
{
	int sv[2], fd = lingering();

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
	put_fds(sv[0], &fd, 1);
	CHECK(close(fd) == 0 && close(sv[0]) == 0);
	begin_now();
	fds_discard(&sv[1], 1);
	check_soon();
}

T_MAIN(T(a_socket_that_lingers_is_closed_at_once), T(its_data_still_arrives),
       T(what_does_not_fit_is_closed_at_once), T(a_socket_is_closed_with_what_waits_in_it),
       T(a_socket_within_a_socket_is_closed_at_once))
