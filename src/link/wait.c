/* SPDX-License-Identifier: Apache-2.0 */
#include "link/wait.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"

enum { ASK_MS = 10000, INFO_MS = 2000, SWITCH_MS = 120000, CONNECT_TRIES = 100, CONNECT_MS = 10 };

/* A question with its blocked caller. */
struct waited {
	struct link_ask ask;
	/* 1: more frames follow, 0: complete, -1: invalid. */
	int (*take)(struct waited *q, const struct frame *f);
	void *ret;
	int (*fn)(void *ctx, const void *row);
	void *ctx;
	bool over;
	int result;
	struct err *e;
};

static int on_answer(struct link_ask *a, const struct frame *f)
{
	struct waited *q = container_of(a, struct waited, ask);

	return q->take(q, f);
}

static void on_done(struct link_ask *a, const struct err *why)
{
	struct waited *q = container_of(a, struct waited, ask);

	q->over = true;
	q->result = why ? -1 : 0;
	if (why)
		*q->e = *why;
}

static int not_waited(const struct link *l, int r, struct err *e)
{
	if (r == -ETIMEDOUT) {
		(void)err_set(e, ERR_TIMEOUT, "the warden of sandbox '%s' did not answer in time",
			      link_id(l));
		return err_code(e, "warden.timeout", link_id(l));
	}
	if (r == -ECANCELED) {
		(void)err_set(e, ERR_FAILED, "the operation on sandbox '%s' was cancelled",
			      link_id(l));
		return err_code(e, "cancelled", NULL);
	}
	if (r == -ENOTCONN) {
		(void)err_set(e, ERR_UNAVAILABLE, "the sandbox '%s' has ended", link_id(l));
		return err_code(e, "sandbox.gone", link_id(l));
	}
	return err_sys(e, -r, "ask the warden of sandbox '%s'", link_id(l));
}

static int ask_wait(struct link *l, struct waiter *w, struct waited *q, uint8_t type,
		    struct str body, uint64_t timeout_ms, struct err *e)
{
	int r;

	q->ask.answer = on_answer;
	q->ask.done = on_done;
	q->e = e;
	r = link_ask(l, &q->ask, type, body, timeout_ms);
	if (r == 0)
		r = wait_until(w, &q->over);
	link_ask_drop(&q->ask);
	return r < 0 ? not_waited(l, r, e) : q->result;
}

int link_connect(struct waiter *w, const struct state *s, const char *id, struct link **ret,
		 struct err *e)
{
	for (int i = 0;; i++) {
		int r = link_open(w->loop, s, id, NULL, NULL, ret, e);

		if (r == 0 || strcmp(e->code, "warden.busy") != 0 || i == CONNECT_TRIES)
			return r;
		r = wait_pause(w, CONNECT_MS * NS_PER_MS);
		if (r < 0)
			return -1;
	}
}

static int take_status(struct waited *q, const struct frame *f)
{
	if (f->type != MSG_C_STATE)
		return -1;
	decode_status(f, q->ret);
	return 0;
}

int link_info(struct link *l, struct waiter *w, struct sandbox_status *ret, struct err *e)
{
	struct sandbox_status status = { 0 };
	struct waited q = { .take = take_status, .ret = &status };

	if (ask_wait(l, w, &q, MSG_C_INFO, STR_NONE, INFO_MS, e) < 0)
		return -1;
	*ret = status;
	return 0;
}

static int take_nothing(struct waited *q, const struct frame *f)
{
	return f->type == *(const uint8_t *)q->ctx ? 0 : -1;
}

static uint64_t left_ms(const struct waiter *w)
{
	uint64_t now = clock_mono_ns();

	if (!w->deadline_ns)
		return 0;
	return w->deadline_ns > now + NS_PER_MS ? (w->deadline_ns - now) / NS_PER_MS : 1;
}

