/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay-gateway: started twice by the warden, in two jails, as the front (gateway.h) and as the
 * dialer (dialer.h). Descriptor 3 is the stream to the warden, descriptor 4 leads from one to the
 * other.
 */
#include <fcntl.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gateway/dialer.h"
#include "gateway/gateway.h"
#include "sys/filter/seccomp_few.h"
#include "sys/net/netlink.h"

#ifdef CAY_SANITIZED
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

enum {
	STREAM = 3,
	PEER = 4,
	FILES = 3 * LIMIT_NET_FLOWS,
	HEAP_MOST = 256 << 20,
};

/* System calls that a sanitizer needs for its report. */
#ifdef CAY_SANITIZED
#define SANITIZER_CALLS \
	SYS_open, SYS_openat, SYS_fstat, SYS_newfstatat, SYS_lseek, SYS_readlink, SYS_stat, \
		SYS_getpid, SYS_gettid, SYS_sigaltstack, SYS_sched_yield,
#else
#define SANITIZER_CALLS
#endif

/* System calls of front and dialer. seccomp_few.h handles sendto and sendmsg itself. */
#define SHARED_CALLS \
	SANITIZER_CALLS SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_ctl, SYS_getsockopt, \
		SYS_setsockopt, SYS_getsockname, SYS_getpeername, SYS_recvfrom, SYS_recvmsg, \
		SYS_shutdown, SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_close, SYS_fcntl, \
		SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, \
		SYS_clock_gettime, SYS_gettimeofday, SYS_getrandom, SYS_futex, SYS_exit, \
		SYS_exit_group, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_poll

static const uint16_t front_calls[] = { SHARED_CALLS, SYS_accept4, SYS_splice, SYS_pipe2 };
static const uint16_t dialer_calls[] = { SHARED_CALLS, SYS_connect };
static const uint16_t absent[] = { SYS_open,   SYS_openat, SYS_stat,	SYS_newfstatat,
				   SYS_access, SYS_uname,  SYS_readlink };

static int limit_self(void)
{
	static const struct rlimit none = { 0, 0 }, heap = { HEAP_MOST, HEAP_MOST };
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	if (files.rlim_max > FILES)
		files.rlim_max = FILES;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return -errno;
	/* A sanitizer needs address space for its shadow memory, and writes its report to a file.
	 */
	if (!sanitized && (setrlimit(RLIMIT_FSIZE, &none) < 0 || setrlimit(RLIMIT_DATA, &heap) < 0))
		return -errno;
	return prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;
}

static int begin_front(struct gateway *g)
{
	static const struct seccomp_few few = { .allow = front_calls,
						.nallow = ARRAY_LEN(front_calls),
						.absent = absent,
						.nabsent = ARRAY_LEN(absent) };
	int r;

	for (int i = 0; i < SOCKS; i++)
		g->fds[i] = FD_NONE;
	g->addresses = calloc(1, sizeof *g->addresses);
	g->free_slots = calloc(LIMIT_NET_FLOWS, sizeof *g->free_slots);
	if (!g->addresses || !g->free_slots)
		return -ENOMEM;
	r = loop_init(&g->loop);
	if (r == 0)
		r = control_begin(g, STREAM);
	if (r == 0)
		r = ask_begin(g, PEER);
	return r < 0 ? r : seccomp_few_install(&few);
}

static int run_front(void)
{
	static struct gateway g;

	return begin_front(&g) < 0 || loop_run(&g.loop) < 0;
}

static int run_dialer(void)
{
	static const struct seccomp_few few = { .allow = dialer_calls,
						.nallow = ARRAY_LEN(dialer_calls),
						.absent = absent,
						.nabsent = ARRAY_LEN(absent),
						.dials = true };
	static struct dialer d;
	int route = netlink_open(NETLINK_ROUTE);

	if (route < 0 || dialer_begin(&d, STREAM, PEER, route) < 0 ||
	    seccomp_few_install(&few) < 0 || loop_run(&d.loop) < 0)
		return 1;
	return d.broken ? 3 : 0;
}

static bool is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

int main(int argc, char **argv)
{
	bool front = argc == 2 && strcmp(argv[1], "front") == 0;
	bool dialer = argc == 2 && strcmp(argv[1], "dialer") == 0;

	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		printf("cay-gateway %s\n", CAY_VERSION);
		return 0;
	}
	if ((!front && !dialer) || !is_socket(STREAM) || !is_socket(PEER)) {
		fprintf(stderr, "cay-gateway: started by cay-warden, not by hand\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, front ? "cay-gateway" : "cay-dialer");
	if (limit_self() < 0)
		return 1;
	return front ? run_front() : run_dialer();
}
