/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/storage.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include "ops/reconcile.h"
#include "ops/storage_make.h"

#define SIZE_MIN (128ull << 20) /* mkfs.btrfs needs 109 MiB */
#define GIB	 (1ull << 30)

/* Half of the free space, rounded to whole GiB if it is that large. */
static uint64_t default_size(const struct state *s)
{
	struct statvfs st;
	uint64_t half;

	if (fstatvfs(s->fd, &st) < 0)
		return SIZE_MIN;
	half = (uint64_t)st.f_bavail * st.f_frsize / 2;
	return half >= GIB ? half / GIB * GIB : half;
}

static int check_root(struct err *e)
{
	if (geteuid() == 0)
		return 0;
	(void)err_set(e, ERR_NOT_ALLOWED, "setting up a pool needs root");
	return err_code(e, "storage.root", NULL);
}

int op_storage_make(struct cay *c, const struct storage_spec *spec, bool *ret_made, struct err *e)
{
	uint64_t size = spec->size ? spec->size : default_size(&c->state);
	bool made = false;

	if (check_root(e) < 0)
		return -1;
	if (!pool_exists(&c->state)) {
		if (!spec->dir && size < SIZE_MIN)
			return err_set(e, ERR_INVALID, "a pool has at least 128 MiB");
		if ((spec->dir ? pool_take_dir(&c->state, spec->dir, e)
			       : pool_make_image(&c->state, size, e)) < 0)
			return -1;
		made = true;
	}
	*ret_made = made;
	return 0;
}

int op_storage_remove(struct cay *c, struct err *e)
{
	/* Leftovers of dead sandboxes must not block the removal. */
	if (check_root(e) < 0 || cay_catalog(c, e) < 0 ||
	    reconcile_all(c->catalog, &c->state, 0, NULL, e) < 0)
		return -1;
	return pool_unmake(&c->state, e) < 0 ? -1 : 0;
}

int op_storage_info(struct cay *c, struct pool_info *ret, struct err *e)
{
	return pool_look(&c->state, ret, e);
}
