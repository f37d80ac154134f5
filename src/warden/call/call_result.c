/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a call: for the trace, for its client, and for later questions. */
#include <sys/wait.h>

#include "warden/net/net.h"
#include "warden/record.h"

static const char *reason_of(const struct call *c)
{
	if (c->kill_reason)
		return c->kill_reason;
	return WIFSIGNALED(c->status) ? "signal" : "exit";
}

void call_trace_exit(struct call *c)
{
	struct trace *t = &c->w->trace;

	(void)trace_begin(t, "call.exit", c->id, c->event);
	if (WIFSIGNALED(c->status))
		trace_num(t, "signal", WTERMSIG(c->status));
	else
		trace_num(t, "code", WEXITSTATUS(c->status));
	trace_text(t, "reason", str_of(reason_of(c)));
	trace_num(t, "duration_us", (int64_t)c->duration_us);
	trace_num(t, "cpu_us", (int64_t)c->cpu_us);
	trace_num(t, "maxrss_kb", (int64_t)c->maxrss_kb);
	trace_num(t, "out_bytes", (int64_t)c->out.bytes);
	trace_num(t, "err_bytes", (int64_t)c->err.bytes);
	net_trace_denied(c);
	warden_trace_end(c->w);
}

static int put_exit(struct buf *out, const struct call *c)
{
	const struct {
		uint16_t tag;
		uint64_t value;
	} numbers[] = {
		{ TAG_CALL, c->id },
		{ TAG_STATUS, (uint64_t)c->status },
		{ TAG_DURATION_US, c->duration_us },
		{ TAG_CPU_US, c->cpu_us },
		{ TAG_MAXRSS_KB, c->maxrss_kb },
		{ TAG_OUT_BYTES, c->out.bytes },
		{ TAG_ERR_BYTES, c->err.bytes },
		{ TAG_OOM_KILLS, c->oom_kills },
		{ c->oom_own ? TAG_CALL_MEMORY : TAG_MEMORY, c->oom_limit },
	};
	int r = field_put_c(out, TAG_REASON, reason_of(c));

	for (size_t i = 0; i < ARRAY_LEN(numbers) && r == 0; i++)
		r = field_put_u64(out, numbers[i].tag, numbers[i].value);
	return r < 0 ? r : net_put_denied(c, out);
}

void call_say_exit(struct call *c)
{
	auto_done(buf_done) struct buf body = BUF_INIT(LIMIT_FRAME_BODY);

	if (put_exit(&body, c) < 0)
		return;
	if (c->client)
		(void)conn_send(&c->client->conn, MSG_C_EXIT, c->chan, buf_str(&body));
	record_ended(c, MSG_C_EXIT, buf_str(&body));
}

void call_say_error(struct call *c, const struct err *why, enum run_stage at)
{
	auto_done(buf_done) struct buf body = BUF_INIT(LIMIT_FRAME_BODY);

	if (client_put_error(&body, why, at) < 0)
		return;
	if (c->client)
		(void)conn_send(&c->client->conn, MSG_C_ERROR, c->chan, buf_str(&body));
	record_ended(c, MSG_C_ERROR, buf_str(&body));
}
