/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Make the next generation of a running sandbox's file systems, in a helper process:
 *
 *   1 open the layers where the host's paths are visible: in our own mount namespace or, if we
 *     may not bind there, in a copy of it that U1 owns
 *   2 enter M1, the mount namespace in which the last generation was assembled: the keel, with
 *     that generation on one of its mount points; and copy it: the next M1
 *   3 there, copy the last generation's /proc, /dev and /sys, which belong to the processes, and
 *     fork the child that will detach the last generation (detach.h)
 *   4 wait for the order, which names the layers and the mounts that stay
 *   5 once the warden has made the new uppers, mount the new root on the other mount point, and
 *     everything in it
 *   6 detach the last generation, and the stage, which is hidden in it
 *   7 enter U2 and a mount namespace below it, in which all mounts are locked
 *   8 report both, prefetch what every command needs, wait until the warden has verified the
 *     generation (posture.h) and init has entered it, and end; so nothing waits for the helper's
 *     slow cleanup
 *
 * Steps 1 to 4 do not depend on the request. After a sandbox's first switch they are done in
 * advance. M1 never changes: a helper that dies or fails, or a generation that is never entered,
 * leaves nothing behind. The next M1 takes its place when the warden enters the next generation
 * (ns_enter), and the reverse if that is undone.
 *
 * Processes in the last generation have their own mount namespace and keep it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "driver/ns/detach.h"
#include "driver/ns/launch.h"
#include "driver/ns/ns.h"
#include "driver/ns/posture.h"
#include "driver/ns/prepare.h"
#include "sys/files/prefetch.h"
#include "sys/ns/mnt.h"
#include "sys/process/close_but.h"
#include "sys/process/fdpass.h"
#include "sys/process/raw.h"

struct helper {
	struct cell_spec spec;
	const struct cell_keep *keep;
	unsigned generation;
	int report_fd;
	int detach_fd; /* to the child that detaches the last generation */
};

/* Everything that is not known in advance. */
struct order {
	struct cell_change change;
	char layers[CELL_LAYERS][LAYER_ID];
	int nlayers;
};

enum {
	END_TRIES = 5000,  /* ms */
	DYING_TRIES = 100, /* ms */
};
enum { NEXT_FD_MOUNT_NS, NEXT_FD_BASE_NS, NEXT_FD_ROOT, NEXT_FD_DEVPTS, NEXT_FDS };

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

/* Go where host paths resolve correctly and we may mount them. */
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

static int make_stage(struct tree *t)
{
	static const struct mnt_opt opts[] = { { "mode", "0700" },
					       { "size", "64k" },
					       { NULL, NULL } };

	(void)snprintf(t->what, sizeof t->what, "make a stage for mounts");
	t->stage_fd = mnt_new("tmpfs", opts, RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC);
	return t->stage_fd < 0 ? t->stage_fd : 0;
}

/*
 * Keep only the descriptors we need of all that the warden has open: the helper may last, and
 * others wait for the ends of those descriptors.
 */
static int close_others(const struct helper *h)
{
	const struct cell_keep *k = h->keep;
	int keep[2 * CELL_MOUNTS + 4], n = 0;

	keep[n++] = h->report_fd;
	keep[n++] = k->mount_ns;
	keep[n++] = k->outer_ns;
	keep[n++] = k->user_ns;
	for (int i = 0; i < CELL_MOUNTS; i++) {
		keep[n++] = k->owner_ns[i];
		keep[n++] = k->mount_fd[i];
	}
	return close_but(keep, n);
}

