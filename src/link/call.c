/* SPDX-License-Identifier: Apache-2.0 */
#include "link/call.h"

#include <errno.h>
#include <signal.h>

#include "base/limits.h"
#include "link/decode.h"
#include "link/parts.h"

static struct link_call *call_of(struct link_channel *c)
{
	return container_of(c, struct link_call, channel);
}

/* Tell a waiting caller that it may write. Credit never raises the room above the window. */
static void on_credit(struct link_call *c, uint64_t bytes)
{
	uint64_t most = LIMIT_STDIN_WINDOW - c->room;

	c->room += (size_t)(bytes < most ? bytes : most);
	if (c->ops->room && link_call_room(c))
		c->ops->room(c, link_call_room(c));
}

/*
 * With a warden of version 2, stop reading the socket while the caller has too much unread output.
 */
static void hold_or_go_on(struct link_call *c, uint64_t before)
{
	struct link *l = c->channel.link;

	if (l->version != 2 || (before > c->window) == (c->ahead > c->window))
		return;
	link_hold(l, c->ahead > c->window);
}

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	uint64_t before = c->ahead;

	c->ahead += data.n;
	if (c->channel.link->version >= 3 && c->ahead + c->owed > c->window) {
		link_break(c->channel.link, "more output than it may send");
		return;
	}
	hold_or_go_on(c, before);
	c->ops->output(c, stream, data);
}

/* False if the callback ended the call. */
static bool tell_started(struct link_call *c, const struct call_started *s)
{
	bool gone = false;

	c->channel.gone = &gone;
	c->ops->started(c, s);
	if (gone)
		return false;
	c->channel.gone = NULL;
	return true;
}

static void on_started(struct link_call *c, const struct frame *f)
{
	struct call_started s;

	if (c->started)
		return;
	c->started = true;
	channel_no_deadline(&c->channel);
	decode_started(f, &s);
	if (c->ops->started && !tell_started(c, &s))
		return;
	if (c->joins)
		on_credit(c, frame_number(f, TAG_STDIN, 0));
}

/* Give back what the channel used of the link, before it is closed. */
static void let_go(struct link_call *c)
{
	uint64_t before = c->ahead;

	if (!c->channel.link)
		return;
	c->ahead = 0;
	hold_or_go_on(c, before);
	channel_close(&c->channel);
}

static void end(struct link_call *c, const struct call_result *r, const struct err *why)
{
	let_go(c);
	c->ops->ended(c, r, why);
}

static void on_call_frame(struct link_channel *channel, const struct frame *f, int *fds)
{
	struct link_call *c = call_of(channel);
	struct call_result result;
	struct err e = { 0 };

	frame_close_fds(f, fds);
	switch (f->type) {
	case MSG_C_STARTED:
		on_started(c, f);
		break;
	case MSG_C_STDOUT:
		on_output(c, CALL_STDOUT, f->body);
		break;
	case MSG_C_STDERR:
		on_output(c, CALL_STDERR, f->body);
		break;
	case MSG_C_CREDIT:
		on_credit(c, frame_number(f, TAG_BYTES, 0));
		break;
	case MSG_C_DENIED:
		if (c->ops->denied)
			c->ops->denied(c, f->body);
		break;
	case MSG_C_EXIT:
		decode_result(f, &result);
		end(c, &result, NULL);
		break;
	case MSG_C_ERROR:
		(void)frame_error(f, &e);
		end(c, NULL, &e);
		break;
	default: /* from a newer warden */
		break;
	}
}

static void on_call_failed(struct link_channel *channel, const struct err *why)
{
	struct link_call *c = call_of(channel);

	c->ops->ended(c, NULL, why);
}

/* The warden ends the call, unless it is detached. Version 2 needs an order to kill it. */
static void leave(struct link_channel *channel)
{
	struct link_call *c = call_of(channel);
	struct link *l = channel->link;

	if (l->version < 3 && !c->detached)
		link_call_signal(c, SIGKILL);
	if (l->version != 2)
		(void)conn_send(&l->conn, MSG_C_DROP, channel->number, STR_NONE);
	let_go(c);
}

static void on_call_drained(struct link_channel *channel)
{
	struct link_call *c = call_of(channel);

	if (c->ops->room && link_call_room(c))
		c->ops->room(c, link_call_room(c));
}

static int put_list(struct buf *out, uint16_t tag, const char *const *list)
{
	int r = 0;

	for (; list && *list && r == 0; list++)
		r = field_put_c(out, tag, *list);
	return r;
}

static int put_texts(struct buf *out, const struct call_spec *s)
{
	const struct {
		uint16_t tag;
		const char *text;
	} texts[] = {
		{ TAG_CWD, s->cwd },
		{ TAG_USER, s->user },
		{ TAG_PATH, s->path },
		{ TAG_CALL_ID, s->call_id },
	};
	int r = put_list(out, TAG_ARG, s->argv);

	if (r == 0)
		r = put_list(out, TAG_ENV, s->env);
	if (r == 0)
		r = put_list(out, TAG_LABEL, s->labels);
	for (size_t i = 0; i < ARRAY_LEN(texts) && r == 0; i++)
		if (texts[i].text)
			r = field_put_c(out, texts[i].tag, texts[i].text);
	return r;
}

