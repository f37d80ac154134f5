/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot while calls run: all processes stand still, a child copies the uppers, they go on.
 * The sandbox stays in its generation; the layer is the copy. The child does the work so that
 * the warden answers meanwhile; what it copies belongs to one who cannot always read it, so
 * that without privilege it does so as root of the outer user namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "sys/layercopy.h"
#include "sys/raw.h"
#include "sys/rmtree.h"
#include "warden/generation.h"

enum { FREEZE_MS = 2000 };

/*
 * Under a name that is none of a layer, until it is complete; with a mark that it is a copy, which
 * tells one of those from one that the sandbox lies above.
 */
static void name_new(const struct warden *w, char path[LIMIT_PATH])
{
	(void)snprintf(path, LIMIT_PATH, "%s/layers/new-%s", w->spec.state, w->turn->seal);
}

static int open_new(const struct warden *w)
{
	char path[LIMIT_PATH];
	int fd;

	name_new(w, path);
	if (mkdir(path, 0700) < 0)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void __attribute__((noreturn)) copy_all(const struct warden *w, int layer_fd)
{
	int r = 0;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (w->cell.keep.outer_ns >= 0 && setns(w->cell.keep.outer_ns, CLONE_NEWUSER) < 0)
		r = -errno;
	for (int i = 0; i < w->spec.nmounts && r == 0; i++) {
		char name[12];

		if (w->uppers[i] < 0 || !layers_touched(w, i))
			continue;
		(void)snprintf(name, sizeof name, "%d", i);
		r = layercopy(&w->uppers[i], 1, 1, layer_fd, name, w->spec.rootful);
	}
	if (r == 0 && mkdirat(layer_fd, "copy", 0700) < 0)
		r = -errno;
	_exit(r < 0 ? -r & 0xff : 0);
}

static uint64_t thaw(struct warden *w)
{
	struct turn *t = w->turn;
	uint64_t us;

	if (!t->frozen_ns)
		return 0;
	(void)cgroup_freeze(&w->cell.cgroup, false, 0);
	us = (clock_mono_ns() - t->frozen_ns) / NS_PER_US;
	t->frozen_ns = 0;
	return us;
}

static int rename_new(const struct warden *w)
{
	char from[LIMIT_PATH], to[LIMIT_PATH];

	name_new(w, from);
	(void)snprintf(to, sizeof to, "%s/layers/%s", w->spec.state, w->turn->seal);
	return rename(from, to) < 0 ? -errno : 0;
}

static void remove_new(const struct warden *w)
{
	char path[LIMIT_PATH];

	name_new(w, path);
	(void)rmtree_at(AT_FDCWD, path);
}

/* The child is gone or will be: its status as of wait(2). */
static int stop_waiting(struct warden *w)
{
	struct turn *t = w->turn;
	int st = 0;

	loop_del(&w->loop, &t->copy_io);
	fd_close(&t->copy_pidfd);
	while (waitpid(t->copy_pid, &st, 0) < 0 && errno == EINTR)
		;
	t->copy_pid = 0;
	return st;
}

static void on_copied(struct loop_io *io, uint32_t events)
{
	struct turn *t = container_of(io, struct turn, copy_io);
	struct warden *w = t->w;
	int st = stop_waiting(w);
	uint64_t freeze_us = thaw(w);
	struct err e = { 0 };
	int r = WIFEXITED(st) ? -WEXITSTATUS(st) : -EIO;

	(void)events;
	failpoint("copy.copied");
	if (r == 0)
		r = rename_new(w);
	failpoint("copy.renamed");
	if (r == 0) {
		turn_answer(w, TURN_COPIED, freeze_us);
		generation_done(w);
		return;
	}
	remove_new(w);
	(void)err_sys(&e, -r, "copy the files of '%s'", w->spec.id);
	turn_fail(w, &e);
}

static int start_copy(struct warden *w, int layer_fd)
{
	struct turn *t = w->turn;
	struct raw_clone_args args = {
		.flags = RAW_CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&t->copy_pidfd,
		.exit_signal = SIGCHLD,
	};
	pid_t pid = raw_clone3(&args);

	if (pid < 0)
		return -errno;
	if (pid == 0)
		copy_all(w, layer_fd);
	t->copy_pid = pid;
	return loop_add(&w->loop, &t->copy_io, t->copy_pidfd, EPOLLIN, on_copied);
}

int turn_copy(struct warden *w, struct err *e)
{
	struct turn *t = w->turn;
	auto_close int layer = FD_NONE;
	int r;

	if (!w->cell.has_cgroup) {
		err_set(e, ERR_NOT_ALLOWED, "commands run, and here they cannot be made to stand "
					    "still for a copy: there is no control group");
		return err_hint(e, "wait until they have ended, or run cay where groups are "
				   "delegated: systemd-run --user --scope -p Delegate=yes");
	}
	layer = open_new(w);
	if (layer < 0)
		return err_sys(e, -layer, "make a layer");
	t->frozen_ns = clock_mono_ns();
	r = cgroup_freeze(&w->cell.cgroup, true, FREEZE_MS);
	if (r == 0)
		r = start_copy(w, layer);
	if (r == 0)
		return 0;
	(void)thaw(w);
	remove_new(w);
	return err_sys(e, -r, "make the commands stand still");
}

void turn_copy_end(struct warden *w)
{
	(void)raw_pidfd_signal(w->turn->copy_pidfd, SIGKILL);
	(void)stop_waiting(w);
	(void)thaw(w);
}