int link_lease(struct link *l, struct waiter *w, struct err *e)
{
	auto_done(buf_done) struct buf body = BUF_INIT(64);
	uint8_t answer = MSG_C_LEASED;
	struct waited q = { .take = take_nothing, .ctx = &answer };
	uint64_t left = left_ms(w);
	/* At the deadline the warden answers with the current holder: wait a little longer. */
	struct waiter patient = *w;

	if (left && field_put_u64(&body, TAG_TIMEOUT_MS, left) < 0)
		return err_sys(e, ENOMEM, "ask for the lease");
	if (left)
		patient.deadline_ns += INFO_MS * NS_PER_MS;
	if (ask_wait(l, &patient, &q, MSG_C_LEASE, buf_str(&body), 0, e) == 0)
		return 0;
	if (link_version(l) == 2 && e->kind == ERR_INVALID) {
		(void)err_set(e, ERR_NOT_FOUND, "the warden of sandbox '%s' has no lease",
			      link_id(l));
		return err_code(e, "lease.none", link_id(l));
	}
	if (link_version(l) != 2)
		link_lease_end(l); /* the lease may still arrive */
	return -1;
}

void link_lease_end(struct link *l)
{
	(void)link_tell(l, MSG_C_LEASE_END, STR_NONE);
}

static int put_switch(struct buf *b, const struct link_switch *how)
{
	int r = how->seal ? field_put_c(b, TAG_SEAL, how->seal) : 0;

	for (size_t i = 0; i < how->nlayers && r == 0; i++)
		r = field_put_c(b, TAG_LAYER, how->layers[i]);
	if (r == 0 && how->force)
		r = field_put_u64(b, TAG_FORCE, 1);
	if (r == 0 && how->alone)
		r = field_put_u64(b, TAG_CALLS, 0);
	if (r == 0 && how->snapshot)
		r = field_put_c(b, TAG_SNAPSHOT, how->snapshot);
	if (r == 0 && how->name)
		r = field_put_c(b, TAG_NAME, how->name);
	return r;
}

static int take_switched(struct waited *q, const struct frame *f)
{
	struct link_switched *ret = q->ret;

	if (f->type != MSG_C_SWITCHED)
		return -1;
	*ret = (struct link_switched){
		.sealed = (unsigned)(frame_number(f, TAG_SEALED, 0) & 3),
		.duration_us = frame_number(f, TAG_DURATION_US, 0),
		.freeze_us = frame_number(f, TAG_FREEZE_US, 0),
	};
	return 0;
}

int link_switch(struct link *l, struct waiter *w, const struct link_switch *how,
		struct link_switched *ret, struct err *e)
{
	auto_done(buf_done) struct buf body = BUF_INIT(LIMIT_FRAME_BODY);
	struct link_switched got = { 0 };
	struct waited q = { .take = take_switched, .ret = &got };

	if (put_switch(&body, how) < 0)
		return err_sys(e, ENOMEM, "ask for a switch");
	if (ask_wait(l, w, &q, MSG_C_SWITCH, buf_str(&body), SWITCH_MS, e) < 0)
		return -1;
	*ret = got;
	return 0;
}

static int take_cut(struct waited *q, const struct frame *f)
{
	uint64_t *ret = q->ret;

	if (f->type != MSG_C_POLICY_SET)
		return -1;
	*ret = frame_number(f, TAG_COUNT, 0);
	return 0;
}

int link_policy(struct link *l, struct waiter *w, struct str compiled, uint64_t *ret_cut,
		struct err *e)
{
	auto_done(buf_done) struct buf body = BUF_INIT(LIMIT_FRAME_BODY);
	uint64_t cut = 0;
	struct waited q = { .take = take_cut, .ret = &cut };

	if (field_put(&body, TAG_NET_POLICY, compiled) < 0)
		return err_sys(e, ENOMEM, "send a policy");
	if (ask_wait(l, w, &q, MSG_C_POLICY, buf_str(&body), ASK_MS, e) < 0)
		return -1;
	*ret_cut = cut;
	return 0;
}

