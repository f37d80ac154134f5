/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The namespace driver: the warden's side of a launch. The order is fixed (launch.h has the child's
 * half):
 *
 *   1 control groups with their limits
 *   2 clone3 into new namespaces and the group, while a helper makes the network; rootless, the
 *     child has a helper make it
 *   3 id map of U1 (rootless), by the child
 *   4 upper directories, and 5 user namespace U2, id maps (rootful) and a copy of init, while
 *     the child makes /proc and /dev
 *   6 the child mounts, pivots, enters U2, reports, and executes init
 *
 * The warden verifies the sandbox from outside (posture.h) when it has time, and before anything
 * but init runs inside.
 *
 * Any failure kills the group and reports the step.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/ns/launch.h"
#include "driver/ns/launched.h"
#include "driver/ns/limits.h"
#include "driver/ns/net.h"
#include "driver/ns/ns.h"
#include "driver/ns/prepare.h"
#include "sys/cgroup/cgroup_limit.h"
#include "sys/ns/userns.h"
#include "sys/process/fdpass.h"
#include "sys/process/memfd.h"
#include "sys/process/raw.h"

/* A helper makes the network namespace. */
#define NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

enum { GONE_TIMEOUT_MS = 5000 };

struct ends {
	int ours, theirs;
};

static void ends_done(struct ends *p)
{
	fd_close(&p->ours);
	fd_close(&p->theirs);
}
DEFINE_AUTO(struct ends, ends_done)

static int ends_open(struct ends *p)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	*p = (struct ends){ fds[0], fds[1] };
	return 0;
}

static int explain_clone(int err, bool rootful, struct err *e)
{
	err_sys(e, err, "make namespaces");
	if (err == EPERM || err == EACCES)
		return err_hint(
			e,
			rootful ? "is this inside a container? it must allow clone of "
				  "namespaces and mounts"
				: "this host forbids user namespaces to users: see "
				  "kernel.unprivileged_userns_clone, "
				  "kernel.apparmor_restrict_unprivileged_userns, or run as root");
	if (err == ENOSYS)
		return err_hint(e, "a seccomp filter, as of an outer container, hides clone3: "
				   "allow it there");
	if (err == ENOSPC || err == EUSERS)
		return err_hint(e, "the limit of namespaces is reached: see "
				   "/proc/sys/user/max_user_namespaces and its neighbours");
	return -1;
}

static int make_id_maps(const struct cell_spec *s, struct cell_keep *k, struct err *e)
{
	const struct idmap all = { 0, s->uid_base, USERNS_IDS };

	k->user_ns = userns_new_owned(&all, 1, s->uid_base);
	if (k->user_ns < 0)
		return explain_clone(-k->user_ns, true, e);
	for (int i = 0; i < s->nmounts; i++) {
		struct idmap map[5];
		const struct cell_mount *m = &s->mounts[i];

		if (!launch_has_map(s, i))
			continue;
		k->owner_ns[i] = userns_new(map, userns_swap(map, s->uid_base, m->owner, s->user));
		if (k->owner_ns[i] < 0)
			return err_sys(e, -k->owner_ns[i], "make the id map of '%s'", m->dest);
	}
	return 0;
}

/*
 * The group that the child starts in. A failure is not fatal: without groups, only their listeners
 * separate calls. It is the sandbox's group itself and not a leaf, because it becomes the root of
 * the child's cgroup namespace. If the hierarchy is mounted with nsdelegate, as by systemd, init
 * can start calls only in groups below that root.
 */
static int make_groups(const struct cell_spec *s, struct ns_cell *c)
{
	if (cgroup_new(&c->cgroup, s->id) < 0)
		return FD_NONE;
	c->has_cgroup = true;
	c->pub.has |= HAS_GROUPS | HAS_FREEZE;
	if (s->rootful)
		(void)cgroup_delegate(&c->cgroup, s->uid_base, s->uid_base);
	return c->cgroup.fd;
}

static int open_entries(struct launch *l, const struct ns_cell *c, struct err *e)
{
	int r = cgroup_entries(&c->cgroup, l->entries);

	return r < 0 ? err_sys(e, -r, "open the control groups") : 0;
}

static pid_t clone_child(const struct launch *l, int cgroup_fd, int *ret_pidfd)
{
	struct raw_clone_args args = {
		.flags = NAMESPACES | RAW_CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
	};
	pid_t pid;

	if (!l->spec->rootful)
		args.flags |= CLONE_NEWUSER;
	if (cgroup_fd >= 0) {
		args.flags |= RAW_CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	pid = raw_clone3(&args);
	if (pid == 0)
		launch_child(l);
	return pid < 0 ? -errno : pid;
}

/* U1, which the maker of a later generation enters. */
static int open_outer(pid_t pid, int *ret_userns, struct err *e)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	*ret_userns = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_userns < 0 ? err_sys(e, errno, "open the user namespace") : 0;
}

