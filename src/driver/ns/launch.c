/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/launch.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "driver/ns/facts.h"
#include "driver/ns/net.h"
#include "driver/ns/netns.h"
#include "sys/ns/caps.h"
#include "sys/ns/mnt.h"
#include "sys/ns/userns.h"
#include "sys/process/fdpass.h"
#include "sys/process/raw.h"

enum {
	STREAM_AT = 3,
	INIT_AT,
	KEEL_AT
}; /* descriptor numbers where init finds its stream and the keel */

static void __attribute__((noreturn)) fail(const struct launch *l, int err, const char *what)
{
	struct launch_report rep = { .sys = -err };

	(void)snprintf(rep.what, sizeof rep.what, "%s", what);
	(void)fdpass_send(l->setup_fd, &rep, sizeof rep, NULL, 0);
	_exit(1);
}

static void must(const struct launch *l, int r, const char *what)
{
	if (r < 0)
		fail(l, r, what);
}

/* Become root of U1, which is the warden's user outside. */
static int become_root(const struct launch *l)
{
	auto_close int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return self < 0 ? -errno : userns_map_self(self, 0, l->init_uid, l->init_gid);
}

bool launch_has_map(const struct cell_spec *s, int i)
{
	return s->rootful && s->mounts[i].has_owner && s->mounts[i].owner != s->user;
}

/* What the warden made while we were working. */
struct parts {
	int init_fd, userns_fd, netns_fd;
	int owner_ns[CELL_MOUNTS];
};

enum { PARTS = 3 + CELL_MOUNTS };
_Static_assert((int)PARTS <= (int)FDPASS_FDS, "they go in one message");

int launch_send_parts(const struct launch *l, int sock, const int owner_ns[CELL_MOUNTS])
{
	int fds[PARTS] = { l->init_fd }, n = 1;

	if (l->spec->rootful) {
		fds[n++] = l->userns_fd;
		fds[n++] = l->netns_fd;
	}
	for (int i = 0; i < l->spec->nmounts; i++)
		if (launch_has_map(l->spec, i))
			fds[n++] = owner_ns[i];
	return fdpass_send(sock, "g", 1, fds, n);
}

static int await_parts(const struct launch *l, struct parts *p)
{
	int fds[PARTS], n = 0, at = 1;
	char byte;
	int r = fdpass_recv(l->setup_fd, &byte, 1, fds, PARTS, &n);

	if (r < 0 || n < (l->spec->rootful ? 3 : 1))
		return r < 0 ? r : -EPIPE;
	p->init_fd = fds[0];
	if (l->spec->rootful) {
		p->userns_fd = fds[at++];
		p->netns_fd = fds[at++];
	}
	for (int i = 0; i < l->spec->nmounts; i++)
		if (launch_has_map(l->spec, i) && at < n)
			p->owner_ns[i] = fds[at++];
	return at == n ? 0 : -EPIPE;
}

/* Enter U2 and a mount namespace below it, which locks every existing mount. */
static int enter_rootful(int userns_fd)
{
	if (setns(userns_fd, CLONE_NEWUSER) < 0)
		return -errno;
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -errno;
	return unshare(CLONE_NEWNS) < 0 ? -errno : 0;
}

/* An unprivileged user has one id, which becomes the sandbox's user. */
static int enter_rootless(const struct launch *l, const struct tree *t, int *ret_userns)
{
	auto_close int self = FD_NONE;
	int r;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	self = openat(t->proc_fd, "self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (self < 0)
		return -errno;
	r = userns_map_self(self, l->spec->user, 0, 0);
	*ret_userns = openat(self, "ns/user", O_RDONLY | O_CLOEXEC);
	if (*ret_userns < 0)
		return -errno;
	/* It is not root inside, but init needs root's capabilities. */
	return r < 0 ? r : caps_keep_over_exec();
}

/*
 * The warden raised its own limit, and init will; commands start with the warden's original limit.
 */
static int limit_files(uint64_t files)
{
	struct rlimit l;

	if (files == 0)
		return 0;
	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return -errno;
	l.rlim_cur = files;
	return setrlimit(RLIMIT_NOFILE, &l) < 0 ? -errno : 0;
}

/*
 * Before anything is charged to the sandbox. The cgroup namespace is made again, so that the groups
 * entered here are its roots.
 */
static int enter_groups(const struct launch *l)
{
	bool entered = l->grouped && facts_limited(l->spec);

	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (l->entries[i] < 0)
			continue;
		if (write(l->entries[i], "0", 1) != 1)
			return -errno;
		entered = true;
	}
	return entered && unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0;
}

/*
 * As the host's root, we also set the minimum that a process inside can set later; init and its
 * commands choose higher values. Without CAP_SYS_RESOURCE it is only an initial value.
 */
static int fix_oom_order(void)
{
	return io_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "500");
}

static int last_settings(const struct launch *l, int knobs_fd)
{
	const struct rlimit no_core = { l->core, l->core };
	int r = userns_bound_watches(knobs_fd);

	if (r < 0 && r != -ENOENT) /* a kernel without inotify */
		return r;
	r = l->spec->nested ? userns_bound_nesting(knobs_fd) : 0;
	if (r < 0)
		return r;
	(void)umask(022);
	if (raw_join_session_keyring() < 0 && errno != ENOSYS)
		return -errno;
	if (setsid() < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0)
		return -errno;
	return 0;
}

/*
 * Standard descriptors on the sandbox's /dev/null, the stream and the keel at their numbers,
 * nothing else. init_fd gets its own number and closes at exec.
 */
