/* SPDX-License-Identifier: Apache-2.0 */
/* The warden's own view of a generation: descriptors of its uppers and of the layers below. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/dir.h"
#include "sys/files/attrs.h"
#include "sys/files/resolve.h"
#include "warden/warden.h"

/* Same format as a sandbox's id: [a-z0-9]{8,20}. It becomes part of a path. */
static bool id_ok(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");

	return n >= 8 && n <= 20 && id[n] == '\0';
}

int layers_take(struct warden *w, int n, struct str id, struct err *e)
{
	if (n >= CELL_LAYERS)
		return err_set(e, ERR_LIMIT, "more than %d layers", CELL_LAYERS);
	if (!str_copy(w->layers[n], LAYER_ID, id) || !id_ok(w->layers[n]))
		return err_set(e, ERR_INVALID, "a bad id of a layer");
	w->spec.layers[n] = w->layers[n];
	w->spec.nlayers = n + 1;
	return 0;
}

static void sealed_done(struct sealed *l)
{
	for (int i = 0; i < CELL_MOUNTS && l->fds; i++)
		fd_close(&l->fds[i]);
	free(l->fds);
	*l = (struct sealed){ .fds = NULL };
}

static int sealed_open(const struct warden *w, struct sealed *l, const char *id)
{
	char path[64];

	(void)str_copy(l->id, sizeof l->id, str_of(id));
	l->fds = malloc(CELL_MOUNTS * sizeof *l->fds);
	if (!l->fds)
		return -ENOMEM;
	for (int i = 0; i < CELL_MOUNTS; i++)
		l->fds[i] = FD_NONE;
	for (int i = 0; i < w->spec.nmounts; i++) {
		if (w->spec.mounts[i].kind != MOUNT_OVERLAY)
			continue;
		(void)snprintf(path, sizeof path, "%s/%d", id, i);
		l->fds[i] = layer_open(&w->roots, path, O_PATH | O_DIRECTORY);
		if (l->fds[i] < 0 && l->fds[i] != -ENOENT)
			return l->fds[i];
	}
	return 0;
}

static struct sealed *sealed_find(struct warden *w, const char *id)
{
	for (int j = 0; j < CELL_LAYERS; j++)
		if (w->sealed[j].fds && strcmp(w->sealed[j].id, id) == 0)
			return &w->sealed[j];
	return NULL;
}

/* Layers never change, so descriptors of the same layers stay open. */
static int open_sealed(struct warden *w)
{
	struct sealed now[CELL_LAYERS] = { 0 };
	int r = 0;

	for (int j = 0; j < w->spec.nlayers && r == 0; j++) {
		struct sealed *was = sealed_find(w, w->spec.layers[j]);

		if (was) {
			now[j] = *was;
			*was = (struct sealed){ .fds = NULL };
		} else {
			r = sealed_open(w, &now[j], w->spec.layers[j]);
		}
	}
	for (int j = 0; j < CELL_LAYERS; j++)
		sealed_done(&w->sealed[j]);
	memcpy(w->sealed, now, sizeof now);
	return r;
}

static void forget_list(struct warden *w, int i)
{
	free(w->layer_fds[i]);
	w->layer_fds[i] = NULL;
	w->nlayer_fds[i] = 0;
}

static int list_sealed(struct warden *w, int i)
{
	forget_list(w, i);
	if (w->spec.nlayers == 0)
		return 0;
	w->layer_fds[i] = calloc((size_t)w->spec.nlayers, sizeof(int));
	if (!w->layer_fds[i])
		return -ENOMEM;
	for (int j = 0; j < w->spec.nlayers; j++)
		if (w->sealed[j].fds[i] >= 0 && !layer_is_start(w->sealed[j].id))
			w->layer_fds[i][w->nlayer_fds[i]++] = w->sealed[j].fds[i];
	return 0;
}

static int open_upper(struct warden *w, int i)
{
	char name[24];
	struct stat st;

	(void)snprintf(name, sizeof name, "upper/%d", i);
	w->uppers[i] = openat(w->disk_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->uppers[i] < 0 || fstat(w->uppers[i], &st) < 0)
		return -errno;
	/* Not if it was recorded before any process could use it. */
	if (st.st_ino != w->fresh[i].st_ino)
		w->fresh[i] = st;
	return 0;
}

/* The frozen start of a mount, if there is one; borrowed. */
static int find_start(const struct warden *w, int i)
{
	for (int j = 0; j < w->spec.nlayers; j++)
		if (layer_is_start(w->sealed[j].id) && w->sealed[j].fds[i] >= 0)
			return w->sealed[j].fds[i];
	return FD_NONE;
}

bool layers_frozen(const struct warden *w, int i)
{
	return find_start(w, i) >= 0;
}

