/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change of generation in storage (store/storage.h). Files cannot be renamed from one subvolume
 * to another, but a subvolume can be renamed. So a generation is one subvolume, with all its uppers
 * and their work directories, and becomes the layer as it is. Every mount gets a new upper.
 * Unchanged uppers do not belong in a layer: they move to `work`, which is removed later.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/io.h"
#include "sys/files/btrfs.h"
#include "sys/files/rmtree.h"
#include "warden/generation/generation.h"

enum { PLACE = 64 };

static int place_of(const struct warden *w, const struct generation_switch *t, char out[PLACE])
{
	if (t->seal[0])
		(void)snprintf(out, PLACE, "%s", t->seal);
	else
		(void)snprintf(out, PLACE, "old/%u", t->generation);
	return t->seal[0] ? w->layers_fd : w->disk_fd;
}

/* Mounts in use keep their files, whatever the names are. */
static int put_aside(const struct warden *w, int i, bool back)
{
	char here[24], there[32];

	(void)snprintf(here, sizeof here, "upper/%d", i);
	(void)snprintf(there, sizeof there, "upper/work/same-%d", i);
	return renameat(w->disk_fd, back ? there : here, w->disk_fd, back ? here : there) < 0
		       ? -errno
		       : 0;
}

int volume_move_away(struct warden *w, struct generation_switch *t)
{
	char to[PLACE];
	int r = t->seal[0] ? 0 : io_mkdir(w->disk_fd, "old", 0700);

	for (int i = 0; i < w->spec.nmounts && r == 0; i++) {
		if (w->uppers[i] < 0)
			continue;
		if (t->same[i] && t->seal[0])
			r = put_aside(w, i, false);
		if (r == 0)
			t->moved[i] = true;
	}
	failpoint("switch.moving");
	if (r == 0 && renameat(w->disk_fd, "upper", place_of(w, t, to), to) < 0)
		r = -errno;
	t->volume_moved = r == 0;
	return r;
}

int volume_move_back(struct warden *w, struct generation_switch *t)
{
	char from[PLACE];
	int r = 0;

	if (t->volume_moved && renameat(place_of(w, t, from), from, w->disk_fd, "upper") < 0)
		r = -errno;
	for (int i = 0; i < w->spec.nmounts && r == 0; i++) {
		if (t->moved[i] && t->same[i] && t->seal[0])
			r = put_aside(w, i, true);
		t->moved[i] = false;
	}
	t->volume_moved = false;
	return r;
}

int volume_rename_next(struct warden *w)
{
	int r = renameat(w->disk_fd, "next", w->disk_fd, "upper") < 0 ? -errno : 0;

	failpoint("switch.renamed");
	return r;
}

int volume_copy(const struct warden *w, const char *name)
{
	auto_close int upper =
		openat(w->disk_fd, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return upper < 0 ? -errno : btrfs_snapshot(upper, w->layers_fd, name, false);
}

int volume_tidy_copy(const struct warden *w, const char *name)
{
	char path[PLACE];
	int r;

	(void)snprintf(path, sizeof path, "%s/work", name);
	r = rmtree_at(w->layers_fd, path);
	for (int i = 0; i < w->spec.nmounts && r == 0; i++) {
		if (!w->gen_switch->same[i])
			continue;
		(void)snprintf(path, sizeof path, "%s/%d", name, i);
		if (unlinkat(w->layers_fd, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
			r = -errno;
	}
	return r;
}
