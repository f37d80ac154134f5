/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/sandboxes/{id}/calls: run a command. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/error.h"
#include "api/fields.h"
#include "api/v1/view.h"
#include "base/b64.h"
#include "base/sha256.h"

enum { KEY_HEX = 40 };

/* What a command is made of, while it is started. */
struct start {
	struct call_spec spec;
	const char **argv;
	struct text_pairs env, labels;
	struct buf input;
	bool stdin_open;
	char id[LIMIT_NAME + 1];
};

static void start_done(struct start *s)
{
	free(s->argv);
	text_pairs_done(&s->env);
	text_pairs_done(&s->labels);
	buf_done(&s->input);
}
DEFINE_AUTO(struct start, start_done)

static const char *text_at(const json_t *body, const char *key)
{
	return json_string_value(json_object_get(body, key));
}

static uint64_t number_at(const json_t *body, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(body, key));
}

static int bad_field(const char *field, const char *what, struct err *e)
{
	(void)err_set(e, ERR_INVALID, "%s %s", field, what);
	(void)err_code(e, "field.invalid", NULL);
	return err_field(e, "%s", field);
}

/* argv, or a line for the shell. */
static int read_command(const json_t *body, struct start *s, struct err *e)
{
	const json_t *argv = json_object_get(body, "argv");
	const char *shell = text_at(body, "shell");
	size_t n = json_array_size(argv);

	if (!n == !shell)
		return bad_field("argv", "or shell is needed, and not both", e);
	s->argv = calloc(n + 4, sizeof *s->argv);
	if (!s->argv)
		return err_sys(e, ENOMEM, "start a command");
	for (size_t i = 0; i < n; i++)
		s->argv[i] = json_string_value(json_array_get(argv, i));
	if (shell) {
		s->argv[0] = "/bin/sh";
		s->argv[1] = "-c";
		s->argv[2] = shell;
	}
	s->spec.argv = s->argv;
	return 0;
}

/* The client's own id makes the request safe to repeat. */
static int read_id(const struct v1 *v, struct start *s, struct err *e)
{
	const struct str *key = http_request_header(v->q->http, "idempotency-key");
	const char *id = text_at(v->body, "id");
	char hex[SHA256_HEX];
	uint8_t digest[SHA256_SIZE];

	if (id && key && !str_is(*key, id))
		return bad_field("id", "and Idempotency-Key differ", e);
	if (!id && !key)
		return 0;
	if (id) {
		(void)str_copy(s->id, sizeof s->id, str_of(id));
	} else if (!str_copy(s->id, sizeof s->id, *key)) {
		sha256(key->p, key->n, digest);
		sha256_hex(digest, hex);
		(void)str_copy(s->id, sizeof s->id, (struct str){ hex, KEY_HEX });
	}
	for (const char *p = s->id; *p; p++)
		if (*p <= ' ' || *p > '~')
			return bad_field("id", "must be visible ASCII", e);
	if (!s->id[strspn(s->id, "0123456789")])
		return bad_field("id", "must have a character that is not a digit", e);
	s->spec.call_id = s->id;
	s->spec.idempotent = true;
	return 0;
}

static int read_stdin(const json_t *body, struct start *s, struct err *e)
{
	const char *text = text_at(body, "stdin"), *b64 = text_at(body, "stdin_b64");

	s->stdin_open = json_is_true(json_object_get(body, "stdin_open"));
	s->input = (struct buf)BUF_INIT(LIMIT_STDIN_WINDOW);
	if (text && b64)
		return bad_field("stdin", "and stdin_b64 are both given", e);
	if (text && buf_add_c(&s->input, text) < 0)
		return bad_field("stdin", "is too long: send it to …/stdin", e);
	if (b64 && b64_decode(&s->input, str_of(b64)) < 0)
		return bad_field("stdin_b64", "is not base64, or too long", e);
	return 0;
}

static int read_start(const struct v1 *v, struct start *s, struct err *e)
{
	const json_t *body = v->body, *size = json_object_get(body, "tty_size");

	s->spec = (struct call_spec){
		.op = CALL_EXEC,
		.cwd = text_at(body, "cwd"),
		.user = text_at(body, "user"),
		.timeout_ms = number_at(body, "timeout_ms"),
		.memory = number_at(body, "memory_bytes"),
		.best_effort = json_is_true(json_object_get(body, "best_effort")),
		.tty = json_is_true(json_object_get(body, "tty")),
		.rows = size ? (unsigned)number_at(size, "rows") : 24,
		.cols = size ? (unsigned)number_at(size, "cols") : 80,
		.detached = true,
		.retain_bytes = number_at(body, "retain_bytes"),
	};
	if (read_command(body, s, e) < 0 || read_id(v, s, e) < 0 || read_stdin(body, s, e) < 0 ||
	    field_pairs(body, "env", LIMIT_ENV, &s->env, e) < 0 ||
	    field_pairs(body, "labels", LIMIT_LABELS, &s->labels, e) < 0)
		return -1;
	s->spec.env = (const char *const *)s->env.items;
	s->spec.labels = (const char *const *)s->labels.items;
	return 0;
}

static void on_room(struct http_request *r)
{
	view_room(v1_of(r)->own);
}

static void begin(struct v1 *v, struct box *b)
{
	static const struct http_handler stream = { .room = on_room, .ended = v1_ended };
	auto_done(start_done) struct start s = { 0 };
	uint64_t wait_ms = v1_param_number(v->q, "wait_ms", 0);
	bool events = view_wants_events(v);
	struct view *w = view_new(v, events ? &sink_sse : wait_ms ? &sink_collect : &sink_row);
	struct err e = { 0 };

	if (!w)
		return;
	if (read_start(v, &s, &e) < 0) {
		api_refuse_err(v->q->http, &e);
		return;
	}
	v->q->http->handler = &stream;
	if (w->sink == &sink_row)
		s.spec.window = LINK_NO_OUTPUT;
	if (view_start(w, b, &s.spec) < 0) {
		api_refuse(v->q->http, 503, "the sandbox takes no more requests just now");
		return;
	}
	w->in = s.input;
	s.input = (struct buf){ 0 };
	w->eof = !s.stdin_open && !s.spec.tty;
	view_flush(w);
	if (wait_ms && !events)
		view_wait_at_most(w, wait_ms);
}

void v1_call_start(struct api_request *q)
{
	v1_with_box(q, begin);
}
