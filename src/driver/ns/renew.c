/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The next generation of a running sandbox's file systems, made by a helper process:
 *
 *   1 take hold of the layers, where the host's paths can be seen: in our own mount namespace,
 *     or, where we have no right to bind there, in a copy of it that U1 owns
 *   2 enter M1: the keel, with the last generation on one of its mount points
 *   3 copy that one's /proc, /dev and /sys, which go with the processes
 *   4 mount the new root on the other mount point, and everything in it
 *   5 detach the last generation, and the stage, which was hidden in it
 *   6 enter U2 and a mount namespace below it, in which all mounts are locked
 *   7 report it, wait until the warden has looked at it (posture.h) and init has entered it, and
 * end: what has to be let go of is waited for there, by nobody
 *
 * Those who run in the last generation have a mount namespace of their own and keep it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/ns/launch.h"
#include "driver/ns/posture.h"
#include "driver/ns/prepare.h"
#include "sys/fdpass.h"
#include "sys/mnt.h"
#include "sys/raw.h"

struct helper {
	const struct cell_spec *spec;
	const struct cell_keep *keep;
	const bool *same;
	unsigned generation;
	int report_fd;
};

enum { NEXT_FD_MOUNT_NS, NEXT_FD_ROOT, NEXT_FD_DEVPTS, NEXT_FDS };

static void __attribute__((noreturn)) fail(const struct helper *h, int err, const char *what)
{
	struct launch_report rep = { .sys = -err };

	(void)snprintf(rep.what, sizeof rep.what, "%s", what);
	(void)fdpass_send(h->report_fd, &rep, sizeof rep, NULL, 0);
	_exit(1);
}

static void must(const struct helper *h, int r, const char *what)
{
	if (r < 0)
		fail(h, r, what);
}

static int last(int r)
{
	return r < 0 ? -errno : 0;
}

/* Where paths of the host lead where they should, and mounts may be made of them. */
static void see_host(const struct helper *h)
{
	if (h->keep->outer_ns < 0)
		return;
	must(h, last(setns(h->keep->outer_ns, CLONE_NEWUSER)), "enter the outer user namespace");
	must(h, last(unshare(CLONE_NEWNS)), "copy the mount namespace");
}

static int copy_parts(struct tree *t, int old_fd)
{
	(void)snprintf(t->what, sizeof t->what, "copy /proc, /dev and /sys");
	t->proc_fd = mnt_copy_at(old_fd, "proc");
	if (t->proc_fd < 0)
		return t->proc_fd;
	t->dev_fd = mnt_copy_at(old_fd, "dev");
	if (t->dev_fd < 0)
		return t->dev_fd;
	t->sys_fd = mnt_copy_at(old_fd, "sys");
	return t->sys_fd < 0 ? t->sys_fd : 0;
}

/* On top of a directory of the last generation, with which it goes. */
static int make_stage(struct tree *t, int old_fd)
{
	static const struct mnt_opt opts[] = { { "mode", "0700" },
					       { "size", "64k" },
					       { NULL, NULL } };

	(void)snprintf(t->what, sizeof t->what, "make a stage for mounts");
	t->stage_fd = mnt_new("tmpfs", opts, RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC);
	return t->stage_fd < 0 ? t->stage_fd : mnt_attach_at(t->stage_fd, old_fd, "sys");
}

