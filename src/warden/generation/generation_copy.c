/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot while calls run: the warden freezes all processes, a child copies the uppers, and the
 * processes continue. The sandbox stays in its generation; the layer is the copy. A child does the
 * work so that the warden can answer meanwhile. Without privilege, the child copies as root of the
 * outer user namespace, because the warden's user cannot read all files.
 *
 * In storage the copy is a snapshot of the subvolume, which takes the kernel as long as writing
 * back dirty data. So most data is written back before the freeze.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "sys/files/layercopy.h"
#include "sys/files/voltree.h"
#include "sys/process/raw.h"
#include "warden/call/call.h"
#include "warden/features.h"
#include "warden/generation/generation.h"

enum { FREEZE_MS = 2000, NAME = LAYER_ID + 8 };

/*
 * A temporary name that no layer has, until the copy is complete. It marks the layer as a copy, as
 * opposed to a layer that the sandbox runs above.
 */
static void name_new(const struct warden *w, char name[NAME])
{
	(void)snprintf(name, NAME, "new-%s", w->gen_switch->seal);
}

static int open_new(const struct warden *w)
{
	char name[NAME];
	int fd;

	name_new(w, name);
	if (mkdirat(w->layers_fd, name, 0700) < 0)
		return -errno;
	fd = openat(w->layers_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int copy_files(const struct warden *w)
{
	auto_close int layer_fd = open_new(w);
	int r = layer_fd < 0 ? layer_fd : 0;

	if (r == 0)
		r = w->driver->as_owner(w->cell);
	for (int i = 0; i < w->spec.nmounts && r == 0; i++) {
		char name[12];

		if (w->uppers[i] < 0 || !layers_touched(w, i))
			continue;
		(void)snprintf(name, sizeof name, "%d", i);
		r = layercopy(&w->uppers[i], 1, 1, layer_fd, name, w->spec.rootful);
	}
	return r;
}

static int copy_volume(const struct warden *w)
{
	char name[NAME];

	if (w->gen_switch->flushing)
		return syncfs(w->disk_fd) < 0 ? -errno : 0;
	name_new(w, name);
	return volume_copy(w, name);
}

static void __attribute__((noreturn)) child(const struct warden *w)
{
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = w->spec.storage ? copy_volume(w) : copy_files(w);
	_exit(r < 0 ? -r & 0xff : 0);
}

static uint64_t thaw(struct warden *w)
{
	struct generation_switch *t = w->gen_switch;
	uint64_t us;

	if (!t->frozen_ns)
		return 0;
	(void)w->driver->freeze(w->cell, false, 0);
	us = (clock_mono_ns() - t->frozen_ns) / NS_PER_US;
	t->frozen_ns = 0;
	return us;
}

static int finish_new(const struct warden *w)
{
	char name[NAME], mark[NAME + 8];
	int r;

	name_new(w, name);
	r = w->spec.storage ? volume_tidy_copy(w, name) : 0;
	(void)snprintf(mark, sizeof mark, "%s/copy", name);
	if (r == 0 && mkdirat(w->layers_fd, mark, 0700) < 0)
		r = -errno;
	if (r == 0 && renameat(w->layers_fd, name, w->layers_fd, w->gen_switch->seal) < 0)
		r = -errno;
	return r;
}

static void remove_new(const struct warden *w)
{
	char name[NAME];

	name_new(w, name);
	(void)voltree_remove(w->layers_fd, name);
}

/* The child is gone or ending: returns its status as wait(2) does. */
static int stop_waiting(struct warden *w)
{
	struct generation_switch *t = w->gen_switch;
	int st = 0;

	loop_del(&w->loop, &t->copy_io);
	fd_close(&t->copy_pidfd);
	while (waitpid(t->copy_pid, &st, 0) < 0 && errno == EINTR)
		;
	t->copy_pid = 0;
	return st;
}

static void fail(struct warden *w, int r)
{
	struct err e = { 0 };

	remove_new(w);
	(void)err_sys(&e, -r, "copy the files of '%s'", w->spec.id);
	switch_fail(w, &e);
}

static int freeze_and_copy(struct warden *w);

static void on_copied(struct loop_io *io, uint32_t events)
{
	struct generation_switch *t = container_of(io, struct generation_switch, copy_io);
	struct warden *w = t->w;
	int st = stop_waiting(w);
	uint64_t freeze_us = thaw(w);
	int r = WIFEXITED(st) ? -WEXITSTATUS(st) : -EIO;

	(void)events;
	if (t->flushing) {
		t->flushing = false;
		if (r == 0)
			r = freeze_and_copy(w);
		if (r < 0)
			fail(w, r);
		return;
	}
	failpoint("copy.copied");
	if (r == 0)
		r = finish_new(w);
	failpoint("copy.renamed");
	if (r == 0) {
		switch_answer(w->gen_switch, SWITCH_COPIED, freeze_us);
		generation_done(w);
		return;
	}
	fail(w, r);
}

static int start_child(struct warden *w)
{
	struct generation_switch *t = w->gen_switch;
	struct raw_clone_args args = {
		.flags = RAW_CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&t->copy_pidfd,
		.exit_signal = SIGCHLD,
	};
	pid_t pid = raw_clone3(&args);
	int r;

	if (pid < 0)
		return -errno;
	if (pid == 0)
		child(w);
	t->copy_pid = pid;
	r = loop_add(&w->loop, &t->copy_io, t->copy_pidfd, EPOLLIN, on_copied);
	if (r < 0) { /* the switch is freed before the child would end */
		(void)raw_pidfd_signal(t->copy_pidfd, SIGKILL);
		(void)stop_waiting(w);
	}
	return r;
}

static int freeze_and_copy(struct warden *w)
{
	int r = 0;

	if (w->state != SANDBOX_PAUSED) {
		w->gen_switch->frozen_ns = clock_mono_ns();
		r = w->driver->freeze(w->cell, true, FREEZE_MS);
	}
	if (r == 0) {
		/* The copy must match the mounts that are unchanged now. */
		(void)switch_find_same(w, w->gen_switch);
		r = start_child(w);
	}
	if (r < 0)
		(void)thaw(w);
	return r;
}

int switch_copy(struct warden *w, struct err *e)
{
	int r;

	if (!warden_has(w, HAS_FREEZE) && w->state != SANDBOX_PAUSED) {
		err_set(e, ERR_NOT_ALLOWED,
			"commands run, and here they cannot be made to stand "
			"still for a copy: there is no control group");
		return err_hint(
			e, "wait until they have ended, pause it first (cay pause), or run cay "
			   "where groups are delegated: systemd-run --user --scope -p "
			   "Delegate=yes");
	}
	spare_drop(w); /* otherwise the copying child would keep the spare's stdin open */
	w->gen_switch->flushing = w->spec.storage != NULL;
	r = w->gen_switch->flushing ? start_child(w) : freeze_and_copy(w);
	if (r == 0)
		return 0;
	remove_new(w);
	return err_sys(e, -r, "make the commands stand still");
}

void switch_copy_end(struct warden *w)
{
	(void)raw_pidfd_signal(w->gen_switch->copy_pidfd, SIGKILL);
	(void)stop_waiting(w);
	(void)thaw(w);
}
