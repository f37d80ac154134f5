/* SPDX-License-Identifier: Apache-2.0 */
#include "api/front_jail.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "sys/filter/seccomp_few.h"

/* What a sanitizer needs to say where something happened. */
#ifdef CAY_SANITIZED
#define SANITIZER_CALLS \
	SYS_open, SYS_openat, SYS_fstat, SYS_newfstatat, SYS_lseek, SYS_readlink, SYS_stat, \
		SYS_gettid, SYS_sigaltstack, SYS_sched_yield,
#else
#define SANITIZER_CALLS
#endif

/* The loop, sockets that others made, memory, clocks. Neither files nor processes. */
static const uint16_t front_calls[] = {
	SANITIZER_CALLS SYS_epoll_wait,
	SYS_epoll_pwait,
	SYS_epoll_ctl,
	SYS_accept4,
	SYS_getsockopt,
	SYS_setsockopt,
	SYS_getsockname,
	SYS_getpeername,
	SYS_recvfrom,
	SYS_recvmsg,
	SYS_sendto,
	SYS_sendmsg,
	SYS_shutdown,
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_close,
	SYS_fcntl,
	SYS_poll,
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_madvise,
	SYS_brk,
	SYS_clock_gettime,
	SYS_gettimeofday,
	SYS_getrandom,
	SYS_getpid, /* OpenSSL notices a fork by it */
	SYS_futex,
	SYS_exit,
	SYS_exit_group,
	SYS_rt_sigreturn,
	SYS_rt_sigprocmask,
};
static const uint16_t front_absent[] = { SYS_open,   SYS_openat, SYS_stat,    SYS_newfstatat,
					 SYS_access, SYS_uname,	 SYS_readlink };

int front_jail(void)
{
	static const struct seccomp_few few = { .allow = front_calls,
						.nallow = ARRAY_LEN(front_calls),
						.absent = front_absent,
						.nabsent = ARRAY_LEN(front_absent) };
	static const struct rlimit none = { 0, 0 };
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	return seccomp_few_install(&few);
}
