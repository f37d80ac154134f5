/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/fork.h"

#include <errno.h>
#include <string.h>

#include "api/e2b/common.h"
#include "api/e2b/network.h"
#include "api/e2b/sandboxes.h"

enum { FORKS_MOST = 100 };

struct forks {
	char ids[FORKS_MOST][ID_SIZE];
	int n;
};

static int note_fork(void *ctx, unsigned i, const struct creation *made)
{
	struct forks *f = ctx;

	(void)i;
	(void)str_copy(f->ids[f->n++], ID_SIZE, str_of(made->row.id));
	return 0;
}

static void put_error(struct json *j, const struct err *why)
{
	json_put_obj(j, "error");
	json_put_i64(j, "code", err_http(why->kind));
	json_put_c(j, "message", why->msg);
	json_end(j);
}

/* It has the source's time to live until it gets its own. */
static void put_fork(struct json *j, struct job_run *r, const struct e2b_about *a, const char *id,
		     int64_t seconds)
{
	struct order_result res;
	struct err e = { 0 };

	json_obj(j);
	if (e2b_order(r, id, LINK_EXTEND, (uint64_t)seconds * 1000, &res, &e) < 0) {
		put_error(j, &e);
	} else {
		json_key(j, "sandbox");
		e2b_put_sandbox(j, r, id, e2b_template_theirs(a->row.template_),
				e2b_is_private(&a->row));
	}
	json_end(j);
}

int e2b_fork(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_JOB_BODY);
	auto_done(e2b_about_done) struct e2b_about a = { 0 };
	int64_t count = 1, seconds = E2B_TIMEOUT_S;
	struct forks f = { 0 };
	struct fork_spec spec = { .fn = note_fork, .ctx = &f };
	struct err why = { 0 };
	struct json j;

	if (e2b_about_read(r, &a, e) < 0 ||
	    field_number(a.ask.body, "count", 1, FORKS_MOST, &count, e) < 0 ||
	    field_number(a.ask.body, "timeout", 1, E2B_TIMEOUT_MOST_S, &seconds, e) < 0)
		return -1;
	spec.count = (unsigned)count;
	spec.owner = a.ask.owner ? a.ask.owner : a.row.owner;
	/* Those that run stay, whatever became of the others. */
	if (op_fork(r->cay, a.row.id, &spec, &why) < 0 && f.n == 0) {
		*e = why;
		return -1;
	}
	json_init(&j, &b);
	json_arr(&j);
	for (int i = 0; i < count; i++) {
		if (i < f.n) {
			put_fork(&j, r, &a, f.ids[i], seconds);
			continue;
		}
		json_obj(&j);
		put_error(&j, &why);
		json_end(&j);
	}
	json_end(&j);
	return json_done(&j) < 0 ? err_sys(e, ENOMEM, "answer") : e2b_answer(r, 201, &b, e);
}