static int explain_report(const struct launch_report *rep, struct err *e)
{
	if (strcmp(rep->what, LAUNCH_NETWORK) == 0)
		return explain_clone(rep->sys, getuid() == 0, e);
	err_sys(e, rep->sys, "%.*s", (int)sizeof rep->what, rep->what);
	if (strcmp(rep->what, LAUNCH_USER) == 0)
		return err_hint(e, "this host forbids user namespaces to users: see "
				   "kernel.apparmor_restrict_unprivileged_userns, or run as root");
	err_ctx(e, "build the sandbox");
	if (rep->sys == EPERM && strstr(rep->what, "/proc"))
		return err_hint(e, "an outer container masks /proc: run it with unmasked /proc");
	if (rep->sys == ENOSPC)
		return err_hint(e, "the file system of the state directory is full");
	return -1;
}

/* Takes ownership of the received descriptors, but only if the report is good. */
static int take_report(const struct cell_spec *s, struct ns_cell *c, int *fds, int n)
{
	int *to[LAUNCH_FDS] = { &c->root_fd, &c->devpts_fd, &c->keep.mount_ns, &c->mount_ns };

	for (int i = 0; i < LAUNCH_FDS && i < n; i++)
		*to[i] = TAKE_FD(fds[i]);
	if (n <= LAUNCH_FDS)
		return -EBADMSG;
	if (c->keep.user_ns < 0) {
		n--;
		c->keep.user_ns = TAKE_FD(fds[n]);
	}
	return tree_take_fds(s, c->keep.mount_fd, fds + LAUNCH_FDS, n - LAUNCH_FDS);
}

static int await_report(int fd, const struct cell_spec *s, struct ns_cell *c, struct err *e)
{
	struct launch_report rep = { 0 };
	int fds[LAUNCH_FDS + CELL_MOUNTS + 1], n = 0;
	int r = fdpass_recv(fd, &rep, sizeof rep, fds, (int)ARRAY_LEN(fds), &n);
	int taken = r == 0 && rep.sys == 0 ? take_report(s, c, fds, n) : -EBADMSG;

	for (int i = 0; i < n; i++)
		fd_close(&fds[i]);
	if (r < 0)
		return err_set(e, ERR_FAILED, "the sandbox ended while it was being built");
	rep.what[sizeof rep.what - 1] = '\0';
	if (rep.sys)
		return explain_report(&rep, e);
	return taken < 0 ? err_set(e, ERR_FAILED, "the sandbox reported no descriptors") : 0;
}

/* Compute what the child cannot know, and what verify needs. */
static void know(struct launch *l)
{
	struct rlimit core = { 0 };
	const struct cell_spec *s = l->spec;
	uint32_t uid = s->rootful ? s->uid_base : getuid(),
		 gid = s->rootful ? s->uid_base : getgid();
	struct idmap map = { s->rootful ? 0 : s->user, uid, s->rootful ? USERNS_IDS : 1 };

	l->init_uid = uid;
	l->init_gid = gid;
	l->uids[0] = map;
	map.outside = gid;
	l->gids[0] = map;
	l->nuids = l->ngids = 1;
	/* Raise a hard limit of 0 if we may. */
	if (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max < LAUNCH_CORE)
		(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ LAUNCH_CORE, LAUNCH_CORE });
	l->core = getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max >= LAUNCH_CORE ? LAUNCH_CORE
										     : 0;
}

/* As late as possible: the child has other work until then. */
static int send_parts(struct launch *l, int sock, struct ns_cell *c, struct err *e)
{
	int r;

	if (l->spec->rootful && make_id_maps(l->spec, &c->keep, e) < 0)
		return -1;
	l->userns_fd = c->keep.user_ns;
	if (l->spec->rootful && (l->netns_fd = netns_take(&l->net)) < 0)
		return explain_clone(-l->netns_fd, true, e);
	l->init_fd = memfd_program(l->spec->init, "cay-init");
	if (l->init_fd < 0)
		return err_sys(e, -l->init_fd, "load '%s'", l->spec->init);
	r = launch_send_parts(l, sock, c->keep.owner_ns);
	/*
	 * A child that ended has given the reason in its report; a running one would wait for ever.
	 */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return err_sys(e, -r, "hand over what the sandbox is made of");
	return 0;
}

static int meanwhile(const struct cell_meanwhile *m, struct ns_cell *c, struct err *e)
{
	return m->building ? m->building(m->ctx, &c->pub, e) : 0;
}

static int start(struct launch *l, struct ends *setup, int cgroup_fd, struct ns_cell *c,
		 struct err *e)
{
	pid_t pid = clone_child(l, cgroup_fd, &c->pidfd);

	if (pid < 0)
		return explain_clone(-pid, l->spec->rootful, e);
	c->pub.pid = c->cgroup.init = pid;
	fd_close(&setup->theirs);
	if (!l->spec->rootful && open_outer(pid, &c->keep.outer_ns, e) < 0)
		return -1;
	if (prepare_uppers(l->spec, c->pub.has_quota, e) < 0 ||
	    send_parts(l, setup->ours, c, e) < 0)
		return -1;
	if (meanwhile(&l->spec->meanwhile, c, e) < 0 || launched_watch(c->launched, c, e) < 0)
		return -1;
	if (await_report(setup->ours, l->spec, c, e) < 0)
		return -1;
	launched_reported(c->launched, c->root_fd);
	return 0;
}