static void build(const struct helper *h, struct tree *t)
{
	const char *old = tree_slot(h->generation - 1);
	auto_close int old_fd = FD_NONE;
	int r = 0;

	t->keel_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	old_fd = openat(t->keel_fd, old, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	must(h, t->keel_fd < 0 || old_fd < 0 ? -errno : 0, "open the last generation");
	/* What an attempt has left that failed half way. */
	(void)umount2(tree_slot(h->generation), MNT_DETACH);
	r = copy_parts(t, old_fd);
	if (r == 0)
		r = make_stage(t, old_fd);
	if (r == 0)
		r = tree_mounts(t);
	if (r == 0)
		r = tree_place(t);
	must(h, r, t->what);
	must(h, last(fchdir(t->keel_fd)), "go to the keel");
	must(h, last(umount2(old, MNT_DETACH)), "detach the last generation");
}

static int enter_inner(const struct helper *h)
{
	if (setns(h->keep->user_ns, CLONE_NEWUSER) < 0)
		return -errno;
	if (h->spec->rootful &&
	    (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
		return -errno;
	return last(unshare(CLONE_NEWNS));
}

static void __attribute__((noreturn)) helper_run(const struct helper *h)
{
	struct launch_report rep = { .sys = 0 };
	int fds[NEXT_FDS + CELL_MOUNTS], self;
	struct tree t;
	char end;

	tree_init(&t, h->spec, h->spec->rootful ? h->keep->user_ns : FD_NONE, h->keep->owner_ns);
	t.detached = true;
	t.upper = "next";
	t.same = h->same;
	t.same_fd = h->keep->mount_fd;
	t.generation = h->generation;
	self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	t.fds_fd = openat(self, "fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	must(h, self < 0 || t.fds_fd < 0 ? -errno : 0, "open /proc/self");
	see_host(h);
	must(h, tree_gather(&t), t.what);
	must(h, last(setns(h->keep->mount_ns, CLONE_NEWNS)), "enter the mount namespace");
	build(h, &t);
	must(h, last(chdir(tree_slot(h->generation))), "go to the root");
	must(h, enter_inner(h), "enter the user namespace");
	must(h, last(chroot(".")), "change the root");
	fds[NEXT_FD_MOUNT_NS] = openat(self, "ns/mnt", O_RDONLY | O_CLOEXEC);
	fds[NEXT_FD_ROOT] = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fds[NEXT_FD_DEVPTS] = open("dev/pts", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (int i = 0; i < NEXT_FDS; i++)
		must(h, last(fds[i]), "open the next generation");
	(void)fdpass_send(h->report_fd, &rep, sizeof rep, fds,
			  NEXT_FDS + tree_fds(&t, fds + NEXT_FDS));
	_exit(read(h->report_fd, &end, 1) > 0); /* 0: it has been looked at */
}

static int await(int fd, const struct cell_spec *s, struct cell_next *ret, struct err *e)
{
	struct launch_report rep = { 0 };
	int fds[NEXT_FDS + CELL_MOUNTS], n = 0;
	int r = fdpass_recv(fd, &rep, sizeof rep, fds, (int)ARRAY_LEN(fds), &n);

	if (r == 0 && rep.sys == 0 && n >= NEXT_FDS &&
	    tree_take_fds(s, ret->mount_fd, fds + NEXT_FDS, n - NEXT_FDS) == 0) {
		ret->mount_ns = fds[NEXT_FD_MOUNT_NS];
		ret->root_fd = fds[NEXT_FD_ROOT];
		ret->devpts_fd = fds[NEXT_FD_DEVPTS];
		return 0;
	}
	for (int i = 0; i < n; i++)
		fd_close(&fds[i]);
	rep.what[sizeof rep.what - 1] = '\0';
	if (r < 0 || rep.sys == 0)
		return err_set(e, ERR_FAILED, "the next generation could not be made");
	err_sys(e, rep.sys, "%s", rep.what);
	return err_ctx(e, "make the next generation");
}

/* What the helper is in is what init will be in: its mounts, and who may change them. */
static int look(pid_t pid, const struct cell_spec *s, const struct cell_keep *k,
		const struct cell_next *n, struct err *e)
{
	const struct launch l = { .spec = s };
	struct posture p = POSTURE_INIT;
	auto_close int proc = FD_NONE;
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return err_sys(e, errno, "look at the next generation");
	p.l = &l;
	p.proc_fd = proc;
	p.root_fd = n->root_fd;
	if (posture_mounts(&p, e) == 0 && posture_owner(n->mount_ns, k->user_ns, e) == 0)
		return 0;
	err_ctx(e, "make the next generation");
	return err_hint(e, "nobody has entered it, and the sandbox goes on as it was; this is a "
			   "fault of Cay or of the kernel: report it");
}

/* It has done its work and only lets go of things; it must not be waited for in vain. */
void renew_reap(struct cell *c)
{
	if (c->keep.helper > 0)
		(void)kill(c->keep.helper, SIGKILL);
	while (c->keep.helper > 0 && waitpid(c->keep.helper, NULL, 0) < 0 && errno == EINTR)
		;
	c->keep.helper = 0;
}

int renew(struct cell *c, const struct cell_spec *spec, const bool *same, struct cell_next *ret,
	  struct err *e)
{
	struct helper h = { spec, &c->keep, same, c->keep.generation + 1, FD_NONE };
	int pair[2], r;
	pid_t pid;

	cell_next_init(ret);
	renew_reap(c);
	if (prepare_next(spec, same, h.generation, c->has_quota, e) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, errno, "make a socket pair");
	h.report_fd = pair[1];
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]); /* or we would wait for ourselves */
		helper_run(&h);
	}
	(void)close(pair[1]);
	r = pid < 0 ? err_sys(e, errno, "start a helper") : await(pair[0], spec, ret, e);
	if (r == 0)
		r = look(pid, spec, &c->keep, ret, e);
	ret->helper_fd = pair[0];
	if (r < 0)
		cell_next_done(ret);
	/* Not waited for: it still lets go of what it had, for a while. */
	c->keep.helper = pid > 0 ? pid : 0;
	if (r == 0)
		c->keep.generation = h.generation;
	return r;
}
