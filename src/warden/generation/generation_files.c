/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of a change of generation: which ones move, and which ones remain to be removed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/io.h"
#include "sys/files/voltree.h"
#include "sys/process/close_but.h"
#include "sys/process/raw.h"
#include "warden/call/call.h"
#include "warden/generation/generation.h"

enum { SWEEP_NICE = 10, PLACE = 64, SEAL_MS = 500 };

static bool has_layer(const char (*ids)[LAYER_ID], int n, const char *id)
{
	for (int i = 0; i < n; i++)
		if (strcmp(ids[i], id) == 0)
			return true;
	return false;
}

/* True if a layer that only one of the two stacks has contains anything for mount i. */
static bool differ(const struct warden *w, const char (*a)[LAYER_ID], int na,
		   const char (*b)[LAYER_ID], int nb, int i)
{
	char path[64];

	for (int j = 0; j < na; j++) {
		auto_close int fd = FD_NONE;

		if (has_layer(b, nb, a[j]))
			continue;
		(void)snprintf(path, sizeof path, "%s/%d", a[j], i);
		fd = layer_open(&w->roots, path, O_PATH);
		if (fd >= 0)
			return true;
	}
	return false;
}

/* True if no mount changes. */
bool switch_find_same(const struct warden *w, struct generation_switch *t)
{
	bool all = true;

	for (int i = 0; i < w->spec.nmounts; i++) {
		if (w->uppers[i] < 0)
			continue;
		t->same[i] = !layers_touched(w, i) &&
			     !differ(w, w->layers, w->spec.nlayers, t->layers, t->nlayers, i) &&
			     !differ(w, t->layers, t->nlayers, w->layers, w->spec.nlayers, i);
		all &= t->same[i];
	}
	return all;
}

/*
 * The new place of an upper: in the layer, or in the directory for removal. Returns the descriptor
 * that the path is relative to.
 */
static int place_of(const struct warden *w, const struct generation_switch *t, int i,
		    char out[PLACE])
{
	if (t->seal[0])
		(void)snprintf(out, PLACE, "%s/%d", t->seal, i);
	else
		(void)snprintf(out, PLACE, "old/%u/%d", t->generation, i);
	return t->seal[0] ? w->layers_fd : w->disk_fd;
}

static int make_place(const struct warden *w, const struct generation_switch *t)
{
	char path[PLACE];
	int r;

	if (t->seal[0])
		return mkdirat(w->layers_fd, t->seal, 0700) < 0 ? -errno : 0;
	r = io_mkdir(w->disk_fd, "old", 0700);
	(void)snprintf(path, sizeof path, "old/%u", t->generation);
	return r < 0 ? r : io_mkdir(w->disk_fd, path, 0700);
}

int switch_move_away(struct warden *w, struct generation_switch *t)
{
	char name[24], to[PLACE];
	int r;

	/* It describes the last switch, which may have had the same target. */
	if (unlinkat(w->dir_fd, "top", 0) < 0 && errno != ENOENT)
		return -errno;
	if (w->spec.storage)
		return volume_move_away(w, t);
	r = make_place(w, t);
	for (int i = 0; i < w->spec.nmounts && r == 0; i++) {
		if (w->uppers[i] < 0 || t->same[i])
			continue;
		(void)snprintf(name, sizeof name, "upper/%d", i);
		if (renameat(w->disk_fd, name, place_of(w, t, i, to), to) < 0)
			r = -errno;
		else
			t->moved[i] = true;
		failpoint("switch.moving");
	}
	return r;
}

int switch_move_back(struct warden *w, struct generation_switch *t)
{
	char name[24], from[PLACE];

	if (w->spec.storage)
		return volume_move_back(w, t);
	for (int i = 0; i < w->spec.nmounts; i++) {
		if (!t->moved[i])
			continue;
		(void)snprintf(name, sizeof name, "upper/%d", i);
		if (renameat(place_of(w, t, i, from), from, w->disk_fd, name) < 0)
			return -errno;
		t->moved[i] = false;
		failpoint("switch.undoing");
	}
	if (t->seal[0])
		(void)unlinkat(w->layers_fd, t->seal, AT_REMOVEDIR);
	return 0;
}