int call_spec_put(struct buf *out, const struct call_spec *s)
{
	const struct {
		uint16_t tag;
		uint64_t value;
	} numbers[] = {
		{ TAG_OP, s->op },
		{ TAG_OFFSET, s->offset },
		{ TAG_LENGTH, s->length },
		{ TAG_MODE, s->mode },
		{ TAG_TIMEOUT_MS, s->timeout_ms },
		{ TAG_CALL_MEMORY, s->memory },
		{ TAG_TTY, s->tty },
		{ TAG_FINAL, s->final },
		{ TAG_BEST_EFFORT, s->best_effort },
		{ TAG_ROWS, s->rows },
		{ TAG_COLS, s->cols },
		{ TAG_DETACHED, s->detached },
		{ TAG_IDEMPOTENT, s->idempotent },
		{ TAG_RETAIN, s->retain_bytes },
	};
	int r = buf_add_str(out, s->fields);

	for (size_t i = 0; i < ARRAY_LEN(numbers) && r == 0; i++)
		if (numbers[i].value)
			r = field_put_u64(out, numbers[i].tag, numbers[i].value);
	return r < 0 ? r : put_texts(out, s);
}

static uint64_t window_of(uint64_t asked)
{
	if (asked == LINK_NO_OUTPUT)
		return 0;
	return !asked ? LINK_WINDOW : asked < LIMIT_WINDOW ? asked : LIMIT_WINDOW;
}

static int begin(struct link *l, struct link_call *c, uint8_t type, struct buf *body,
		 uint64_t start_ms)
{
	static const struct link_channel_ops ops = { .frame = on_call_frame,
						     .failed = on_call_failed,
						     .expired = leave,
						     .drained = on_call_drained };
	int r = l->version == 2 ? 0 : field_put_u64(body, TAG_WINDOW, c->window);

	if (r == 0)
		r = channel_open(l, &c->channel, &ops, start_ms);
	if (r == 0)
		r = conn_send(&l->conn, type, c->channel.number, buf_str(body));
	if (r < 0)
		channel_close(&c->channel);
	return r;
}

static uint64_t start_deadline(uint64_t asked)
{
	if (asked == LINK_NO_DEADLINE)
		return 0;
	return asked ? asked : LINK_START_MS;
}

int link_call(struct link *l, struct link_call *c, const struct call_spec *spec,
	      const struct link_call_ops *ops)
{
	auto_done(buf_done) struct buf body = BUF_INIT(LIMIT_FRAME_BODY);
	int r = call_spec_put(&body, spec);

	if (r < 0)
		return r;
	*c = (struct link_call){ .ops = ops,
				 .detached = spec->detached || spec->idempotent,
				 .joins = spec->idempotent,
				 .room = spec->idempotent ? 0 : LIMIT_STDIN_WINDOW,
				 .window = window_of(spec->window) };
	return begin(l, c, MSG_C_EXEC, &body, start_deadline(spec->start_ms));
}

int link_attach(struct link *l, struct link_call *c, const struct call_attach *how,
		const struct link_call_ops *ops)
{
	auto_done(buf_done) struct buf body = BUF_INIT(LIMIT_FRAME_BODY);
	int r = how->call ? field_put_u64(&body, TAG_CALL, how->call)
			  : field_put_c(&body, TAG_CALL_ID, how->call_id ? how->call_id : "");

	if (r == 0 && how->offset)
		r = field_put_u64(&body, TAG_OFFSET, how->offset);
	if (r == 0 && how->writes)
		r = field_put_u64(&body, TAG_STDIN, how->takes ? 2 : 1);
	if (r < 0)
		return r;
	*c = (struct link_call){
		.ops = ops, .detached = true, .joins = how->writes, .window = window_of(how->window)
	};
	return begin(l, c, MSG_C_ATTACH, &body, LINK_START_MS);
}

size_t link_call_room(const struct link_call *c)
{
	if (!c->channel.link || c->eof || link_backlog(c->channel.link) >= LIMIT_CONN_HIGH)
		return 0;
	return c->room;
}

size_t link_call_write(struct link_call *c, struct str data)
{
	size_t taken = 0;

	while (data.n > taken && link_call_room(c)) {
		size_t n = data.n - taken;

		n = n < c->room ? n : c->room;
		n = n < LIMIT_FRAME_DATA ? n : LIMIT_FRAME_DATA;
		if (conn_send(&c->channel.link->conn, MSG_C_STDIN, c->channel.number,
			      (struct str){ data.p + taken, n }) < 0)
			break;
		c->room -= n;
		taken += n;
	}
	return taken;
}

void link_call_taken(struct link_call *c, enum call_stream stream, size_t n)
{
	struct link *l = c->channel.link;
	uint64_t before = c->ahead;

	(void)stream; /* stdout and stderr share the window */
	if (!l)
		return;
	c->ahead -= n < c->ahead ? n : c->ahead;
	hold_or_go_on(c, before);
	if (l->version == 2)
		return;
	c->owed += before - c->ahead;
	if (c->owed < c->window / 4)
		return;
	(void)CONN_SAY(&l->conn, MSG_C_CREDIT, c->channel.number, { TAG_BYTES, c->owed, NULL });
	c->owed = 0;
}

void link_call_eof(struct link_call *c)
{
	if (!c->channel.link || c->eof)
		return;
	c->eof = true;
	(void)conn_send(&c->channel.link->conn, MSG_C_STDIN_EOF, c->channel.number, STR_NONE);
}

void link_call_signal(struct link_call *c, int sig)
{
	if (c->channel.link)
		(void)CONN_SAY(&c->channel.link->conn, MSG_C_SIGNAL, c->channel.number,
			       { TAG_SIGNAL, (uint64_t)sig, NULL });
}

void link_call_resize(struct link_call *c, unsigned rows, unsigned cols)
{
	if (c->channel.link)
		(void)CONN_SAY(&c->channel.link->conn, MSG_C_RESIZE, c->channel.number,
			       { TAG_ROWS, rows, NULL }, { TAG_COLS, cols, NULL });
}

void link_call_drop(struct link_call *c)
{
	if (!c->channel.link)
		return;
	leave(&c->channel);
}