int link_order(struct link *l, struct waiter *w, enum link_order order, uint64_t ms,
	       struct sandbox_status *ret, struct err *e)
{
	static const uint8_t types[] = { MSG_C_PAUSE, MSG_C_RESUME, MSG_C_EXTEND, MSG_C_EXTEND };
	auto_done(buf_done) struct buf body = BUF_INIT(64);
	struct sandbox_status status = { 0 };
	struct waited q = { .take = take_status, .ret = &status };

	if (field_put_u64(&body, order == LINK_EXPIRE_AT ? TAG_EXPIRES_AT_MS : TAG_TTL_MS, ms) < 0)
		return err_sys(e, ENOMEM, "ask");
	if (ask_wait(l, w, &q, types[order], buf_str(&body), ASK_MS, e) < 0)
		return -1;
	*ret = status;
	return 0;
}

struct trace_head {
	uint64_t seq;
	char hash[65];
};

static int take_head(struct waited *q, const struct frame *f)
{
	struct trace_head *ret = q->ret;

	if (f->type != MSG_C_SETTLED)
		return -1;
	ret->seq = frame_number(f, TAG_SEQ, 0);
	return frame_text(f, TAG_HASH, ret->hash, sizeof ret->hash) ? 0 : -1;
}

int link_sync_trace(struct link *l, struct waiter *w, uint64_t *ret_seq, char ret_hash[65],
		    struct err *e)
{
	struct trace_head head = { 0 };
	struct waited q = { .take = take_head, .ret = &head };

	if (ask_wait(l, w, &q, MSG_C_SETTLE, STR_NONE, ASK_MS, e) < 0)
		return -1;
	*ret_seq = head.seq;
	memcpy(ret_hash, head.hash, sizeof head.hash);
	return 0;
}

int link_destroy(struct link *l, struct waiter *w, bool unclaimed, struct err *e)
{
	auto_done(buf_done) struct buf body = BUF_INIT(64);
	uint8_t answer = MSG_C_DESTROYED;
	struct waited q = { .take = take_nothing, .ctx = &answer };

	if (unclaimed && field_put_c(&body, TAG_READY_DIR, "") < 0)
		return err_sys(e, ENOMEM, "ask");
	return ask_wait(l, w, &q, MSG_C_DESTROY, buf_str(&body), ASK_MS, e);
}

/* Rows of one type until the end of the list. After fn has stopped, skip the remaining rows. */
static int list_row(struct waited *q, const struct frame *f, uint8_t type, const void *row)
{
	if (f->type == MSG_C_END)
		return 0;
	if (f->type != type)
		return -1;
	return q->fn(q->ctx, row) ? 0 : 1;
}

static int take_process(struct waited *q, const struct frame *f)
{
	struct link_process p;

	decode_process(f, &p);
	return list_row(q, f, MSG_C_PROCESS, &p);
}

static int take_flow(struct waited *q, const struct frame *f)
{
	struct link_flow flow;

	decode_flow(f, &flow);
	return list_row(q, f, MSG_C_FLOW, &flow);
}

static int take_call_row(struct waited *q, const struct frame *f)
{
	struct link_call_row row;

	decode_call_row(f, &row);
	return list_row(q, f, MSG_C_CALL, &row);
}

struct ps_ctx {
	int (*fn)(void *ctx, const struct link_process *p);
	void *ctx;
};

static int pass_process(void *ctx, const void *row)
{
	const struct ps_ctx *to = ctx;

	return to->fn(to->ctx, row);
}

int link_ps(struct link *l, struct waiter *w, int (*fn)(void *ctx, const struct link_process *p),
	    void *ctx, struct err *e)
{
	struct ps_ctx to = { fn, ctx };
	struct waited q = { .take = take_process, .fn = pass_process, .ctx = &to };

	return ask_wait(l, w, &q, MSG_C_PS, STR_NONE, ASK_MS, e);
}