static int own_mount_ns(int self)
{
	int fd = openat(self, "ns/mnt", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Enter a copy of M1, *ret_base; the last generation there is *ret_old. */
static void make_ready(struct helper *h, struct tree *t, int self, int *ret_base, int *ret_old)
{
	int r;

	must(h, last(setns(h->keep->mount_ns, CLONE_NEWNS)), "enter the mount namespace");
	must(h, last(unshare(CLONE_NEWNS)), "copy the mount namespace");
	*ret_base = own_mount_ns(self);
	must(h, *ret_base, "open the mount namespace");
	t->keel_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	*ret_old = openat(t->keel_fd, tree_slot(h->generation - 1),
			  O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	must(h, t->keel_fd < 0 || *ret_old < 0 ? -errno : 0, "open the last generation");
	r = copy_parts(t, *ret_old);
	if (r == 0)
		r = make_stage(t);
	must(h, r, t->what);
	h->detach_fd = detach_prepare(t, tree_slot(h->generation - 1));
	must(h, h->detach_fd, "fork a child that detaches the last generation");
}

/* EOF: the helper is no longer needed. */
static void take_order(struct helper *h, struct order *o)
{
	if (io_read_exact(h->report_fd, o, sizeof *o) < 0)
		_exit(0);
	h->spec.nlayers = o->nlayers;
	for (int j = 0; j < o->nlayers; j++)
		h->spec.layers[j] = o->layers[j];
}

/* EOF: the warden could not make them. */
static void await_uppers(const struct helper *h)
{
	char go;

	if (io_read_exact(h->report_fd, &go, 1) < 0)
		_exit(0);
}

/* Mounts that stay can be copied only where they are mounted: go there and return. */
static void take_over(const struct helper *h, struct tree *t, int base)
{
	int first = 0;

	while (first < h->spec.nmounts && !tree_is_same(t, first))
		first++;
	if (first == h->spec.nmounts)
		return;
	must(h, last(setns(h->keep->mount_ns, CLONE_NEWNS)), "enter the mount namespace");
	must(h, tree_take_over(t), t->what);
	must(h, last(setns(base, CLONE_NEWNS)), "enter the next mount namespace");
}

static void build(const struct helper *h, struct tree *t, int old_fd, int self)
{
	const char *old = tree_slot(h->generation - 1);
	int r;

	(void)snprintf(t->what, sizeof t->what, "make a stage for mounts");
	/* On top of a directory of the last generation, so that both are detached together. */
	r = mnt_attach_at(t->stage_fd, old_fd, "sys");
	must(h, r, t->what);
	await_uppers(h);
	r = tree_mounts(t);
	if (r == 0)
		r = tree_place(t);
	must(h, r, t->what);
	must(h, last(fchdir(t->keel_fd)), "go to the keel");
	must(h, detach_run(t, old, h->detach_fd, self), "detach the last generation");
}

static int enter_inner(const struct helper *h)
{
	if (setns(h->keep->user_ns, CLONE_NEWUSER) < 0)
		return -errno;
	if (h->spec.rootful &&
	    (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
		return -errno;
	return last(unshare(CLONE_NEWNS));
}

static void report(const struct helper *h, const struct tree *t, int self, int base)
{
	struct launch_report rep = { .sys = 0 };
	int fds[NEXT_FDS + CELL_MOUNTS];

	fds[NEXT_FD_MOUNT_NS] = own_mount_ns(self);
	fds[NEXT_FD_BASE_NS] = base;
	fds[NEXT_FD_ROOT] = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fds[NEXT_FD_DEVPTS] = open("dev/pts", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (int i = 0; i < NEXT_FDS; i++)
		must(h, last(fds[i]), "open the next generation");
	(void)fdpass_send(h->report_fd, &rep, sizeof rep, fds,
			  NEXT_FDS + tree_fds(t, fds + NEXT_FDS));
}

static void __attribute__((noreturn)) helper_run(struct helper *h)
{
	static struct order order;
	int self, base, old;
	struct tree t;
	char end;

	must(h, close_others(h), "close descriptors");
	tree_init(&t, &h->spec, h->spec.rootful ? h->keep->user_ns : FD_NONE, h->keep->owner_ns);
	t.detached = true;
	t.upper = "next";
	t.same_fd = h->keep->mount_fd;
	t.generation = h->generation;
	self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	t.fds_fd = openat(self, "fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	must(h, self < 0 || t.fds_fd < 0 ? -errno : 0, "open /proc/self");
	see_host(h);
	must(h, tree_gather(&t), t.what);
	make_ready(h, &t, self, &base, &old);
	take_order(h, &order);
	t.change = &order.change;
	take_over(h, &t, base);
	build(h, &t, old, self);
	must(h, last(chdir(tree_slot(h->generation))), "go to the root");
	if (h->spec.nested)
		must(h, tree_on_top(), "put the root on top");
	must(h, enter_inner(h), "enter the user namespace");
	must(h, last(chroot(".")), "change the root");
	report(h, &t, self, base);
	prefetch_usual(AT_FDCWD);
	(void)!read(h->report_fd, &end, 1); /* until it is verified and entered */
	while (waitpid(-1, NULL, 0) > 0)
		;
	_exit(0);
}

/* Killed, or out of memory: it has changed nothing in use. */
static int died(struct err *e)
{
	err_set(e, ERR_FAILED, "the next generation could not be made: its helper has died");
	return err_hint(e, "the sandbox goes on as it was; try again");
}

static int await(int fd, const struct cell_spec *s, struct generation *ret, struct err *e)
{
	struct launch_report rep = { 0 };
	int fds[NEXT_FDS + CELL_MOUNTS], n = 0;
	int r = fdpass_recv(fd, &rep, sizeof rep, fds, (int)ARRAY_LEN(fds), &n);

	if (r == 0 && rep.sys == 0 && n >= NEXT_FDS &&
	    tree_take_fds(s, ret->mount_fd, fds + NEXT_FDS, n - NEXT_FDS) == 0) {
		ret->mount_ns = fds[NEXT_FD_MOUNT_NS];
		ret->base_ns = fds[NEXT_FD_BASE_NS];
		ret->root_fd = fds[NEXT_FD_ROOT];
		ret->devpts_fd = fds[NEXT_FD_DEVPTS];
		return 0;
	}
	for (int i = 0; i < n; i++)
		fd_close(&fds[i]);
	rep.what[sizeof rep.what - 1] = '\0';
	if (r < 0 || rep.sys == 0)
		return died(e);
	err_sys(e, rep.sys, "%s", rep.what);
	return err_ctx(e, "make the next generation");
}

/* Verify the helper's namespaces, which init will enter: its mounts, and who may change them. */
static int verify_generation(pid_t pid, const struct cell_spec *s, const struct cell_keep *k,
			     const struct generation *n, struct err *e)
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

/* Reap the helpers that have ended. */
static void reap_ended(struct ns_cell *c)
{
	for (size_t i = 0; i < ARRAY_LEN(c->keep.ending); i++)
		if (c->keep.ending[i] && waitpid(c->keep.ending[i], NULL, WNOHANG) != 0)
			c->keep.ending[i] = 0;
}

/* It ends itself when its helper_fd is closed; nothing makes it faster. */
static void await_end(pid_t *pid)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	for (int i = 0; i < END_TRIES && *pid; i++) {
		if (waitpid(*pid, NULL, WNOHANG) != 0)
			*pid = 0;
		else
			(void)nanosleep(&nap, NULL);
	}
	if (!*pid)
		return;
	(void)kill(*pid, SIGKILL);
	while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
		;
	*pid = 0;
}

/* Do not wait: its cleanup takes long. */
static void let_end(struct ns_cell *c, pid_t pid)
{
	size_t i = 0;

	reap_ended(c);
	while (i < ARRAY_LEN(c->keep.ending) - 1 && c->keep.ending[i])
		i++;
	if (c->keep.ending[i])
		await_end(&c->keep.ending[i]);
	c->keep.ending[i] = pid;
}

static void end_ready(struct ns_cell *c)
{
	if (c->keep.ready > 0)
		(void)kill(c->keep.ready, SIGKILL);
	while (c->keep.ready > 0 && waitpid(c->keep.ready, NULL, 0) < 0 && errno == EINTR)
		;
	c->keep.ready = 0;
	fd_close(&c->keep.ready_fd);
}

void renew_reap(struct ns_cell *c)
{
	end_ready(c);
	for (size_t i = 0; i < ARRAY_LEN(c->keep.ending); i++)
		await_end(&c->keep.ending[i]);
}

static int start(struct ns_cell *c, const struct cell_spec *spec, struct err *e)
{
	struct helper h = { *spec, &c->keep, c->pub.generation + 1, FD_NONE, FD_NONE };
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, errno, "make a socket pair");
	h.report_fd = pair[1];
	pid = fork();
	if (pid == 0)
		helper_run(&h);
	(void)close(pair[1]);
	if (pid < 0) {
		err_sys(e, errno, "start a helper");
		(void)close(pair[0]);
		return -1;
	}
	c->keep.ready = pid;
	c->keep.ready_fd = pair[0];
	return 0;
}

void ns_renew_ahead(struct cell *cell, const struct cell_spec *spec)
{
	struct ns_cell *c = ns_cell(cell);
	struct err ignored = { 0 };

	reap_ended(c);
	if (c->keep.ready <= 0)
		(void)start(c, spec, &ignored);
}

static int tell(const struct ns_cell *c, const void *what, size_t size, struct err *e)
{
	int r = fdpass_send(c->keep.ready_fd, what, size, NULL, 0);

	if (r == -EPIPE)
		return died(e);
	return r < 0 ? err_sys(e, -r, "tell the helper") : 0;
}

static int give_order(const struct ns_cell *c, const struct cell_spec *spec,
		      const struct cell_change *what, struct err *e)
{
	struct order o = { .change = *what, .nlayers = spec->nlayers };

	for (int j = 0; j < spec->nlayers; j++)
		(void)snprintf(o.layers[j], sizeof o.layers[j], "%s", spec->layers[j]);
	return tell(c, &o, sizeof o, e);
}

/* If the helper was dying, there was nothing to verify. */
static bool is_dying(pid_t pid)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	siginfo_t end = { 0 };

	for (int i = 0; i < DYING_TRIES && end.si_pid == 0; i++) {
		(void)nanosleep(&nap, NULL);
		if (waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) < 0)
			return false;
	}
	return end.si_pid != 0;
}

static int try_once(struct ns_cell *c, const struct cell_spec *spec, const struct cell_change *what,
		    struct generation *ret, struct err *e)
{
	/* Make the uppers while the helper works towards them. */
	if ((c->keep.ready <= 0 && start(c, spec, e) < 0) || give_order(c, spec, what, e) < 0 ||
	    prepare_next(spec, what, c->pub.generation + 1, c->pub.has_quota, e) < 0 ||
	    tell(c, "g", 1, e) < 0 || await(c->keep.ready_fd, spec, ret, e) < 0)
		return -1;
	if (verify_generation(c->keep.ready, spec, &c->keep, ret, e) == 0)
		return 0;
	return is_dying(c->keep.ready) ? died(e) : -1;
}

static int make(struct ns_cell *c, const struct cell_spec *spec, const struct cell_change *what,
		struct generation *g, struct err *e)
{
	bool ahead = c->keep.ready > 0;
	int r = try_once(c, spec, what, g, e);

	/* The helper may have died meanwhile, or failed for a temporary reason: retry. */
	if (r < 0 && ahead) {
		generation_close(g);
		end_ready(c);
		r = try_once(c, spec, what, g, e);
	}
	g->helper_fd = TAKE_FD(c->keep.ready_fd);
	if (c->keep.ready)
		let_end(c, c->keep.ready);
	c->keep.ready = 0;
	g->number = c->pub.generation + 1;
	return r;
}

int ns_renew(struct cell *cell, const struct cell_spec *spec, const struct cell_change *what,
	     struct generation **ret, struct err *e)
{
	struct generation *g = generation_new();

	if (!g)
		return err_sys(e, ENOMEM, "make the next generation");
	if (make(ns_cell(cell), spec, what, g, e) < 0) {
		ns_drop(cell, g);
		return -1;
	}
	*ret = g;
	return 0;
}
