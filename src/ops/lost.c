/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warden moves the uppers away, makes the next ones in `next`, and lets init enter. Then it
 * writes the name of its topmost layer into the link `top`, which it had removed before. At that
 * moment the operation is done. If the warden died before it, we move everything back; after it, we
 * do the rest. In storage, the uppers are one subvolume instead of directories, and the same
 * applies.
 */
#include "ops/lost.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/io.h"
#include "store/dead.h"
#include "store/layer_open.h"
#include "store/snapshots.h"
#include "store/storage.h"
#include "sys/files/rmtree.h"
#include "sys/files/voltree.h"

enum { MOUNTS_MAX = 64 };

struct lost {
	struct catalog *c;
	const struct state *s;
	const char *id;
	int dir;		  /* sandboxes/ID */
	int disk;		  /* where its files are: there, or in storage */
	struct layer_roots roots; /* state directory and storage */
};

static int give_up(const struct lost *l, int r, const char *what, struct err *e)
{
	return err_sys(e, -r, "%s of sandbox '%s'", what, l->id);
}

static bool is_pooled(const struct lost *l)
{
	return l->disk != l->dir;
}

/* The directory of the sandbox's own layers. */
static int layer_base(const struct lost *l)
{
	return is_pooled(l) ? l->roots.storage_fd : l->roots.state_fd;
}

