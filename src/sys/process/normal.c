/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/process/normal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sys/ns/caps.h"

#define KIB		1024ull
#define INITIAL_USER_NS 0xeffffffdu /* inode of the host's user namespace, fixed by the kernel */

enum { IOPRIO_WHO_PROCESS = 1, TIMER_SLACK_NS = 50000, FILE_MOST = 4096 };

/* As the kernel and systemd set them. NPROC and SIGPENDING come from kernel.threads-max. */
static const struct rlimit usual[RLIMIT_NLIMITS] = {
	[RLIMIT_CPU] = { RLIM_INFINITY, RLIM_INFINITY },
	[RLIMIT_FSIZE] = { RLIM_INFINITY, RLIM_INFINITY },
	[RLIMIT_DATA] = { RLIM_INFINITY, RLIM_INFINITY },
	[RLIMIT_STACK] = { 8 * KIB * KIB, RLIM_INFINITY },
	[RLIMIT_CORE] = { 0, RLIM_INFINITY },
	[RLIMIT_RSS] = { RLIM_INFINITY, RLIM_INFINITY },
	[RLIMIT_NPROC] = { 0, 0 },
	[RLIMIT_NOFILE] = { 1024, 512 * KIB },
	[RLIMIT_MEMLOCK] = { 8 * KIB * KIB, 8 * KIB *KIB },
	[RLIMIT_AS] = { RLIM_INFINITY, RLIM_INFINITY },
	[RLIMIT_LOCKS] = { RLIM_INFINITY, RLIM_INFINITY },
	[RLIMIT_SIGPENDING] = { 0, 0 },
	[RLIMIT_MSGQUEUE] = { 819200, 819200 },
	[RLIMIT_NICE] = { 0, 0 },
	[RLIMIT_RTPRIO] = { 0, 0 },
	[RLIMIT_RTTIME] = { RLIM_INFINITY, RLIM_INFINITY },
};

static int read_number(const char *path, int64_t *ret)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MOST);
	int r = io_read_file(AT_FDCWD, path, &b);

	if (r < 0 || buf_add(&b, "", 1) < 0)
		return r < 0 ? r : -ENOMEM;
	*ret = strtoll(b.data, NULL, 10);
	return 0;
}

/* The kernel honours these capabilities in the host's user namespace only. */
static bool has_on_host(int cap)
{
	struct stat st;

	return (caps_now() & 1ull << cap) && stat("/proc/self/ns/user", &st) == 0 &&
	       st.st_ino == INITIAL_USER_NS;
}

static rlim_t lower_of(rlim_t a, rlim_t b)
{
	return a < b ? a : b; /* RLIM_INFINITY is the highest number */
}

static int plan_limits(struct normal *n, bool may_raise)
{
	int64_t threads;
	int r = read_number("/proc/sys/kernel/threads-max", &threads);

	if (r < 0)
		return r;
	for (int i = 0; i < RLIMIT_NLIMITS; i++) {
		bool by_threads = i == RLIMIT_NPROC || i == RLIMIT_SIGPENDING;
		rlim_t most = by_threads ? (rlim_t)threads / 2 : usual[i].rlim_max;
		struct rlimit now;

		if (getrlimit(i, &now) < 0)
			return -errno;
		n->limits[i].rlim_max = may_raise ? most : lower_of(most, now.rlim_max);
		n->limits[i].rlim_cur =
			lower_of(by_threads ? most : usual[i].rlim_cur, n->limits[i].rlim_max);
	}
	return 0;
}

static int plan_priority(struct normal *n)
{
	bool may_raise = has_on_host(CAP_SYS_NICE);
	/* musl refuses the functions of POSIX, whose meaning is another. */
	int policy = (int)syscall(SYS_sched_getscheduler, 0);

	errno = 0;
	n->nice = getpriority(PRIO_PROCESS, 0);
	if (errno || policy < 0)
		return -errno;
	if (n->nice < 0 || may_raise)
		n->nice = 0;
	n->policy = (policy & ~SCHED_RESET_ON_FORK) == SCHED_IDLE && !may_raise ? SCHED_IDLE
										: SCHED_OTHER;
	return 0;
}

int normal_plan(struct normal *ret)
{
	struct normal n = { 0 };
	int r = plan_limits(&n, has_on_host(CAP_SYS_RESOURCE));

	if (r == 0)
		r = plan_priority(&n);
	if (r == 0)
		*ret = n;
	return r;
}

static void note(int *first, int r)
{
	if (r < 0 && *first == 0)
		*first = -errno;
}

static void enter_limits(const struct normal *n, int *first)
{
	for (int i = 0; i < RLIMIT_NLIMITS; i++)
		note(first, setrlimit(i, &n->limits[i]));
}

static void enter_priority(const struct normal *n, int *first)
{
	struct sched_param none = { 0 };

	note(first, (int)syscall(SYS_sched_setscheduler, 0, (int)n->policy, &none));
	note(first, setpriority(PRIO_PROCESS, 0, (int)n->nice));
	note(first, (int)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0));
	note(first, prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0));
}

/* Groups of a user stay: only privileged processes can leave them. */
static void enter_identity(int *first)
{
	int r;

	note(first, personality(PER_LINUX));
	/* A new user namespace ignores the rest, but the programs that a warden starts do not. */
	(void)prctl(PR_SET_SECUREBITS, SECUREBITS_DEFAULT, 0, 0, 0);
	(void)prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	r = caps_set(caps_now());
	if (r < 0 && *first == 0)
		*first = r;
	if (geteuid() != 0)
		return;
	note(first, setgroups(0, NULL));
	note(first, setresgid(0, 0, 0));
}

int normal_enter(const struct normal *n)
{
	int first = 0;

	/* Privileges are needed until the end. */
	enter_limits(n, &first);
	enter_priority(n, &first);
	/* May fail: a user may not undo what root has set. Init and commands set their own. */
	(void)io_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "0");
	enter_identity(&first);
	return first;
}
