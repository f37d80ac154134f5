/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/pool_key.h"

#include <errno.h>
#include <string.h>

#include "image/template.h"
#include "ops/create/recipe.h"
#include "ops/pool/ready_key.h"
#include "store/snapshots.h"

void pool_key_done(struct pool_key *k)
{
	buf_done(&k->recipe);
}

static bool is_of_template(struct field f)
{
	struct str body = f.value;
	struct field m;

	while (f.tag == TAG_MOUNT && field_next(&body, &m) > 0)
		if (m.tag == M_OWNER)
			return false;
	return f.tag == TAG_MOUNT;
}

int pool_key_keep(struct str recipe, bool of_snapshot, struct buf *ret)
{
	auto_done(buf_done) struct buf built = BUF_INIT(LIMIT_FRAME_BODY);
	int r = ready_split(recipe, false, &built);
	struct str rest = buf_str(&built);
	struct field f;

	while (r >= 0 && (r = field_next(&rest, &f)) > 0)
		if (of_snapshot || !is_of_template(f))
			r = field_put(ret, f.tag, f.value);
	return r;
}

static int of_snapshot(struct cay *s, const struct pool_row *row, struct pool_key *k, struct err *e)
{
	struct snapshot_row snap = { 0 };

	if (catalog_find_snapshot(s->catalog, row->snapshot, &snap, e) < 0)
		return -1;
	(void)str_copy(k->top, sizeof k->top, str_of(snap.top));
	snapshot_row_done(&snap);
	return 0;
}

static int of_template(struct cay *s, const struct pool_row *row, struct pool_key *k, struct err *e)
{
	struct template t = { 0 };
	int r;

	if (template_resolve(s->state.dir, row->template_, &t, e) < 0)
		return -1;
	r = recipe_put_template(&k->recipe, &t);
	template_done(&t);
	return r < 0 ? err_sys(e, -r, "read the template") : 0;
}

int pool_key_find(struct cay *s, const struct pool_row *row, struct pool_key *ret, struct err *e)
{
	int r;

	if (cay_programs(s, e) < 0)
		return -1;
	r = row->snapshot[0] ? of_snapshot(s, row, ret, e) : of_template(s, row, ret, e);
	if (r < 0)
		return -1;
	if (buf_add_str(&ret->recipe, buf_str(&row->recipe)) < 0)
		return err_sys(e, ENOMEM, "read a pool");
	r = ready_key(&s->state, s->programs.warden, &s->config, buf_str(&ret->recipe), ret->top,
		      ret->key);
	if (r < 0)
		return err_sys(e, -r, "find out what is to be made");
	if (r > 0)
		return 0;
	return err_set(e, ERR_INVALID, "sandboxes with such a read-only file cannot be made ahead");
}
