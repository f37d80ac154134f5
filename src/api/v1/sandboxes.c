/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes: list, show, change, end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/v1/work.h"
#include "ops/destroy.h"
#include "ops/json.h"

enum { PAGE = 100 };

/* ---- lists ---- */

/* A page: those behind the cursor, in the order of their creation. */
struct page {
	const char *owner, *state, *template_;
	bool newest_first;
	uint64_t limit, after_ns;
	const char *after_id;
};

static int read_page(const struct v1_ask *a, struct page *p, struct err *e)
{
	const json_t *query = a->in.query;
	const char *after = v1_text(query, "after"), *order = v1_text(query, "order");
	char *end;

	*p = (struct page){ .owner = a->in.owner,
			    .state = v1_text(query, "state"),
			    .template_ = v1_text(query, "template"),
			    .newest_first = order && strcmp(order, "desc") == 0,
			    .limit = v1_number(query, "limit") };
	if (!p->limit)
		p->limit = PAGE;
	if (!after)
		return 0;
	p->after_ns = strtoull(after, &end, 10);
	p->after_id = end + 1;
	if (p->after_ns && *end == '.' && state_id_ok(p->after_id))
		return 0;
	(void)err_set(e, ERR_INVALID, "after is not a cursor of this list");
	return err_field(e, "after");
}

static int place(const struct sandbox_row *row, uint64_t ns, const char *id)
{
	if (row->created_ns != ns)
		return row->created_ns < ns ? -1 : 1;
	return strcmp(row->id, id);
}

static bool is_wanted(const struct page *p, const struct sandbox_row *row,
		      const struct client_question *asked)
{
	const char *state = asked->known ? asked->state.state : row->state;
	int at = p->after_ns ? place(row, p->after_ns, p->after_id) : 0;

	if (p->owner && strcmp(p->owner, row->owner) != 0)
		return false;
	if (p->template_ && strcmp(p->template_, row->template_) != 0)
		return false;
	if (p->after_ns && (p->newest_first ? at >= 0 : at <= 0))
		return false;
	return !p->state || strcmp(p->state, state) == 0;
}

static int older_first(const void *x, const void *y)
{
	const struct sandbox_row *const *a = x, *const *b = y;

	return place(*a, (*b)->created_ns, (*b)->id);
}

/* The wanted ones in order; their number. */
static int choose(const struct page *p, const struct list_result *l, const struct sandbox_row **out)
{
	int n = 0;

	for (int i = 0; i < l->sandboxes.n; i++)
		if (is_wanted(p, &l->sandboxes.rows[i], &l->asked[i]))
			out[n++] = &l->sandboxes.rows[i];
	qsort(out, (size_t)n, sizeof *out, older_first);
	for (int i = 0; p->newest_first && i < n / 2; i++) {
		const struct sandbox_row *other = out[n - 1 - i];

		out[n - 1 - i] = out[i];
		out[i] = other;
	}
	return n;
}

static int list(struct job_run *r, const struct page *p, const struct list_spec *spec,
		struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(list_result_done) struct list_result l = { 0 };
	auto_free const struct sandbox_row **rows = NULL;
	char next[64] = "";
	struct json j;
	int n;

	if (op_list(r->cay, spec, &l, e) < 0)
		return -1;
	rows = calloc((size_t)l.sandboxes.n + 1, sizeof *rows);
	if (!rows)
		return err_sys(e, ENOMEM, "list the sandboxes");
	n = choose(p, &l, rows);
	v1_list_begin(&j, &b);
	for (int i = 0; i < n && (uint64_t)i < p->limit; i++)
		json_listed(&j, rows[i], &l.asked[rows[i] - l.sandboxes.rows]);
	if ((uint64_t)n > p->limit)
		(void)snprintf(next, sizeof next, "%llu.%s",
			       (unsigned long long)rows[p->limit - 1]->created_ns,
			       rows[p->limit - 1]->id);
	return v1_list_end(r, &j, &b, next[0] ? next : NULL, e);
}

int v1_job_list(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_free const char **labels = NULL;
	struct list_spec spec = { .lost = true };
	struct page p;

	if (v1_ask_read(r, &a, e) < 0 || read_page(&a, &p, e) < 0 ||
	    v1_texts(a.in.query, "label", &labels, &spec.labels.n, e) < 0)
		return -1;
	spec.labels.items = labels;
	return list(r, &p, &spec, e);
}

/* ---- one of them ---- */

int v1_job_get(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(V1_BODY_MOST);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(show_result_done) struct show_result v = { 0 };
	struct json j;

	if (v1_about(r, &a, e) < 0 || op_show(r->cay, a.row.id, &v, e) < 0)
		return -1;
	json_init(&j, &b);
	json_shown(&j, &v);
	return v1_reply(r, 200, &j, &b, e);
}

int v1_job_delete(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };

	if (v1_about(r, &a, e) < 0 || op_destroy(r->cay, a.row.id, e) < 0)
		return -1;
	return v1_reply_empty(r, 204, e);
}

static int order(struct job_run *r, const struct v1_ask *a, enum link_order what, uint64_t ms,
		 struct err *e)
{
	const struct order_spec spec = { .ref = a->row.id, .order = what, .ms = ms };
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	struct order_result res;
	struct json j;

	if (op_order(r->cay, &spec, &res, e) < 0)
		return -1;
	json_init(&j, &b);
	json_order(&j, &res);
	return v1_reply(r, 200, &j, &b, e);
}

int v1_job_patch(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };

	if (v1_about(r, &a, e) < 0)
		return -1;
	return order(r, &a, LINK_EXTEND, v1_number(a.in.body, "ttl_ms"), e);
}

int v1_job_pause(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };

	return v1_about(r, &a, e) < 0 ? -1 : order(r, &a, LINK_PAUSE, 0, e);
}

int v1_job_resume(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };

	return v1_about(r, &a, e) < 0 ? -1 : order(r, &a, LINK_RESUME, 0, e);
}