/*
 * Open the last lower; those above it contain only whiteouts. A switch may replace the host's
 * directory with a frozen start.
 */
static int open_lower(struct warden *w, int i)
{
	const struct cell_mount *m = &w->spec.mounts[i];
	int start = find_start(w, i);

	if (m->has_owner)
		fd_close(&w->lowers[i]);
	if (w->lowers[i] < 0)
		w->lowers[i] = start >= 0 ? fcntl(start, F_DUPFD_CLOEXEC, 3)
					  : open(m->lower[m->nlower - 1],
						 O_PATH | O_DIRECTORY | O_CLOEXEC);
	return w->lowers[i] < 0 ? -errno : 0;
}

static int open_one(struct warden *w, int i)
{
	int r = w->uppers[i] < 0 ? open_upper(w, i) : 0;

	if (r == 0)
		r = open_lower(w, i);
	return r < 0 ? r : list_sealed(w, i);
}

int layers_open(struct warden *w, struct err *e)
{
	int r = open_sealed(w);

	if (r < 0)
		return err_sys(e, -r, "open the layers");
	for (int i = 0; i < w->spec.nmounts; i++) {
		r = w->spec.mounts[i].kind == MOUNT_OVERLAY ? open_one(w, i) : 0;
		if (r == -ENOENT && w->lowers[i] < 0) {
			(void)err_sys(e, -r, "'%s', to be shown at '%s'",
				      w->spec.mounts[i].lower[w->spec.mounts[i].nlower - 1],
				      w->spec.mounts[i].dest);
			return err_hint(e,
					"was it moved since the snapshot or sandbox was made? put "
					"it back where it was");
		}
		if (r < 0)
			return err_sys(e, -r, "open the layers of '%s'", w->spec.mounts[i].dest);
	}
	return 0;
}

int layers_move(struct warden *w, const bool *moved, struct err *e)
{
	for (int i = 0; i < CELL_MOUNTS; i++)
		if (moved[i])
			fd_close(&w->uppers[i]);
	return layers_open(w, e);
}

void layers_close(struct warden *w)
{
	for (int i = 0; i < CELL_MOUNTS; i++) {
		fd_close(&w->uppers[i]);
		fd_close(&w->lowers[i]);
		forget_list(w, i);
	}
	for (int j = 0; j < CELL_LAYERS; j++)
		sealed_done(&w->sealed[j]);
}

/* Times have the resolution of a tick: a change may show only in the content. */
bool layers_touched(const struct warden *w, int i)
{
	const struct stat *was = &w->fresh[i];
	struct stat st;

	if (fstat(w->uppers[i], &st) < 0 || st.st_mode != was->st_mode ||
	    st.st_uid != was->st_uid || st.st_gid != was->st_gid ||
	    st.st_mtim.tv_sec != was->st_mtim.tv_sec || st.st_mtim.tv_nsec != was->st_mtim.tv_nsec)
		return true;
	if (!dir_is_empty(w->uppers[i], "."))
		return true;
	/* The upper was made with the xattrs of the topmost layer. */
	return !attrs_same_xattrs(
		w->uppers[i], w->nlayer_fds[i] ? w->layer_fds[i][0] : find_start(w, i), w->rootful);
}

/* The rest of the path below the mount; NULL: not below it. */
static const char *path_below(const char *path, const char *dest)
{
	size_t n = strcmp(dest, "/") == 0 ? 0 : strlen(dest);

	return strncmp(path, dest, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/* With layers on several file systems, the overlay's own inode number may be equal by chance. */
static bool is_below(const struct warden *w, int mount, const char *path)
{
	for (int i = -1; i < w->nlayer_fds[mount]; i++) {
		auto_close int fd = FD_NONE;
		int layer = i < 0 ? w->lowers[mount] : w->layer_fds[mount][i];

		if (layer < 0)
			continue;
		fd = resolve_beneath(layer, path, O_PATH | O_NOFOLLOW, 0);
		if (fd != -ENOENT && fd != -ENOTDIR)
			return true;
	}
	return false;
}

bool layers_is_pure(void *ctx, const char *path, uint64_t ino)
{
	const struct warden *w = ctx;
	const char *rest = NULL;
	auto_close int fd = FD_NONE;
	size_t longest = 0;
	struct stat st;
	int at = -1;

	for (int i = 0; i < w->spec.nmounts; i++) {
		const char *below = path_below(path, w->spec.mounts[i].dest);

		if (below && strlen(w->spec.mounts[i].dest) > longest) {
			longest = strlen(w->spec.mounts[i].dest);
			rest = below;
			at = i;
		}
	}
	if (!rest || !rest[0] || w->uppers[at] < 0)
		return false;
	fd = resolve_beneath(w->uppers[at], rest, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == ino &&
	       (attrs_is_opaque(fd, w->rootful) || !is_below(w, at, rest));
}