struct flow_ctx {
	int (*fn)(void *ctx, const struct link_flow *f);
	void *ctx;
};

static int pass_flow(void *ctx, const void *row)
{
	const struct flow_ctx *to = ctx;

	return to->fn(to->ctx, row);
}

int link_flows(struct link *l, struct waiter *w, int (*fn)(void *ctx, const struct link_flow *f),
	       void *ctx, struct err *e)
{
	struct flow_ctx to = { fn, ctx };
	struct waited q = { .take = take_flow, .fn = pass_flow, .ctx = &to };

	return ask_wait(l, w, &q, MSG_C_NET, STR_NONE, ASK_MS, e);
}

/* A warden of version 2 answers that it does not know the question. */
static int not_listed(const struct link *l, struct err *e)
{
	if (link_version(l) != 2 || e->kind != ERR_INVALID)
		return -1;
	(void)err_set(e, ERR_NOT_FOUND,
		      "the warden of sandbox '%s' is of an older version and keeps no calls",
		      link_id(l));
	return err_code(e, "call.none", link_id(l));
}

struct call_ctx {
	int (*fn)(void *ctx, const struct link_call_row *r);
	void *ctx;
};

static int pass_call(void *ctx, const void *row)
{
	const struct call_ctx *to = ctx;

	return to->fn(to->ctx, row);
}

int link_calls(struct link *l, struct waiter *w, uint32_t call,
	       int (*fn)(void *ctx, const struct link_call_row *r), void *ctx, struct err *e)
{
	auto_done(buf_done) struct buf body = BUF_INIT(64);
	struct call_ctx to = { fn, ctx };
	struct waited q = { .take = take_call_row, .fn = pass_call, .ctx = &to };

	if (call && field_put_u64(&body, TAG_CALL, call) < 0)
		return err_sys(e, ENOMEM, "ask");
	return ask_wait(l, w, &q, MSG_C_CALLS, buf_str(&body), ASK_MS, e) < 0 ? not_listed(l, e)
									      : 0;
}

static int take_one_call(void *ctx, const void *row)
{
	struct link_call_row *ret = ctx;

	*ret = *(const struct link_call_row *)row;
	ret->result.fields = STR_NONE; /* the fields were borrowed from the frame */
	return 0;
}

int link_call_find(struct link *l, struct waiter *w, uint32_t call, const char *call_id,
		   struct link_call_row *ret, struct err *e)
{
	auto_done(buf_done) struct buf body = BUF_INIT(4096);
	struct link_call_row row = { 0 };
	struct waited q = { .take = take_call_row, .fn = take_one_call, .ctx = &row };
	int r = call ? field_put_u64(&body, TAG_CALL, call)
		     : field_put_c(&body, TAG_CALL_ID, call_id);

	if (r < 0)
		return err_sys(e, -r, "ask for a call");
	if (ask_wait(l, w, &q, MSG_C_CALLS, buf_str(&body), ASK_MS, e) < 0)
		return not_listed(l, e);
	*ret = row;
	return 0;
}

struct dial_wait {
	struct link_dial dial;
	bool over;
	int fd;
	struct err *e;
};

static void on_dialed(struct link_dial *d, int fd, const struct err *why)
{
	struct dial_wait *q = container_of(d, struct dial_wait, dial);

	q->over = true;
	q->fd = fd;
	if (why)
		*q->e = *why;
}

int link_dial_wait(struct link *l, struct waiter *w, uint16_t port, int *ret_fd, struct err *e)
{
	struct dial_wait q = { .fd = FD_NONE, .e = e, .dial.done = on_dialed };
	int r = link_dial(l, &q.dial, port, ASK_MS);

	if (r == 0)
		r = wait_until(w, &q.over);
	link_dial_drop(&q.dial);
	if (r < 0)
		return not_waited(l, r, e);
	if (q.fd < 0)
		return -1;
	*ret_fd = q.fd;
	return 0;
}
