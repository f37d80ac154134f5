/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/recipe.h"

#include <errno.h>
#include <string.h>

#include "ops/create/options.h"
#include "ops/start.h"
#include "store/snapshots.h"

static int put_mount(struct buf *b, enum mount_kind kind, const char *dest, char *const *lower,
		     int nlower, const uid_t *owner)
{
	auto_done(buf_done) struct buf m = BUF_INIT(LIMIT_FRAME_BODY);
	int r = field_put_u64(&m, M_KIND, kind);

	if (r == 0)
		r = field_put_c(&m, M_DEST, dest);
	for (int i = 0; i < nlower && r == 0; i++)
		r = field_put_c(&m, M_LOWER, lower[i]);
	if (r == 0 && owner)
		r = field_put_u64(&m, M_OWNER, *owner);
	return r < 0 ? r : field_put(b, TAG_MOUNT, buf_str(&m));
}

int recipe_put_template(struct buf *b, const struct template *t)
{
	int r = 0;

	for (int i = 0; i < t->nmounts && r == 0; i++) {
		const struct template_mount *m = &t->mounts[i];

		r = put_mount(b, m->kind, m->dest, m->lower, m->nlower, NULL);
	}
	return r;
}

static int put_mounts(struct buf *b, const struct template *t, const struct create_plan *p)
{
	int r = recipe_put_template(b, t);

	for (int i = 0; i < p->nmounts && r == 0; i++) {
		const struct plan_mount *m = &p->mounts[i];

		r = put_mount(b, m->ro ? MOUNT_RO : MOUNT_OVERLAY, m->dest, &m->path, 1, &m->owner);
	}
	return r;
}

static int put_defaults(struct buf *b, const struct create_plan *p)
{
	const struct create_spec *s = p->spec;
	const char *cwd = s->cwd ? s->cwd : p->first_dir;
	int r = field_put_c(b, TAG_USER, s->user ? s->user : "1000");

	for (int i = 0; i < p->nenv && r == 0; i++)
		r = field_put_c(b, TAG_ENV, p->env[i]);
	for (int i = 0; i < p->nlabels && r == 0; i++)
		r = field_put_c(b, TAG_LABEL, p->labels[i]);
	if (r == 0 && cwd)
		r = field_put_c(b, TAG_CWD, cwd);
	if (r == 0)
		r = s->net.policy.n ? field_put(b, TAG_NET_POLICY, s->net.policy) : 0;
	return r < 0 ? r : create_limits_put(&s->limits, b);
}

/* Writes the fields that are not specific to this sandbox. Forks reuse them. */
static int put_recipe(struct buf *b, const struct create_plan *p, const struct template *t)
{
	int r = field_put_u64(b, TAG_TRACE, p->trace);

	if (r == 0)
		r = field_put_u64(b, TAG_PROFILE, p->profile);
	if (r == 0 && p->spec->nested)
		r = field_put_u64(b, TAG_NESTED, 1);
	if (r == 0)
		r = put_mounts(b, t, p);
	return r < 0 ? r : put_defaults(b, p);
}

/* Copies the mounts of a recipe. A mount of the plan must not cover any of them. */
static int copy_mounts(struct buf *to, struct str recipe, const struct create_plan *p,
		       struct err *e)
{
	struct field f, m;

	while (field_next(&recipe, &f) > 0) {
		struct str body = f.value;

		if (f.tag != TAG_MOUNT)
			continue;
		while (field_next(&body, &m) > 0)
			for (int i = 0; m.tag == M_DEST && i < p->nmounts; i++) {
				struct str dest = str_of(p->mounts[i].dest);

				if (str_starts(m.value, dest) &&
				    (m.value.n == dest.n || m.value.p[dest.n] == '/'))
					return err_set(e, ERR_INVALID,
						       "'%.200s' would cover what the snapshot has "
						       "at '%.*s'",
						       p->mounts[i].path, (int)m.value.n,
						       m.value.p);
			}
		if (field_put(to, TAG_MOUNT, f.value) < 0)
			return err_sys(e, ENOMEM, "read a recipe");
	}
	return 0;
}

/* Copies the start directory for commands of the snapshot's sandbox. */
static int copy_cwd(struct buf *to, struct str recipe)
{
	struct field f;

	while (field_next(&recipe, &f) > 0)
		if (f.tag == TAG_CWD)
			return field_put(to, TAG_CWD, f.value);
	return 0;
}

/* Takes files and mounts from the snapshot, and everything else from the request. */
static int from_snapshot(struct creation *n, struct create_plan *p, struct err *e)
{
	auto_done(buf_done) struct buf recipe = BUF_INIT(LIMIT_FRAME_BODY);
	struct template none = { 0 };
	struct snapshot_row row = { 0 };
	int r;

	if (cay_catalog(n->cay, e) < 0 ||
	    catalog_find_snapshot(n->cay->catalog, p->template_, &row, e) < 0)
		return -1;
	p->seen_ns = options_seen_ns(row.spec);
	r = catalog_recipe(n->cay->catalog, row.sandbox, &recipe, e);
	if (r == 0)
		r = copy_mounts(&n->recipe, buf_str(&recipe), p, e);
	(void)str_copy(n->row.top, sizeof n->row.top, str_of(row.top));
	snapshot_row_done(&row);
	if (r == 0)
		r = start_warn_live(n->cay, buf_str(&recipe), n->row.top, e);
	if (r == 0 &&
	    (put_recipe(&n->recipe, p, &none) < 0 ||
	     (!p->spec->cwd && !p->first_dir && copy_cwd(&n->recipe, buf_str(&recipe)) < 0)))
		r = err_sys(e, ENOMEM, "tell the warden what to build");
	return r;
}

int recipe_write(struct creation *n, struct create_plan *p, struct err *e)
{
	struct template t = { 0 };
	int r;

	if (strncmp(p->template_, "snap:", 5) == 0)
		return from_snapshot(n, p, e);
	if (template_resolve(n->cay->state.dir, p->template_, &t, e) < 0)
		return -1;
	r = put_recipe(&n->recipe, p, &t);
	template_done(&t);
	return r < 0 ? err_sys(e, -r, "tell the warden what to build") : 0;
}
