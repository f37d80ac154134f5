/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remove layers. The row goes first, when nothing refers to it, then its files. A crash in between
 * leaves a directory without a row, which the second part finds. A layer in progress is named
 * new-ID: made by a warden, for an operation in the journal, or by the lock's holder
 * (flatten_layers.c).
 */
#include "ops/layers_free.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/dir.h"
#include "base/failpoint.h"
#include "store/layer_rows.h"
#include "store/snapshots.h"
#include "store/starts.h"
#include "store/storage.h"
#include "sys/files/voltree.h"

int layers_lock(const struct state *s, bool wait, int *ret_fd, struct err *e)
{
	auto_close int fd =
		openat(s->fd, "layers/.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, errno, "cannot open %s/layers/.lock", s->dir);
	while (flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) < 0) {
		if (errno == EWOULDBLOCK)
			return err_set(e, ERR_CONFLICT, "another cay works on the layers");
		if (errno != EINTR)
			return err_sys(e, errno, "cannot lock %s/layers/.lock", s->dir);
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* A fork that was killed no longer needs its layers. */
static int drop_dead_holds(struct catalog *c, const struct state *s, struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0;
	int r = catalog_fork_holds(c, &ids, &n, e);

	for (size_t i = 0; i < n && r == 0; i++)
		if (!state_is_alive(s, ids[i]))
			r = catalog_del_snapshot(c, ids[i], e);
	return r;
}

struct freed {
	int n;
	bool synced;
	uint64_t *bytes; /* NULL: not needed */
};

/*
 * Sync first: a reference to a removed layer must not come back after a power failure. It may be an
 * old snapshot whose layers were merged a minute ago.
 */
static int sync_first(struct catalog *c, struct freed *f, struct err *e)
{
	if (f->synced)
		return 0;
	f->synced = true;
	return catalog_sync(c, e);
}

/* Free the layers below `base`/layers. */
static int free_below(struct catalog *c, int base, struct freed *f, struct err *e)
{
	auto_done(dir_free) DIR *d = dir_open_at(base, "layers");
	int r = 0;

	if (!d)
		return errno == ENOENT ? 0 : err_sys(e, errno, "cannot read the layers");
	for (struct dirent *de = readdir(d); de; de = readdir(d)) {
		const char *id;

		if (dir_is_dots(de->d_name) || strcmp(de->d_name, ".lock") == 0)
			continue;
		id = strncmp(de->d_name, "new-", 4) == 0 ? de->d_name + 4 : de->d_name;
		r = state_id_ok(id) ? catalog_knows_layer(c, id, e) : 0;
		if (r == 0)
			r = sync_first(c, f, e);
		else if (r > 0)
			continue;
		if (r < 0)
			break;
		if (f->bytes)
			*f->bytes += layers_disk_usage(dirfd(d), de->d_name);
		r = voltree_remove(dirfd(d), de->d_name);
		if (r < 0)
			return err_sys(e, -r, "cannot remove layer '%s'", de->d_name);
		failpoint("layers.freed");
		f->n++;
	}
	return r < 0 ? -1 : 0;
}

int layers_free(struct catalog *c, const struct state *s, int *ret_n, uint64_t *ret_bytes,
		struct err *e)
{
	struct freed f = { .bytes = ret_bytes };
	auto_close int storage = FD_NONE;
	int r;

	if (ret_bytes)
		*ret_bytes = 0;
	if (drop_dead_holds(c, s, e) < 0 || catalog_drop_layers(c, e) < 0)
		return -1;
	r = free_below(c, s->fd, &f, e);
	/* If storage cannot be opened, do the rest and report it. */
	if (r == 0)
		r = storage_open(s, &storage, e);
	if (r == 0 && storage >= 0)
		r = free_below(c, storage, &f, e);
	if (f.n)
		starts_sweep(s);
	if (ret_n)
		*ret_n = f.n;
	return r;
}

void layers_free_soon(struct catalog *c, const struct state *s)
{
	auto_close int lock = FD_NONE;
	struct err ignored;

	if (layers_lock(s, false, &lock, &ignored) == 0)
		(void)layers_free(c, s, NULL, NULL, &ignored);
}
