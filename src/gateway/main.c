/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay-gateway: started by the warden in a jail, with its stream on descriptor 3. See gateway.h.
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

#include "gateway/gateway.h"
#include "sys/netlink.h"
#include "sys/seccomp_few.h"

#ifdef CAY_SANITIZED
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

enum {
	STREAM = 3,
	FILES = 3 * LIMIT_NET_FLOWS,
	HEAP_MOST = 256 << 20,
};

static const uint16_t allow[] = {
	SYS_epoll_wait,	    SYS_epoll_pwait, SYS_epoll_ctl,   SYS_accept4,	 SYS_connect,
	SYS_getsockopt,	    SYS_setsockopt,  SYS_getsockname, SYS_getpeername,	 SYS_sendto,
	SYS_sendmsg,	    SYS_recvfrom,    SYS_recvmsg,     SYS_shutdown,	 SYS_read,
	SYS_write,	    SYS_readv,	     SYS_writev,      SYS_splice,	 SYS_pipe2,
	SYS_close,	    SYS_fcntl,	     SYS_mmap,	      SYS_munmap,	 SYS_mremap,
	SYS_mprotect,	    SYS_madvise,     SYS_brk,	      SYS_clock_gettime, SYS_gettimeofday,
	SYS_getrandom,	    SYS_futex,	     SYS_exit,	      SYS_exit_group,	 SYS_rt_sigreturn,
	SYS_rt_sigprocmask, SYS_poll,
#ifdef CAY_SANITIZED /* to say where it was */
	SYS_open,	    SYS_openat,	     SYS_fstat,	      SYS_newfstatat,	 SYS_lseek,
	SYS_readlink,	    SYS_stat,	     SYS_getpid,      SYS_gettid,	 SYS_sigaltstack,
	SYS_sched_yield,
#endif
};

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
	/* The shadow of all memory would count, and reports are files. */
	if (!sanitized && (setrlimit(RLIMIT_FSIZE, &none) < 0 || setrlimit(RLIMIT_DATA, &heap) < 0))
		return -errno;
	return prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;
}

static int begin(struct gateway *g)
{
	static const struct seccomp_few few = { allow, ARRAY_LEN(allow), absent,
						ARRAY_LEN(absent) };
	int r = limit_self();

	if (r < 0)
		return r;
	for (int i = 0; i < SOCKS; i++)
		g->fds[i] = FD_NONE;
	g->route_fd = netlink_open(NETLINK_ROUTE);
	g->pool = calloc(1, sizeof *g->pool);
	g->free_slots = calloc(LIMIT_NET_FLOWS, sizeof *g->free_slots);
	if (g->route_fd < 0 || !g->pool || !g->free_slots)
		return -ENOMEM;
	r = loop_init(&g->loop);
	if (r == 0)
		r = control_begin(g, STREAM);
	return r < 0 ? r : seccomp_few_install(&few);
}

int main(int argc, char **argv)
{
	static struct gateway g;
	struct stat st;

	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		printf("cay-gateway %s\n", CAY_VERSION);
		return 0;
	}
	if (argc > 1 || fstat(STREAM, &st) < 0 || !S_ISSOCK(st.st_mode)) {
		fprintf(stderr, "cay-gateway: started by cay-warden, not by hand\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	if (fcntl(STREAM, F_SETFD, FD_CLOEXEC) < 0 || begin(&g) < 0)
		return 1;
	return loop_run(&g.loop) < 0;
}