static int make(const struct cell_spec *s, struct ns_cell *c, struct err *e)
{
	auto_done(ends_done) struct ends setup = { FD_NONE, FD_NONE };
	auto_done(ends_done) struct ends stream = { FD_NONE, FD_NONE };
	auto_done(ends_done) struct ends net = { FD_NONE, FD_NONE };
	struct launch *l;
	int group, r;

	c->launched = launched_new(s);
	if (!c->launched)
		return err_sys(e, ENOMEM, "make a sandbox");
	l = &c->launched->l;
	r = s->rootful ? netns_begin(&l->net) : 0;
	if (r < 0)
		return explain_clone(-r, true, e);
	group = make_groups(s, c);
	l->grouped = group >= 0;
	if (limits_apply(s, c, e) < 0 || open_entries(l, c, e) < 0)
		return -1;
	r = ends_open(&setup);
	if (r == 0)
		r = ends_open(&stream);
	if (r == 0 && s->network)
		r = ends_open(&net);
	if (r < 0)
		return err_sys(e, -r, "make a socket pair");
	l->setup_fd = setup.theirs;
	l->stream_fd = stream.theirs;
	l->net_fd = net.theirs;
	l->ours[0] = setup.ours;
	l->ours[1] = stream.ours;
	know(l);
	if (start(l, &setup, group, c, e) < 0)
		return -1;
	if (s->network && net_receive(net.ours, c, e) < 0)
		return -1;
	c->stream_fd = TAKE_FD(stream.ours);
	return 0;
}

static int create(const struct cell_spec *s, const struct cell_events *events, struct cell **ret,
		  struct err *e)
{
	struct ns_cell *c = calloc(1, sizeof *c);

	if (!c)
		return err_sys(e, ENOMEM, "make a sandbox");
	ns_cell_init(c);
	c->events = events;
	c->pub.has = ns_driver.has & ~(unsigned)(HAS_GROUPS | HAS_FREEZE);
	c->pub.verify_first = !s->rootful;
	*ret = &c->pub;
	return make(s, c, e);
}

static void kill_all(struct cell *cell)
{
	struct ns_cell *c = ns_cell(cell);

	if (c->has_cgroup)
		(void)cgroup_kill(&c->cgroup);
	if (c->pidfd >= 0)
		(void)raw_pidfd_signal(c->pidfd, SIGKILL);
}

static void reap(struct cell *cell)
{
	struct ns_cell *c = ns_cell(cell);

	kill_all(cell);
	renew_reap(c);
	if (cell->pid > 0)
		while (waitpid(cell->pid, NULL, 0) < 0 && errno == EINTR)
			;
	cell->pid = 0;
	fd_close(&c->pidfd);
}

static int destroy(struct cell *cell, struct err *e)
{
	struct ns_cell *c = ns_cell(cell);
	int r;

	if (cell->pid > 0)
		reap(cell);
	r = cgroup_remove(&c->cgroup, GONE_TIMEOUT_MS);
	cgroup_done(&c->cgroup);
	ns_cell_close(c);
	launched_free(c->launched);
	free(c);
	return r < 0 ? err_sys(e, -r, "remove the control group") : 0;
}

static int stream(struct cell *c)
{
	return TAKE_FD(ns_cell(c)->stream_fd);
}

static int root(const struct cell *c)
{
	return ns_cell(c)->root_fd;
}

static const int *net_fds(const struct cell *c)
{
	return ns_cell(c)->net_fds;
}

const struct driver ns_driver = {
	.name = "ns",
	.boundary = "kernel",
	.has = HAS_FDS | HAS_RENEW | HAS_UPPER | HAS_EXEC_EVENTS | HAS_NETWORK | HAS_FREEZE |
	       HAS_TERMINAL | HAS_PORTS | HAS_CLAIM | HAS_VERIFY | HAS_GROUPS | HAS_MEMORY |
	       HAS_CPU | HAS_PIDS | HAS_SPARE,
	.prefetch = cgroup_look_ahead,
	.create = create,
	.verify = ns_verify,
	.claim = ns_claim,
	.renew = ns_renew,
	.renew_ahead = ns_renew_ahead,
	.enter = ns_enter,
	.stay = ns_stay,
	.seal = ns_seal,
	.keep_fds = ns_keep_fds,
	.drop = ns_drop,
	.as_owner = ns_as_owner,
	.group_open = ns_group_open,
	.group_limit = ns_group_limit,
	.group_kill = ns_group_kill,
	.group_count = ns_group_count,
	.group_cpu = ns_group_cpu,
	.group_pids = ns_group_pids,
	.group_remove = ns_group_remove,
	.freeze = ns_freeze,
	.others = ns_others,
	.pids = ns_pids,
	.terminal = ns_terminal,
	.stream = stream,
	.root = root,
	.net_fds = net_fds,
	.kill = kill_all,
	.reap = reap,
	.destroy = destroy,
};
