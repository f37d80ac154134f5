/* SPDX-License-Identifier: Apache-2.0 */
#include "link/decode.h"

#include <string.h>
#include <sys/wait.h>

enum { CODE_TIMEOUT = 124, CODE_SIGNAL = 128, NOBODY = 65534 };

uint64_t frame_number(const struct frame *f, uint16_t tag, uint64_t otherwise)
{
	struct str body = f->body;
	struct field field;
	uint64_t v;

	while (field_next(&body, &field) > 0)
		if (field.tag == tag)
			return field_u64(field, &v) == 0 ? v : otherwise;
	return otherwise;
}

bool frame_text(const struct frame *f, uint16_t tag, char *out, size_t size)
{
	struct str body = f->body;
	struct field field;

	out[0] = '\0';
	while (field_next(&body, &field) > 0)
		if (field.tag == tag) {
			if (field.value.n >= size)
				field.value.n = size - 1;
			return str_copy(out, size, field.value);
		}
	return false;
}

static uint32_t number_32(const struct frame *f, uint16_t tag)
{
	return (uint32_t)frame_number(f, tag, 0);
}

static int number_int(const struct frame *f, uint16_t tag)
{
	return (int)(frame_number(f, tag, 0) & INT32_MAX);
}

bool warning_next(struct str *fields, struct str *ret)
{
	struct field field;

	while (field_next(fields, &field) > 0)
		if (field.tag == TAG_WARNING && field.value.n) {
			*ret = field.value;
			return true;
		}
	return false;
}

int frame_error(const struct frame *f, struct err *e)
{
	enum err_kind kind;
	char name[32];

	(void)frame_text(f, TAG_KIND, name, sizeof name);
	kind = err_kind_of(name);
	/* ERR_NONE would end a command with exit code 0. */
	(void)err_set(e, kind == ERR_NONE ? ERR_FAILED : kind, "the warden refused");
	(void)frame_text(f, TAG_TEXT, e->msg, sizeof e->msg);
	(void)frame_text(f, TAG_HINT, e->hint, sizeof e->hint);
	(void)frame_text(f, TAG_CODE, e->code, sizeof e->code);
	(void)frame_text(f, TAG_ABOUT, e->about, sizeof e->about);
	if (!e->code[0] && frame_number(f, TAG_STAGE, STAGE_SETUP) == STAGE_EXEC)
		(void)err_code(e, "exec.failed", NULL);
	e->sys = number_int(f, TAG_ERRNO) & 0xfff;
	return -1;
}

void decode_ready(const struct frame *f, struct link_ready *ret)
{
	*ret = (struct link_ready){
		.init_pid = number_int(f, TAG_INIT_PID),
		.start_us = frame_number(f, TAG_START_US, 0),
		.uid_base = number_32(f, TAG_UID_BASE),
		.fields = f->body,
	};
}

void decode_started(const struct frame *f, struct call_started *ret)
{
	*ret = (struct call_started){
		.call = number_32(f, TAG_CALL),
		.pid = number_int(f, TAG_PID),
		.existing = frame_number(f, TAG_EXISTING, 0) != 0,
		.offset = frame_number(f, TAG_OFFSET, 0),
		.dropped = frame_number(f, TAG_DROPPED, 0),
		.fields = f->body,
	};
}

void decode_result(const struct frame *f, struct call_result *ret)
{
	uint64_t own = frame_number(f, TAG_CALL_MEMORY, 0);

	*ret = (struct call_result){
		.call = number_32(f, TAG_CALL),
		.status = number_int(f, TAG_STATUS) & 0xffff,
		.duration_us = frame_number(f, TAG_DURATION_US, 0),
		.cpu_us = frame_number(f, TAG_CPU_US, 0),
		.maxrss_kb = frame_number(f, TAG_MAXRSS_KB, 0),
		.out_bytes = frame_number(f, TAG_OUT_BYTES, 0),
		.err_bytes = frame_number(f, TAG_ERR_BYTES, 0),
		.oom_kills = frame_number(f, TAG_OOM_KILLS, 0),
		.oom_limit = own ? own : frame_number(f, TAG_MEMORY, 0),
		.oom_own = own != 0,
		.fields = f->body,
	};
	(void)frame_text(f, TAG_REASON, ret->reason, sizeof ret->reason);
	ret->code = WIFSIGNALED(ret->status) ? CODE_SIGNAL + WTERMSIG(ret->status)
					     : WEXITSTATUS(ret->status);
	if (strcmp(ret->reason, "timeout") == 0)
		ret->code = CODE_TIMEOUT;
}

