/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ops/create/options.h"
#include "ops/reconcile.h"

enum { ANSWER_MS = 200 };

static struct sandbox_row *list_room(struct sandbox_list *l)
{
	struct sandbox_row *rows = reallocarray(l->rows, (size_t)l->n + 1, sizeof *rows);

	if (!rows)
		return NULL;
	l->rows = rows;
	return &rows[l->n];
}

static int add_copy(void *ctx, const struct sandbox_row *row)
{
	struct sandbox_list *l = ctx;
	struct sandbox_row *to = list_room(l);
	char *spec = row->spec ? strdup(row->spec) : NULL;

	if (!to || (row->spec && !spec)) {
		free(spec);
		return -ENOMEM;
	}
	*to = *row;
	to->spec = spec;
	l->n++;
	return 0;
}

struct adding {
	struct sandbox_list *list;
	bool failed;
};

static int add_row(void *ctx, const struct sandbox_row *row)
{
	struct adding *a = ctx;

	a->failed = add_copy(a->list, row) < 0;
	return a->failed;
}

int sandbox_list_load(struct sandbox_list *l, struct cay *c, struct err *e)
{
	struct adding a = { .list = l };

	if (catalog_each(c->catalog, add_row, &a, e) < 0)
		return -1;
	return a.failed ? err_sys(e, ENOMEM, "listing the sandboxes") : 0;
}

int sandbox_list_find(struct sandbox_list *l, struct cay *c, const char *ref, struct err *e)
{
	struct sandbox_row *to = list_room(l);

	if (!to)
		return err_sys(e, ENOMEM, "sandbox '%s'", ref);
	*to = (struct sandbox_row){ 0 };
	if (catalog_find(c->catalog, ref, to, e) < 0)
		return -1;
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->rows[i].id, to->id) == 0) {
			sandbox_row_done(to);
			return 0;
		}
	l->n++;
	return 0;
}

void sandbox_list_done(struct sandbox_list *l)
{
	for (int i = 0; i < l->n; i++)
		sandbox_row_done(&l->rows[i]);
	free(l->rows);
	*l = (struct sandbox_list){ 0 };
}

static bool is_wanted(const struct list_spec *spec, const struct sandbox_row *row)
{
	auto_done(options_free) json_t *options = spec->labels.n ? options_load(row) : NULL;

	for (int i = 0; i < spec->labels.n; i++)
		if (!options_has_label(options, spec->labels.items[i]))
			return false;
	return true;
}

/* Remove the sandboxes that do not match. */
static void filter(const struct list_spec *spec, struct list_result *r)
{
	struct sandbox_list *l = &r->sandboxes;
	int n = 0;

	for (int i = 0; i < l->n; i++) {
		bool hidden = !spec->lost && strcmp(l->rows[i].state, "lost") == 0;

		r->lost += hidden;
		if (!hidden && is_wanted(spec, &l->rows[i]))
			l->rows[n++] = l->rows[i];
		else
			sandbox_row_done(&l->rows[i]);
	}
	l->n = n;
}

/* A warden that is ending does not answer; its row is listed without numbers. */
static int ask_all(struct cay *c, struct list_result *r, struct err *e)
{
	const struct sandbox_list *l = &r->sandboxes;

	r->asked = calloc((size_t)l->n + 1, sizeof *r->asked);
	if (!r->asked)
		return err_sys(e, ENOMEM, "list the sandboxes");
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->rows[i].state, "running") == 0)
			r->asked[i].id = l->rows[i].id;
	client_info_many(&c->state, r->asked, l->n, ANSWER_MS);
	return 0;
}

int op_list(struct cay *c, const struct list_spec *spec, struct list_result *ret, struct err *e)
{
	auto_done(list_result_done) struct list_result r = { 0 };
	int removed;

	if (cay_catalog(c, e) < 0 || reconcile_all(c->catalog, &c->state, 0, &removed, e) < 0 ||
	    sandbox_list_load(&r.sandboxes, c, e) < 0)
		return -1;
	filter(spec, &r);
	if (!spec->ids_only && ask_all(c, &r, e) < 0)
		return -1;
	c->after |= AFTER_POOL;
	*ret = r;
	r = (struct list_result){ 0 };
	return 0;
}

void list_result_done(struct list_result *r)
{
	sandbox_list_done(&r->sandboxes);
	free(r->asked);
	*r = (struct list_result){ 0 };
}
