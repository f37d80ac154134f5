/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process.StreamInput: one request whose body is input for a process, message by message.
 *
 *   start (which process) ── data … ── end of the body ──> the answer
 *
 * A process that does not read stops its client, as a full pipe would.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/e2b/proc.h"
#include "wire/connect_envelope.h"

struct streaming {
	struct envd *v;
	struct feeder feeder;
	struct buf in; /* of a message that has not come whole */
	bool failed;
};

static void fail(struct streaming *s, const char *code, const char *text)
{
	if (!s->failed)
		envd_fail(s->v, code, "%s", text);
	s->failed = true;
}

/* Which process: the first message says it. */
static void on_start(struct streaming *s, const json_t *start)
{
	const json_t *process = json_object_get(start, "process");
	struct box *b = box_find(s->v->q->front, s->v->q->id);
	struct proc *p = b ? process_named(s->v, b, process, false) : NULL;

	if (!b)
		fail(s, "unavailable", "The sandbox was not found");
	else if (!p)
		s->failed = true; /* it is told */
	else
		feeder_add(p, &s->feeder);
}

static void on_message(struct streaming *s, struct str payload)
{
	auto_done(json_free) json_t *message = json_load_object(payload);
	const json_t *start = json_object_get(message, "start");
	const json_t *data = json_object_get(message, "data");

	if (!message)
		fail(s, "invalid_argument", "a message is not a JSON object");
	else if (start && !s->feeder.proc)
		on_start(s, start);
	else if (data && !s->feeder.proc)
		fail(s, "not_found", "the process has ended, or was not named");
	else if (data && !process_give(s->v, s->feeder.proc, json_object_get(data, "input")))
		s->failed = true;
}

/* The next whole message. False: there is none, or the process is behind. */
static bool step(struct streaming *s)
{
	struct envelope env;
	int64_t n;

	if (s->failed || feeder_is_full(&s->feeder))
		return false;
	n = envelope_parse(buf_str(&s->in), ENVD_BODY, &env);
	if (n < 0 || (n > 0 && env.flags & ENVELOPE_COMPRESSED))
		fail(s, "invalid_argument", "a message is malformed or too long");
	if (n <= 0 || s->failed)
		return false;
	if (!(env.flags & ENVELOPE_END))
		on_message(s, env.payload);
	buf_shift(&s->in, (size_t)n);
	return true;
}

static size_t on_data(struct http_request *r, struct str data)
{
	struct streaming *s = envd_of(r)->own;

	while (step(s))
		;
	if (s->failed)
		return data.n;
	if (feeder_is_full(&s->feeder))
		return 0;
	if (buf_add_str(&s->in, data) < 0)
		fail(s, "resource_exhausted", "a message is too long");
	while (step(s))
		;
	return data.n;
}

static void on_body_end(struct http_request *r)
{
	struct streaming *s = envd_of(r)->own;

	/* What is left goes in whole: it is at most one message above the limit. */
	s->feeder.at_its_end = true;
	while (step(s))
		;
	if (s->in.len)
		fail(s, "invalid_argument", "the last message was cut");
	if (s->failed)
		return;
	(void)http_answer_begin(r, 200, "application/connect+json", HTTP_LENGTH_UNKNOWN);
	(void)http_answer_envelope(r, 0, STR("{}"));
	(void)http_answer_envelope(r, ENVELOPE_END, STR("{}"));
	http_answer_end(r);
}

static void on_room(struct feeder *f)
{
	struct streaming *s = container_of(f, struct streaming, feeder);

	http_request_resume(s->v->q->http);
}

static void streaming_done(struct envd *v)
{
	struct streaming *s = v->own;

	feeder_remove(&s->feeder);
	buf_done(&s->in);
	free(s);
}

void process_stream_input(struct envd *v, struct box *b)
{
	static const struct http_handler handler = { .data = on_data,
						     .body_end = on_body_end,
						     .ended = envd_ended };
	struct streaming *s = calloc(1, sizeof *s);

	(void)b;
	if (!s) {
		envd_fail(v, "internal", "out of memory");
		return;
	}
	*s = (struct streaming){ .v = v, .feeder.room = on_room };
	/* A message, and what came behind it in one read. */
	s->in = (struct buf)BUF_INIT(ENVD_BODY + ENVELOPE_HEAD + LIMIT_HTTP_WRITE);
	v->own = s;
	v->own_done = streaming_done;
	v->q->http->handler = &handler;
	(void)http_request_stream(v->q->http, 0, false);
}