int switch_remember_fresh(struct warden *w)
{
	for (int i = 0; i < w->spec.nmounts; i++) {
		char name[24];

		(void)snprintf(name, sizeof name, "next/%d", i);
		if (w->gen_switch->moved[i] && fstatat(w->disk_fd, name, &w->fresh[i], 0) < 0)
			return -errno;
	}
	return 0;
}

/*
 * The moment of completion, for ops/lost.c if the warden dies. A link has no content that could
 * reach the disk later than its name.
 */
static int write_top(struct warden *w)
{
	const char *top = w->spec.nlayers ? w->spec.layers[0] : "-";

	return symlinkat(top, w->dir_fd, "top") < 0 ? -errno : 0;
}

int switch_rename_next(struct warden *w)
{
	int r;

	failpoint("switch.entered");
	r = write_top(w);
	if (r < 0)
		return r;
	failpoint("switch.top");
	if (w->spec.storage)
		return volume_rename_next(w);
	for (int i = 0; i < w->spec.nmounts; i++) {
		char from[24], to[24];

		(void)snprintf(from, sizeof from, "next/%d", i);
		(void)snprintf(to, sizeof to, "upper/%d", i);
		if (w->gen_switch->moved[i] && renameat(w->disk_fd, from, w->disk_fd, to) < 0)
			return -errno;
	}
	failpoint("switch.renamed");
	return unlinkat(w->disk_fd, "next", AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Exit status of a sweeper. */
enum { SWEPT, BUSY, NOT_SEALED };

static void refuse_unsealed(struct warden *w, int how)
{
	struct err e = { 0 };

	(void)err_set(&e, ERR_FAILED, "%s",
		      how == BUSY ? "something inside still writes to files that were sealed"
				  : "files that were sealed cannot be made read-only");
	guard_refuse(w, &e);
}

/* flags: for waitpid(2). */
static void reap(struct sweeper *s, int flags)
{
	int status = 0;
	pid_t r;

	do
		r = waitpid(s->pid, &status, flags);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return;
	s->pid = 0;
	loop_del(&s->w->loop, &s->io);
	fd_close(&s->pidfd);
	if (r > 0 && WIFEXITED(status) && WEXITSTATUS(status) != SWEPT)
		refuse_unsealed(s->w, WEXITSTATUS(status));
	else
		spare_make(s->w); /* only now: init cannot reach the layer any more */
}

static void on_swept(struct loop_io *io, uint32_t events)
{
	(void)events;
	reap(container_of(io, struct sweeper, io), WNOHANG);
}

/* A free slot; if there is none, wait for the first sweeper. */
static struct sweeper *free_slot(struct warden *w)
{
	for (size_t i = 0; i < ARRAY_LEN(w->sweepers); i++)
		if (!w->sweepers[i].pid)
			return &w->sweepers[i];
	reap(&w->sweepers[0], 0);
	return &w->sweepers[0];
}

/*
 * Make sure that init cannot write to the layer through anything it kept from the last generation.
 * A healthy init has nothing open there for writing. The files of other processes close when those
 * end, but the kernel may need a moment for descriptors in transit in a socket.
 */
static int seal(struct warden *w, const struct generation_switch *t)
{
	struct err e = { 0 };
	int r = t->seal[0] ? w->driver->seal(w->cell, t->other, t->moved, &e) : 0;

	for (int waited = 0; r > 0 && waited < SEAL_MS; waited++) {
		(void)usleep(1000);
		r = w->driver->seal(w->cell, t->other, t->moved, &e);
	}
	return r == 0 ? SWEPT : r > 0 ? BUSY : NOT_SEALED;
}

static int keep_what_it_takes(const struct warden *w, const struct generation_switch *t, int dirfd)
{
	int keep[CELL_MOUNTS + 16] = { dirfd };
	int n = w->driver->keep_fds(w->cell, t->other, keep + 1, (int)ARRAY_LEN(keep) - 1);

	return n < 0 ? n : close_but(keep, n + 1);
}

/*
 * t: the switch whose last generation is to be sealed; NULL: only remove. heap may be NULL.
 *
 * Runs at low priority, with only the descriptors that it needs. The last close of a mount happens
 * here, because the kernel then tears down a whole file system.
 */
static void __attribute__((noreturn))
sweeper_run(struct warden *w, struct generation_switch *t, int dirfd, const char *heap)
{
	int how = SWEPT;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (t)
		how = keep_what_it_takes(w, t, dirfd) < 0 ? NOT_SEALED : seal(w, t);
	else
		(void)close_but(&dirfd, 1);
	(void)setpriority(PRIO_PROCESS, 0, SWEEP_NICE);
	if (heap)
		(void)voltree_remove(dirfd, heap);
	_exit(how);
}

static void sweep(struct warden *w, struct generation_switch *t, int dirfd, const char *heap)
{
	struct sweeper *s = free_slot(w);
	pid_t pid = fork();

	if (pid == 0)
		sweeper_run(w, t, dirfd, heap);
	if (pid < 0) {
		if (t && t->seal[0])
			refuse_unsealed(w, NOT_SEALED);
		return;
	}
	*s = (struct sweeper){ .w = w, .pid = pid, .pidfd = raw_pidfd_open(pid) };
	/* If the loop cannot watch it, wait for it. */
	if (s->pidfd < 0 || loop_add(&w->loop, &s->io, s->pidfd, EPOLLIN, on_swept) < 0)
		reap(s, 0);
}

/* Move work directories that are no longer used to the directory for removal. */
static void drop_work(struct warden *w, struct generation_switch *t, const char *heap)
{
	char from[48], to[PLACE + 24];

	if (io_mkdir(w->disk_fd, "old", 0700) == 0)
		(void)io_mkdir(w->disk_fd, heap, 0700);
	for (int i = 0; i < w->spec.nmounts; i++) {
		if (!t->moved[i])
			continue;
		(void)snprintf(from, sizeof from, "work/%d.%u", i, w->made_in[i]);
		(void)snprintf(to, sizeof to, "%s/work-%d", heap, i);
		(void)renameat(w->disk_fd, from, w->disk_fd, to);
		w->made_in[i] = w->cell->generation;
	}
}

void switch_drop_last(struct warden *w, struct generation_switch *t)
{
	bool sealed = w->spec.storage && t->seal[0], later;
	char heap[PLACE];

	if (sealed)
		(void)snprintf(heap, sizeof heap, "%s/work", t->seal);
	else
		(void)snprintf(heap, sizeof heap, "old/%u", t->generation);
	if (!w->spec.storage)
		drop_work(w, t, heap);
	/* The dropped files are removed after the walk over them. */
	later = !t->seal[0] && walk_remove_later(w, t->generation, heap);
	sweep(w, t, sealed ? w->layers_fd : w->disk_fd, later ? NULL : heap);
	w->driver->drop(w->cell, TAKE_PTR(t->other));
}

void turn_remove(struct warden *w, const char *heap)
{
	if (w->state != SANDBOX_ENDING)
		sweep(w, NULL, w->disk_fd, heap);
}

/* Their files are removed with the rest of the sandbox. */
void switch_end_sweepers(struct warden *w)
{
	for (size_t i = 0; i < ARRAY_LEN(w->sweepers); i++) {
		if (!w->sweepers[i].pid)
			continue;
		(void)kill(w->sweepers[i].pid, SIGKILL);
		reap(&w->sweepers[i], 0);
	}
}