void decode_status(const struct frame *f, struct sandbox_status *ret)
{
	*ret = (struct sandbox_status){
		.init_pid = number_int(f, TAG_INIT_PID),
		.calls_running = number_32(f, TAG_CALLS),
		.calls_total = frame_number(f, TAG_CALL, 0),
		.rss_kb = frame_number(f, TAG_RSS_KB, 0),
		.ttl_left_ms = frame_number(f, TAG_TTL_LEFT_MS, UINT64_MAX),
		.idle_left_ms = frame_number(f, TAG_IDLE_LEFT_MS, UINT64_MAX),
		.expires_at_ms = frame_number(f, TAG_EXPIRES_AT_MS, 0),
		.lease_pid = number_int(f, TAG_LEASE),
		.switching = frame_number(f, TAG_SWITCHING, 0) != 0,
	};
	(void)frame_text(f, TAG_STATE, ret->state, sizeof ret->state);
	(void)frame_text(f, TAG_LAYER, ret->top, sizeof ret->top);
	(void)frame_text(f, TAG_POLICY_HASH, ret->policy_hash, sizeof ret->policy_hash);
}

static void join_args(const struct frame *f, char *out, size_t size)
{
	struct str body = f->body;
	struct field field;
	size_t at = 0;

	out[0] = '\0';
	while (field_next(&body, &field) > 0 && at + 1 < size) {
		size_t n = field.value.n;

		if (field.tag != TAG_ARG && field.tag != TAG_PATH)
			continue;
		if (at)
			out[at++] = ' ';
		n = n < size - at - 1 ? n : size - at - 1;
		if (n)
			memcpy(out + at, field.value.p, n);
		at += n;
		out[at] = '\0';
	}
}

void decode_process(const struct frame *f, struct link_process *ret)
{
	char state[4];

	*ret = (struct link_process){
		.pid = number_int(f, TAG_PID),
		.ppid = number_int(f, TAG_PPID),
		.call = number_32(f, TAG_CALL),
		.cpu_us = frame_number(f, TAG_CPU_US, 0),
		.rss_kb = frame_number(f, TAG_RSS_KB, 0),
		.user = (uint32_t)frame_number(f, TAG_USER, NOBODY),
	};
	(void)frame_text(f, TAG_STATE, state, sizeof state);
	ret->state = state[0];
	join_args(f, ret->args, sizeof ret->args);
}

void decode_flow(const struct frame *f, struct link_flow *ret)
{
	*ret = (struct link_flow){
		.port = (uint16_t)frame_number(f, TAG_PORT, 0),
		.call = number_32(f, TAG_CALL),
		.up = frame_number(f, TAG_OUT_BYTES, 0),
		.down = frame_number(f, TAG_BYTES, 0),
		.duration_us = frame_number(f, TAG_DURATION_US, 0),
	};
	(void)frame_text(f, TAG_NAME, ret->name, sizeof ret->name);
	(void)frame_text(f, TAG_ADDRESS, ret->address, sizeof ret->address);
}

void decode_call_row(const struct frame *f, struct link_call_row *ret)
{
	char state[16], kind[32];

	*ret = (struct link_call_row){
		.call = number_32(f, TAG_CALL),
		.pid = number_int(f, TAG_PID),
		.op = (enum call_op)(frame_number(f, TAG_OP, CALL_EXEC) & 0xff),
		.tty = frame_number(f, TAG_TTY, 0) != 0,
		.detached = frame_number(f, TAG_DETACHED, 0) != 0,
		.start_ms = frame_number(f, TAG_START_MS, 0),
		.out_bytes = frame_number(f, TAG_OUT_BYTES, 0),
		.err_bytes = frame_number(f, TAG_ERR_BYTES, 0),
		.kept_from = frame_number(f, TAG_DROPPED, 0),
		.kept_to = frame_number(f, TAG_OFFSET, 0),
	};
	(void)frame_text(f, TAG_STATE, state, sizeof state);
	ret->running = strcmp(state, "running") == 0;
	ret->failed = frame_text(f, TAG_KIND, kind, sizeof kind);
	(void)frame_text(f, TAG_CALL_ID, ret->call_id, sizeof ret->call_id);
	(void)frame_text(f, TAG_TEXT, ret->error, sizeof ret->error);
	decode_result(f, &ret->result);
	join_args(f, ret->args, sizeof ret->args);
}

const char *call_row_state(const struct link_call_row *r)
{
	return r->running ? "running" : r->failed ? "failed" : r->result.reason;
}

void denied_read(struct str fields, struct call_denied *ret)
{
	struct call_denied d = { .count = 1 };
	struct field in;

	while (field_next(&fields, &in) > 0) {
		if (in.tag == TAG_PORT)
			(void)field_u64(in, &d.port);
		else if (in.tag == TAG_COUNT)
			(void)field_u64(in, &d.count);
		else if (in.tag == TAG_NAME)
			d.name = in.value;
		else if (in.tag == TAG_ADDRESS)
			d.address = in.value;
		else if (in.tag == TAG_RULE)
			d.rule = in.value;
		else if (in.tag == TAG_REASON)
			d.reason = in.value;
		else if (in.tag == TAG_TEXT)
			d.why = in.value;
		else if (in.tag == TAG_HINT)
			d.fix = in.value;
	}
	*ret = d;
}

bool denied_next(struct str *fields, struct call_denied *ret)
{
	struct field f;

	while (field_next(fields, &f) > 0)
		if (f.tag == TAG_DENIED) {
			denied_read(f.value, ret);
			return true;
		}
	return false;
}