static bool exists(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * Move from/N to to/N for every N that is missing there; in storage everything at once, or nothing.
 */
static int move_missing(const struct lost *l, int from_dir, const char *from, int to_dir,
			const char *to)
{
	char a[128], b[128];

	if (is_pooled(l))
		return exists(from_dir, from) && !exists(to_dir, to) &&
				       renameat(from_dir, from, to_dir, to) < 0
			       ? -errno
			       : 0;
	for (int i = 0; i < MOUNTS_MAX; i++) {
		(void)snprintf(a, sizeof a, "%s/%d", from, i);
		(void)snprintf(b, sizeof b, "%s/%d", to, i);
		if (!exists(from_dir, a) || exists(to_dir, b))
			continue;
		if (renameat(from_dir, a, to_dir, b) < 0)
			return -errno;
	}
	return 0;
}

/* True if the warden recorded this layer as its top. */
static bool is_done(const struct lost *l, const char *layer)
{
	char top[ID_SIZE + 1] = "";

	if (readlinkat(l->dir, "top", top, sizeof top - 1) < 0)
		return false;
	return strcmp(top, layer[0] ? layer : "-") == 0;
}

/* Dropped uppers are numbered by generation: the last one is current. */
static int last_heap(const struct lost *l, char out[32])
{
	int fd = openat(l->disk, "old", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	long last = -1;

	if (!d) {
		fd_close(&fd);
		return -ENOENT;
	}
	for (struct dirent *x = readdir(d); x; x = readdir(d)) {
		long n = x->d_name[0] == '.' ? -1 : strtol(x->d_name, NULL, 10);

		last = n > last ? n : last;
	}
	(void)closedir(d);
	(void)snprintf(out, 32, "old/%ld", last);
	return last < 0 ? -ENOENT : 0;
}

static bool has_layer(const struct lost *l, const char *layer, const char *tail)
{
	auto_close int fd = FD_NONE;
	char path[80];

	(void)snprintf(path, sizeof path, "%s%s", layer, tail);
	fd = layer[0] ? layer_open(&l->roots, path, O_PATH | O_NOFOLLOW) : FD_NONE;
	return fd >= 0;
}

static int undo(const struct lost *l, const struct operation_row *op)
{
	char from[64];
	int r = is_pooled(l) ? 0 : io_mkdir(l->disk, "upper", 0755);

	if (r == 0 && op->kind == OPERATION_ROLLBACK && last_heap(l, from) == 0)
		r = move_missing(l, l->disk, from, l->disk, "upper");
	if (r == 0 && op->kind == OPERATION_SNAPSHOT && has_layer(l, op->layer, "")) {
		(void)snprintf(from, sizeof from, "layers/%s", op->layer);
		r = move_missing(l, layer_base(l), from, l->disk, "upper");
	}
	return r;
}

static int finish_op(struct lost *l, struct err *e)
{
	struct operation_row op = { 0 };
	char top[ID_SIZE];
	int r = catalog_op_find(l->c, l->id, &op, e), did = 0;

	if (r > 0 && catalog_top(l->c, l->id, top, e) == 0) {
		bool copied = op.kind == OPERATION_SNAPSHOT && has_layer(l, op.layer, "/copy");
		bool done = !copied && is_done(l, op.layer);

		if (done)
			did = move_missing(l, l->disk, "next", l->disk, "upper");
		else if (!copied)
			did = undo(l, &op);
		failpoint("lost.moved");
		if (did < 0)
			r = give_up(l, did, "put right the files", e);
		else if (copied || done)
			r = catalog_op_done(l->c, &op, copied ? OPERATION_COPIED : OPERATION_SEALED,
					    top, e);
		else
			r = catalog_op_cancel(l->c, l->id, e);
	} else if (r > 0) {
		r = -1;
	}
	operation_row_done(&op);
	return r < 0 ? -1 : 0;
}

/* Also remove its record of the last switch, so that no process takes it for an answer. */
static int remove_rest(const struct lost *l)
{
	static const char *const parts[] = { "next", "old", "work", "stage", "top" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(parts) && r == 0; i++) {
		r = rmtree_at(l->dir, parts[i]);
		if (r == 0 && is_pooled(l))
			r = voltree_remove(l->disk, parts[i]);
		failpoint("lost.removing");
	}
	return r;
}

/* Turn the uppers into a layer, as the warden would have done. */
static int seal(struct lost *l, struct err *e)
{
	struct operation_row op = { .kind = OPERATION_SNAPSHOT, .snapshot_kind = SNAPSHOT_LOST };
	char top[ID_SIZE], path[64];
	int r;

	if (catalog_top(l->c, l->id, top, e) < 0 || state_id_new(op.layer, e) < 0 ||
	    state_id_new(op.snapshot, e) < 0)
		return -1;
	(void)str_copy(op.sandbox, sizeof op.sandbox, str_of(l->id));
	op.note = "files of a sandbox that was lost";
	if (catalog_op_begin(l->c, &op, e) < 0)
		return -1;
	failpoint("lost.begun");
	(void)snprintf(path, sizeof path, "layers/%s", op.layer);
	/* A sandbox that died early has no upper yet: make an empty layer. */
	r = is_pooled(l) ? io_mkdir(l->disk, "upper", 0700) : io_mkdir(layer_base(l), path, 0700);
	if (r == 0 && is_pooled(l))
		r = rmtree_at(l->disk, "upper/work");
	if (r == 0)
		r = move_missing(l, l->disk, "upper", layer_base(l), path);
	failpoint("lost.sealed");
	if (r < 0)
		return give_up(l, r, "keep the files", e);
	return catalog_op_done(l->c, &op, OPERATION_SEALED, top, e);
}

int lost_keep(struct catalog *c, const struct state *s, const char *id, struct err *e)
{
	struct lost l = { .c = c, .s = s, .id = id, .roots = { s->fd, FD_NONE } };
	auto_close int dir = FD_NONE, storage = FD_NONE, disk = FD_NONE;
	int r;

	if (state_sandbox_open(s, id, &dir, e) < 0 || storage_open(s, &storage, e) < 0)
		return -1;
	if (storage_find(storage, id, &disk, e) < 0)
		return -1;
	l.roots.storage_fd = storage;
	l.dir = dir;
	l.disk = disk >= 0 ? disk : dir;
	if (finish_op(&l, e) < 0)
		return -1;
	r = catalog_wants_lost(c, id, e);
	if (r > 0)
		r = seal(&l, e);
	if (r < 0)
		return -1;
	r = remove_rest(&l);
	return r < 0 ? give_up(&l, r, "remove what is left", e) : 0;
}
