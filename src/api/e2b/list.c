/* SPDX-License-Identifier: Apache-2.0 */
/* Lists with pages: a page begins behind the time and id that the token names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "api/e2b/common.h"
#include "api/e2b/sandboxes.h"
#include "ops/list.h"
#include "wire/url.h"

enum { PAGE_MOST = 100, METADATA_MOST = 16384 };

struct filter {
	const char *owner, *states, *template_;
	struct text_pairs labels; /* all of them */
	bool oldest_first;
	long limit;
	uint64_t after_ns; /* 0: from the start */
	char after_id[ID_SIZE];
};

static int decode_twice(struct str raw, struct buf *out)
{
	auto_done(buf_done) struct buf once = BUF_INIT(METADATA_MOST);
	int r = url_decode(&once, raw, URL_PLUS | URL_SLASH);

	return r < 0 ? r : url_decode(out, buf_str(&once), URL_SLASH);
}

/* The query was decoded once: the value is a query itself, of which each part is encoded twice. */
static int read_metadata(const char *text, struct text_pairs *ret, struct err *e)
{
	struct str rest = str_of(text), name, value;

	ret->items = calloc(LIMIT_LABELS + 1, sizeof *ret->items);
	if (!ret->items)
		return err_sys(e, ENOMEM, "metadata");
	while (url_query_next(&rest, &name, &value)) {
		auto_done(buf_done) struct buf pair = BUF_INIT(METADATA_MOST);

		if (ret->n == LIMIT_LABELS || decode_twice(name, &pair) < 0 ||
		    buf_add_c(&pair, "=") < 0 || decode_twice(value, &pair) < 0)
			return err_set(e, ERR_INVALID, "metadata is malformed");
		ret->items[ret->n++] = buf_take(&pair, &(size_t){ 0 });
	}
	return 0;
}

static int read_token(const char *text, struct filter *f, struct err *e)
{
	char *end;

	f->after_ns = strtoull(text, &end, 10);
	if (*end != '.' || !f->after_ns || !state_id_ok(end + 1) ||
	    !str_copy(f->after_id, sizeof f->after_id, str_of(end + 1)))
		return err_set(e, ERR_INVALID, "nextToken is malformed");
	return 0;
}

static int read_filter(const struct e2b_ask *a, struct filter *f, struct err *e)
{
	const char *limit = e2b_query(a, "limit"), *order = e2b_query(a, "order");
	const char *metadata = e2b_query(a, "metadata"), *token = e2b_query(a, "nextToken");
	char *end = "";

	*f = (struct filter){ .owner = a->owner,
			      .states = e2b_query(a, "state"),
			      .template_ = e2b_query(a, "template"),
			      .oldest_first = order && strcmp(order, "asc") == 0,
			      .limit = limit ? strtol(limit, &end, 10) : PAGE_MOST };
	if (*end || f->limit < 1 || f->limit > PAGE_MOST)
		return err_set(e, ERR_INVALID, "limit must be 1 to %d", PAGE_MOST);
	if (token && token[0] && read_token(token, f, e) < 0)
		return -1;
	return metadata ? read_metadata(metadata, &f->labels, e) : 0;
}

static int compare(const struct sandbox_row *a, uint64_t ns, const char *id)
{
	if (a->created_ns != ns)
		return a->created_ns < ns ? -1 : 1;
	return strcmp(a->id, id);
}

static int newer_first(const void *x, const void *y)
{
	const struct sandbox_row *const *a = x, *const *b = y;

	return compare(*b, (*a)->created_ns, (*a)->id);
}

static bool state_is_wanted(const char *states, const char *state)
{
	struct str rest = str_of(states);

	if (!states || !states[0])
		return true;
	while (rest.n) {
		const char *comma = memchr(rest.p, ',', rest.n);
		struct str one = { rest.p, comma ? (size_t)(comma - rest.p) : rest.n };

		if (str_is(one, state))
			return true;
		rest = comma ? (struct str){ comma + 1, rest.n - one.n - 1 } : STR_NONE;
	}
	return false;
}

static bool is_wanted(const struct filter *f, const struct sandbox_row *row,
		      const struct client_question *asked)
{
	const char *state = asked->known ? asked->state.state : "";
	int behind = f->after_ns ? compare(row, f->after_ns, f->after_id) : 0;

	if (strcmp(state, "running") != 0 && strcmp(state, "paused") != 0)
		return false;
	if (f->owner && strcmp(f->owner, row->owner) != 0)
		return false;
	if (f->template_ && strcmp(f->template_, e2b_template_theirs(row->template_)) != 0)
		return false;
	if (f->after_ns && (f->oldest_first ? behind <= 0 : behind >= 0))
		return false;
	return state_is_wanted(f->states, state);
}

/* The wanted ones in order; as many as were found. */
static int choose(const struct filter *f, const struct list_result *l,
		  const struct sandbox_row **out)
{
	int n = 0;

	for (int i = 0; i < l->sandboxes.n; i++)
		if (is_wanted(f, &l->sandboxes.rows[i], &l->asked[i]))
			out[n++] = &l->sandboxes.rows[i];
	qsort(out, (size_t)n, sizeof *out, newer_first);
	for (int i = 0; f->oldest_first && i < n / 2; i++) {
		const struct sandbox_row *other = out[n - 1 - i];

		out[n - 1 - i] = out[i];
		out[i] = other;
	}
	return n;
}

static int answer_page(struct job_run *r, const struct filter *f, const struct sandbox_row **rows,
		       int n, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_JOB_BODY);
	int page = n < f->limit ? n : (int)f->limit;
	struct api_answer a = { .status = 200 };
	char token[64];
	struct json j;

	json_init(&j, &b);
	json_arr(&j);
	for (int i = 0; i < page; i++) {
		struct sandbox_status status;
		struct err ended = { 0 };

		if (e2b_status(r, rows[i]->id, &status, &ended) < 0)
			continue; /* it has ended just now */
		json_obj(&j);
		e2b_put_listed(&j, rows[i], &status);
		json_end(&j);
	}
	json_end(&j);
	if (json_done(&j) < 0)
		return err_set(e, ERR_FAILED, "the list is too long; ask for fewer at once");
	a.body = buf_str(&b);
	if (n > page) {
		(void)snprintf(token, sizeof token, "%llu.%s",
			       (unsigned long long)rows[page - 1]->created_ns, rows[page - 1]->id);
		a.next = str_of(token);
	}
	return api_answer_put(r->out, &a) < 0 ? err_set(e, ERR_FAILED, "the list is too long") : 0;
}

static int list(struct job_run *r, const struct filter *f, struct err *e)
{
	const struct list_spec spec = { .labels = { (const char *const *)f->labels.items,
						    f->labels.n } };
	auto_done(list_result_done) struct list_result l = { 0 };
	auto_free const struct sandbox_row **rows = NULL;

	if (op_list(r->cay, &spec, &l, e) < 0)
		return -1;
	rows = calloc((size_t)l.sandboxes.n + 1, sizeof(*rows));
	if (!rows)
		return err_sys(e, ENOMEM, "list the sandboxes");
	return answer_page(r, f, rows, choose(f, &l, rows), e);
}

int e2b_list(struct job_run *r, struct err *e)
{
	auto_done(e2b_ask_done) struct e2b_ask a = { 0 };
	struct filter f = { 0 };
	int k = e2b_ask_read(r, &a, e);

	if (k == 0)
		k = read_filter(&a, &f, e);
	if (k == 0)
		k = list(r, &f, e);
	text_pairs_done(&f.labels);
	return k;
}
