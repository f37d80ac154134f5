/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sys/process/raw.h"
#include "t.h"

enum { SOMEBODY = 4242, LONG_MS = 5000 };

static struct cgroup g;
static char id[24];
static pid_t maker;

static void remove_group(void)
{
	if (getpid() != maker)
		return;
	(void)cgroup_kill(&g);
	(void)cgroup_remove(&g, LONG_MS);
	cgroup_done(&g);
}

static void begin(void)
{
	int r;

	maker = getpid();
	snprintf(id, sizeof id, "unittest%d", (int)maker);
	r = cgroup_new(&g, id);
	if (r == -ENOENT || r == -EACCES || r == -EPERM || r == -EROFS)
		t_skip("needs a cgroup v2 group to write in");
	CHECK(r == 0 && atexit(remove_group) == 0);
}

/* Starts a process in the leaf that waits for ever. */
static pid_t inhabit(int leaf_fd)
{
	struct raw_clone_args args = { .flags = RAW_CLONE_INTO_CGROUP,
				       .exit_signal = SIGCHLD,
				       .cgroup = (uint64_t)leaf_fd };
	pid_t pid = raw_clone3(&args);

	CHECK(pid >= 0);
	if (pid == 0)
		for (;;)
			(void)pause();
	return pid;
}

static int leaf(const char *name)
{
	int fd = cgroup_leaf(&g, name);

	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	return fd;
}

static void must_be_killed(pid_t pid)
{
	int st;

	CHECK(waitpid(pid, &st, 0) == pid && WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL);
}

static void killing_a_leaf_leaves_the_others(void)
{
	pid_t one, two;

	begin();
	one = inhabit(leaf("call-1"));
	two = inhabit(leaf("call-2"));
	CHECK(cgroup_remove_leaf(&g, "call-1") == -EBUSY);
	CHECK(cgroup_kill_leaf(&g, "call-1") == 0);
	must_be_killed(one);
	CHECK(waitpid(two, NULL, WNOHANG) == 0);
	CHECK(cgroup_remove_leaf(&g, "call-1") == 0);
	CHECK(faccessat(g.fd, "call-1", F_OK, 0) < 0 && faccessat(g.fd, "call-2", F_OK, 0) == 0);
	CHECK(cgroup_remove_leaf(&g, "call-1") == 0);
	CHECK(cgroup_kill_leaf(&g, "none") == -ENOENT);
}

static void killing_the_group_kills_every_process(void)
{
	pid_t pids[3];

	begin();
	pids[0] = inhabit(leaf("init"));
	pids[1] = inhabit(leaf("call-1"));
	pids[2] = inhabit(leaf("call-2"));
	CHECK(cgroup_kill(&g) == 0);
	for (int i = 0; i < 3; i++)
		must_be_killed(pids[i]);
	CHECK(cgroup_remove(&g, LONG_MS) == 0 && g.fd == FD_NONE);
	CHECK(faccessat(g.parent_fd, g.name, F_OK, 0) < 0);
	CHECK(cgroup_remove(&g, LONG_MS) == 0);
}

static void removal_waits_for_the_last_process(void)
{
	pid_t pid;
	uint64_t start;

	begin();
	pid = inhabit(leaf("init"));
	start = clock_mono_ns();
	CHECK(cgroup_remove(&g, 30) == -EBUSY);
	CHECK(clock_mono_ns() - start >= 30 * NS_PER_MS);
	CHECK(g.fd >= 0 && waitpid(pid, NULL, WNOHANG) == 0);
	CHECK(cgroup_kill(&g) == 0 && cgroup_remove(&g, LONG_MS) == 0);
}

static void a_group_exists_once(void)
{
	struct cgroup again;

	begin();
	CHECK(cgroup_new(&again, id) == -EEXIST);
	CHECK(again.fd == FD_NONE && again.parent_fd == FD_NONE);
	CHECK(faccessat(g.parent_fd, g.name, F_OK, 0) == 0);
	(void)leaf("call-1");
	CHECK(cgroup_leaf(&g, "call-1") == -EEXIST);
}

static void groups_are_owned_by_the_sandboxs_root(void)
{
	struct stat st;

	begin();
	if (geteuid() != 0)
		t_skip("needs root");
	(void)leaf("before");
	CHECK(cgroup_delegate(&g, SOMEBODY, SOMEBODY + 1) == 0);
	(void)leaf("after");
	CHECK(fstatat(g.fd, "cgroup.procs", &st, 0) == 0 && st.st_uid == SOMEBODY);
	CHECK(fstatat(g.fd, "after/cgroup.procs", &st, 0) == 0);
	CHECK(st.st_uid == SOMEBODY && st.st_gid == SOMEBODY + 1);
	CHECK(fstatat(g.fd, "after", &st, 0) == 0 && st.st_uid == 0);
	CHECK(fstatat(g.fd, "after/cgroup.kill", &st, 0) == 0 && st.st_uid == 0);
	CHECK(fstatat(g.fd, "before/cgroup.procs", &st, 0) == 0 && st.st_uid == 0);
}

static void without_a_group_nothing_happens(void)
{
	struct cgroup none = cgroup_none;

	CHECK(cgroup_leaf(&none, "call-1") == -ENOENT);
	CHECK(cgroup_delegate(&none, 0, 0) == 0 && cgroup_kill(&none) == 0);
	CHECK(cgroup_kill_leaf(&none, "call-1") == 0 && cgroup_remove_leaf(&none, "call-1") == 0);
	CHECK(cgroup_remove(&none, 0) == 0);
	cgroup_done(&none);
}

T_MAIN(T(killing_a_leaf_leaves_the_others), T(killing_the_group_kills_every_process),
       T(removal_waits_for_the_last_process), T(a_group_exists_once),
       T(groups_are_owned_by_the_sandboxs_root), T(without_a_group_nothing_happens))
