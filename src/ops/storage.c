/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/storage.h"

#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "ops/list.h"
#include "ops/reconcile.h"
#include "ops/storage_make.h"
#include "store/locks.h"
#include "store/ready.h"
#include "store/storage_file.h"

#define SIZE_MIN (128ull << 20) /* mkfs.btrfs wants 109 MiB */
#define GIB	 (1ull << 30)

enum { ENDING_MS = 5000, RETRY_MS = 20 };

/* Half of what is free, in whole GiB where there are some. */
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
	(void)err_set(e, ERR_NOT_ALLOWED, "setting up storage needs root");
	return err_code(e, "storage.root", NULL);
}

int op_storage_make(struct cay *c, const struct storage_spec *spec, bool *ret_made, struct err *e)
{
	uint64_t size = spec->size ? spec->size : default_size(&c->state);
	bool made = false;

	if (check_root(e) < 0)
		return -1;
	if (!storage_exists(&c->state)) {
		if (!spec->dir && size < SIZE_MIN)
			return err_set(e, ERR_INVALID, "storage has at least 128 MiB");
		if ((spec->dir ? storage_take_dir(&c->state, spec->dir, e)
			       : storage_make_image(&c->state, size, e)) < 0)
			return -1;
		made = true;
	}
	*ret_made = made;
	return 0;
}

static bool is_listed(const struct sandbox_list *l, const char *id)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->rows[i].id, id) == 0)
			return true;
	return false;
}

/*
 * Whether every sandbox in the storage is about to be gone: cay run leaves the removal to the
 * warden, and does not list the sandbox meanwhile. Ready sandboxes are not listed either, and stay.
 */
static bool only_ending(struct cay *c)
{
	auto_done(sandbox_list_done) struct sandbox_list listed = { 0 };
	auto_free char(*ids)[ID_SIZE] = NULL;
	struct err ignored = { 0 };
	size_t n = 0;

	if (ready_exists(&c->state) || sandbox_list_load(&listed, c, &ignored) < 0 ||
	    state_list_ids(c->state.fd, STORAGE_DIR, &ids, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (is_listed(&listed, ids[i]))
			return false;
	return true;
}

/* What dead sandboxes have left must not keep it. */
static int remove_once(struct cay *c, struct err *e)
{
	if (reconcile_all(c->catalog, &c->state, 0, NULL, e) < 0)
		return -1;
	return storage_unmake(&c->state, e) < 0 ? -1 : 0;
}

int op_storage_remove(struct cay *c, struct err *e)
{
	uint64_t end = clock_mono_ns() + ENDING_MS * NS_PER_MS;

	if (check_root(e) < 0 || cay_catalog(c, e) < 0)
		return -1;
	while (remove_once(c, e) < 0) {
		if (strcmp(e->code, "storage.has_sandboxes") != 0 || clock_mono_ns() >= end ||
		    !only_ending(c) || wait_pause(&c->wait, RETRY_MS * NS_PER_MS) < 0)
			return -1;
		*e = (struct err){ 0 };
	}
	return 0;
}

int op_storage_info(struct cay *c, struct storage_info *ret, struct err *e)
{
	return storage_inspect(&c->state, ret, e);
}
