/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client_net.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "base/limits.h"

/* Blocking: the next frame into b, whose content before is dropped. */
static int next(int fd, struct buf *b, struct frame *f, struct err *e)
{
	char head[FRAME_HEADER];
	uint32_t n;

	buf_clear(b);
	if (io_read_exact(fd, head, sizeof head) < 0)
		return err_set(e, ERR_UNAVAILABLE, "the sandbox ended before it answered");
	memcpy(&n, head, sizeof n);
	if (n > LIMIT_FRAME_BODY || buf_add(b, head, sizeof head) < 0 || buf_reserve(b, n) < 0)
		return err_set(e, ERR_FAILED, "the warden sent a malformed answer");
	if (n && io_read_exact(fd, b->data + b->len, n) < 0)
		return err_set(e, ERR_UNAVAILABLE, "the sandbox ended before it answered");
	buf_grew(b, n);
	if (frame_parse(buf_str(b), f) <= 0)
		return err_set(e, ERR_FAILED, "the warden sent a malformed answer");
	return f->type == MSG_C_ERROR ? client_take_error(f, e) : 0;
}

static int ask(const struct state *s, const char *id, uint8_t type, struct str policy, int *ret_fd,
	       struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);
	auto_close int fd = FD_NONE;
	size_t at = 0;
	int r;

	if (client_connect(s, id, &fd, e) < 0)
		return -1;
	r = frame_begin(&b, type, 1, &at);
	if (r == 0 && policy.n)
		r = field_put(&b, TAG_NET_POLICY, policy);
	if (r == 0)
		r = frame_end(&b, at, 0);
	if (r == 0)
		r = io_write_all(fd, b.data, b.len);
	if (r < 0)
		return err_sys(e, -r, "ask the warden");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int client_set_policy(const struct state *s, const char *id, struct str compiled, uint64_t *ret_cut,
		      struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY + FRAME_HEADER);
	auto_close int fd = FD_NONE;
	struct frame f;

	if (ask(s, id, MSG_C_POLICY, compiled, &fd, e) < 0 || next(fd, &b, &f, e) < 0)
		return -1;
	*ret_cut = client_number(&f, TAG_COUNT, 0);
	return 0;
}

static void take_flow(const struct frame *f, struct client_flow *ret)
{
	struct str body = f->body;
	struct field field;

	*ret = (struct client_flow){ .port = (uint16_t)client_number(f, TAG_PORT, 0),
				     .call = (uint32_t)client_number(f, TAG_CALL, 0),
				     .up = client_number(f, TAG_OUT_BYTES, 0),
				     .down = client_number(f, TAG_BYTES, 0),
				     .duration_us = client_number(f, TAG_DURATION_US, 0) };
	while (field_next(&body, &field) > 0) {
		if (field.tag == TAG_NAME)
			(void)str_copy(ret->name, sizeof ret->name, field.value);
		else if (field.tag == TAG_ADDRESS)
			(void)str_copy(ret->address, sizeof ret->address, field.value);
	}
}

int client_flows(const struct state *s, const char *id,
		 int (*fn)(void *ctx, const struct client_flow *f), void *ctx, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY + FRAME_HEADER);
	auto_close int fd = FD_NONE;
	struct client_flow flow;
	struct frame f = { 0 };

	if (ask(s, id, MSG_C_NET, STR_NONE, &fd, e) < 0)
		return -1;
	for (;;) {
		if (next(fd, &b, &f, e) < 0)
			return -1;
		if (f.type != MSG_C_FLOW)
			return 0;
		take_flow(&f, &flow);
		if (fn(ctx, &flow) != 0)
			return 0;
	}
}
