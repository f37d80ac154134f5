/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void show_result_done(struct show_result *v)
{
	for (int i = 0; i < v->calls.n; i++) {
		free(v->calls.rows[i].argv);
		free(v->calls.rows[i].labels);
	}
	free(v->calls.rows);
	json_decref(v->spec);
	policy_record_done(&v->policy);
	trace_story_done(&v->end.story);
	sandbox_row_done(&v->row);
}

static int add_call(void *ctx, const struct call_row *row)
{
	struct call_list *l = ctx;
	struct call_row *rows = reallocarray(l->rows, (size_t)l->n + 1, sizeof *rows);

	if (!rows) {
		l->failed = true;
		return 1;
	}
	l->rows = rows;
	rows[l->n] = *row;
	rows[l->n].argv = row->argv ? strdup(row->argv) : NULL;
	rows[l->n].labels = row->labels ? strdup(row->labels) : NULL;
	l->n++;
	return 0;
}

static int read_calls(struct show_result *v, struct cay *c, struct err *e)
{
	return catalog_index_calls(c->catalog, &c->state, v->row.id, e) < 0
		       ? -1
		       : catalog_each_call(c->catalog, v->row.id, add_call, &v->calls, e);
}

/* Reads calls from the trace into the catalog. A sandbox without a row gets a temporary one. */
static int load_calls(struct show_result *v, struct cay *c, struct err *e)
{
	struct sandbox_row row = v->row;
	struct err undone;
	int r;

	if (!v->row.unlisted)
		return read_calls(v, c, e);
	if (catalog_batch_begin(c->catalog, e) < 0)
		return -1;
	r = catalog_add_sandbox(c->catalog, &row, false, e);
	if (r == 0)
		r = read_calls(v, c, e);
	(void)catalog_batch_end(c->catalog, -1, &undone);
	return r;
}

/* The history requires reading the whole trace: do so only for sandboxes with a network. */
static int load_policy(struct show_result *v, struct cay *c, struct err *e)
{
	if (policy_record_now(c, v->row.id, &v->policy, e) < 0)
		return -1;
	if (!v->policy.now)
		return 0;
	policy_record_done(&v->policy);
	return op_policy_record(c, v->row.id, &v->policy, e);
}

static int load(struct show_result *v, struct cay *c, const char *ref, struct err *e)
{
	auto_done(link_free) struct link *l = NULL;
	struct err ignored = { 0 };

	if (cay_catalog(c, e) < 0 || catalog_find(c->catalog, ref, &v->row, e) < 0 ||
	    load_calls(v, c, e) < 0)
		return -1;
	if (v->calls.failed)
		return err_sys(e, ENOMEM, "calls of sandbox '%s'", v->row.id);
	if (load_policy(v, c, e) < 0)
		return -1;
	v->spec = options_load(&v->row);
	if (strcmp(v->row.state, "lost") == 0 || !state_is_alive(&c->state, v->row.id)) {
		/* The row may be outdated. */
		(void)snprintf(v->row.state, sizeof v->row.state, "lost");
		ended_row_read(&c->state, v->row.id, &v->end);
		v->lost = true;
	} else {
		v->known = link_connect(&c->wait, &c->state, v->row.id, &l, &ignored) == 0 &&
			   link_info(l, &c->wait, &v->info, &ignored) == 0;
		if (v->known)
			(void)snprintf(v->row.state, sizeof v->row.state, "%s", v->info.state);
	}
	return 0;
}

int op_show(struct cay *c, const char *ref, struct show_result *ret, struct err *e)
{
	auto_done(show_result_done) struct show_result v = { 0 };

	if (load(&v, c, ref, e) < 0)
		return -1;
	*ret = v;
	v = (struct show_result){ 0 };
	return 0;
}