static int arrange_fds(int stream_fd, int init_fd, int keel_fd)
{
	const int from[] = { stream_fd, init_fd, keel_fd };
	int moved[ARRAY_LEN(from)], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		moved[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64); /* above all targets */
		if (moved[i] < 0)
			return -errno;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			return -errno;
	for (int i = 0; i < (int)ARRAY_LEN(from); i++)
		if (dup3(moved[i], STREAM_AT + i, STREAM_AT + i == INIT_AT ? O_CLOEXEC : 0) < 0)
			return -errno;
	return raw_close_range(KEEL_AT + 1, ~0u) < 0 ? -errno : 0;
}

static void report_ready(const struct launch *l, const struct tree *t, int m1, int u2)
{
	struct launch_report rep = { .sys = 0 };
	int fds[LAUNCH_FDS + CELL_MOUNTS + 1] = { [LAUNCH_FD_M1] = m1 };
	int n = LAUNCH_FDS + tree_fds(t, fds + LAUNCH_FDS);

	if (u2 >= 0)
		fds[n++] = u2;
	fds[LAUNCH_FD_M2] = openat(t->proc_fd, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	must(l, fds[LAUNCH_FD_M2] < 0 ? -errno : 0, "open the mount namespace");
	fds[LAUNCH_FD_ROOT] = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	/*
	 * Open it again in the current mount namespace. A terminal opened through the old one would
	 * have no name inside, and Landlock would refuse to reopen it.
	 */
	fds[LAUNCH_FD_DEVPTS] = open("/dev/pts", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	must(l, fds[LAUNCH_FD_ROOT] < 0 ? -errno : 0, "open the root");
	must(l, fds[LAUNCH_FD_DEVPTS] < 0 ? -errno : 0, "open /dev/pts");
	must(l, fdpass_send(l->setup_fd, &rep, sizeof rep, fds, n), "report");
}

static int enter_network(int netns_fd)
{
	if (netns_fd < 0)
		return netns_fd;
	return setns(netns_fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

static void build(const struct launch *l, struct tree *t, struct parts *parts, struct netns *own)
{
	const char *net = NULL;
	int r;

	must(l, mnt_make_private(), "make mounts private");
	t->fds_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	must(l, t->fds_fd < 0 ? -errno : 0, "open /proc/self/fd");
	r = tree_stage(t);
	if (r == 0)
		r = tree_keel(t);
	if (r == 0)
		r = tree_proc(t);
	if (r == 0)
		r = tree_facts(t, l->grouped);
	if (r == 0)
		r = tree_dev(t);
	must(l, r, t->what);
	must(l, sethostname(l->spec->hostname, strlen(l->spec->hostname)) < 0 ? -errno : 0,
	     "set the host name");
	must(l, await_parts(l, parts), "wait for the upper directories");
	t->userns_fd = parts->userns_fd;
	r = tree_gather(t);
	if (r == 0)
		r = tree_mounts(t);
	if (r == 0)
		r = tree_place(t);
	must(l, r, t->what);
	/* As late as possible, because it takes longest. */
	if (!l->spec->rootful)
		parts->netns_fd = netns_take(own);
	must(l, enter_network(parts->netns_fd), LAUNCH_NETWORK);
	must(l, net_ease(l->spec, t->knobs_fd), "open low ports and ping (net/ipv4)");
	must(l, net_child(l->net_fd, t->knobs_fd, &net), net);
}

/* The working directory follows into the next mount namespace and becomes the root there. */
static int pivot(const struct tree *t)
{
	int r = mnt_pivot(t->keel_fd);

	if (r == 0 && chdir(tree_slot(t->generation)) < 0)
		r = -errno;
	return r;
}

void launch_child(const struct launch *l)
{
	char *const argv[] = { "cay-init", l->spec->nested ? "--nested" : NULL, NULL };
	static char *const envp[] = { NULL };
	struct tree t;
	struct parts parts = { FD_NONE, FD_NONE, FD_NONE, { 0 } };
	int m1, u2 = FD_NONE;
	struct netns own;

	for (int i = 0; i < CELL_MOUNTS; i++)
		parts.owner_ns[i] = FD_NONE;
	tree_init(&t, l->spec, FD_NONE, parts.owner_ns);
	/* Otherwise we would wait for a killed warden and hold its lock. */
	for (size_t i = 0; i < ARRAY_LEN(l->ours); i++)
		(void)close(l->ours[i]);
	must(l, enter_groups(l), "enter the control groups");
	facts_pin(l->spec);
	if (!l->spec->rootful) {
		/* It needs our privileges here, which we have before we have an id. */
		must(l, netns_begin(&own), LAUNCH_NETWORK);
		must(l, become_root(l), LAUNCH_USER);
	}
	if (l->spec->rootful)
		must(l, fix_oom_order(), "set the order in which memory is taken back");
	m1 = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	must(l, m1 < 0 ? -errno : 0, "open the mount namespace");
	build(l, &t, &parts, &own);
	must(l, pivot(&t), "pivot into the root");
	if (l->spec->nested)
		must(l, tree_on_top(), "put the root on top");
	if (l->spec->rootful)
		must(l, enter_rootful(parts.userns_fd), "enter the user namespace");
	else
		must(l, enter_rootless(l, &t, &u2), "enter the user namespace");
	must(l, chroot(".") < 0 ? -errno : 0, "change the root");
	must(l, last_settings(l, t.knobs_fd), "make a session");
	report_ready(l, &t, m1, u2);
	/* After everything that must be sent: see base/limits.h. */
	must(l, limit_files(l->spec->files), "limit open files");
	must(l, arrange_fds(l->stream_fd, parts.init_fd, t.keel_fd), "arrange descriptors");
	(void)syscall(SYS_execveat, INIT_AT, "", argv, envp, RAW_AT_EMPTY_PATH);
	_exit(125);
}
