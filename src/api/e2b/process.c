/* SPDX-License-Identifier: Apache-2.0 */
/* process.Process: the RPCs. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "api/e2b/proc.h"
#include "api/fields.h"
#include "base/b64.h"
#include "wire/json_write.h"

static void on_room(struct http_request *r)
{
	struct listener *l = envd_of(r)->own;

	l->full = false;
	if (l->proc)
		proc_room(l->proc);
}

/* The client may leave at any time: the process goes on. */
static const struct http_handler stream_handler = { .room = on_room, .ended = envd_ended };

static void free_listener(struct envd *v)
{
	listener_done(v->own);
	free(v->own);
}

static struct listener *make_listener(struct envd *v)
{
	struct listener *l = calloc(1, sizeof *l);

	if (!l) {
		envd_fail(v, "internal", "out of memory");
		return NULL;
	}
	l->v = v;
	v->own = l;
	v->own_done = free_listener;
	v->q->http->handler = &stream_handler;
	return l;
}

/* What a command is made of, while it is started. */
struct start {
	const char *cmd, *cwd, *tag;
	const char **argv;
	struct text_pairs env;
	bool has_stdin;
	int64_t rows, cols;
	const json_t *pty;
};

static int read_argv(const json_t *process, struct start *s, struct err *e)
{
	const json_t *args = json_object_get(process, "args");
	size_t n = json_array_size(args);

	if (!s->cmd || n > LIMIT_ARGS)
		return err_set(e, ERR_INVALID, "process.cmd is missing, or it has too many args");
	s->argv = calloc(n + 2, sizeof *s->argv);
	if (!s->argv)
		return err_sys(e, ENOMEM, "args");
	s->argv[0] = s->cmd;
	for (size_t i = 0; i < n; i++) {
		s->argv[i + 1] = json_string_value(json_array_get(args, i));
		if (!s->argv[i + 1])
			return err_set(e, ERR_INVALID, "process.args must be texts");
	}
	return 0;
}

static int read_size(const json_t *pty, int64_t *rows, int64_t *cols, struct err *e)
{
	const json_t *size = json_object_get(pty, "size");

	return field_number(size, "rows", 1, 65535, rows, e) < 0
		       ? -1
		       : field_number(size, "cols", 1, 65535, cols, e);
}

static int read_start(const json_t *body, struct start *s, struct err *e)
{
	const json_t *process = json_object_get(body, "process");

	s->pty = json_object_get(body, "pty");
	if (field_text(process, "cmd", &s->cmd, e) < 0 ||
	    field_text(process, "cwd", &s->cwd, e) < 0 || field_text(body, "tag", &s->tag, e) < 0 ||
	    field_bool(body, "stdin", &s->has_stdin, e) < 0 ||
	    field_pairs(process, "envs", LIMIT_ENV, &s->env, e) < 0 ||
	    read_size(s->pty, &s->rows, &s->cols, e) < 0)
		return -1;
	return read_argv(process, s, e);
}

/* cmd, args, envs and cwd: clients rely on each. */
static char *config_of(const struct start *s)
{
	auto_done(buf_done) struct buf b = BUF_INIT(ENVD_BODY);
	struct json j;

	json_init(&j, &b);
	json_obj(&j);
	json_put_c(&j, "cmd", s->cmd);
	json_put_arr(&j, "args");
	for (int i = 1; s->argv[i]; i++)
		json_c(&j, s->argv[i]);
	json_end(&j);
	json_put_obj(&j, "envs");
	for (int i = 0; i < s->env.n; i++) {
		char *eq = strchr(s->env.items[i], '=');

		*eq = '\0';
		json_put_c(&j, s->env.items[i], eq + 1);
		*eq = '=';
	}
	json_end(&j);
	json_put_c(&j, "cwd", s->cwd ? s->cwd : "");
	json_end(&j);
	return json_done(&j) == 0 ? buf_take(&b, &(size_t){ 0 }) : NULL;
}

static void start_process(struct envd *v, struct box *b, const struct start *s)
{
	char cwd[ENVD_PATH], call_id[LIMIT_NAME + 1];
	const struct call_spec spec = { .op = CALL_EXEC,
					.argv = s->argv,
					.env = (const char *const *)s->env.items,
					.cwd = s->cwd && envd_path(v, s->cwd, cwd) ? cwd : NULL,
					.user = v->user[0] ? v->user : NULL,
					.call_id = call_id,
					.tty = s->pty != NULL,
					.rows = (unsigned)s->rows,
					.cols = (unsigned)s->cols,
					.detached = true };
	struct proc *p = proc_new(b);
	struct listener *l = p ? make_listener(v) : NULL;
	int r = -ENOMEM;

	proc_call_id(s->tag ? s->tag : "", call_id);
	if (l) {
		p->config = config_of(s);
		p->tty = s->pty != NULL;
		p->stdin_open = s->has_stdin || p->tty;
		(void)str_copy(p->tag, sizeof p->tag, str_of(s->tag ? s->tag : ""));
		if (p->config)
			r = proc_start(b, &spec, p, l);
	}
	if (r == 0)
		return;
	if (p)
		proc_free(p);
	envd_fail(v, r == -E2BIG ? "resource_exhausted" : "internal",
		  "cannot start the command: %s", strerror(-r));
}

void process_start(struct envd *v, struct box *b, const json_t *body)
{
	struct start s = { .has_stdin = true, .rows = 24, .cols = 80 };
	struct err e = { 0 };

	if (read_start(body, &s, &e) < 0)
		envd_fail(v, "invalid_argument", "%s", e.msg);
	else
		start_process(v, b, &s);
	text_pairs_done(&s.env);
	free(s.argv);
}

struct proc *process_named(struct envd *v, struct box *b, const json_t *selector, bool ended)
{
	const char *tag = json_string_value(json_object_get(selector, "tag"));
	int pid = (int)json_integer_value(json_object_get(selector, "pid"));
	struct proc *p = proc_find(b, pid, tag);

	if (p && (ended || !p->ended))
		return p;
	if (tag)
		envd_fail(v, "not_found", "process with tag %.100s not found", tag);
	else
		envd_fail(v, "not_found", "process with pid %d not found", pid);
	return NULL;
}

static struct proc *named(struct envd *v, struct box *b, const json_t *body, bool ended)
{
	return process_named(v, b, json_object_get(body, "process"), ended);
}

void process_connect(struct envd *v, struct box *b, const json_t *body)
{
	struct proc *p = named(v, b, body, true);
	struct listener *l = p ? make_listener(v) : NULL;

	if (l)
		proc_listen(p, l);
}

void process_list(struct envd *v, struct box *b, const json_t *body)
{
	auto_done(buf_done) struct buf out = BUF_INIT(LIMIT_HTTP_ANSWER);
	struct json j;

	(void)body;
	json_init(&j, &out);
	json_obj(&j);
	json_put_arr(&j, "processes");
	for (const struct proc *p = b->procs; p; p = p->next) {
		if (!p->pid || p->ended)
			continue;
		json_obj(&j);
		json_put_raw(&j, "config", str_of(p->config));
		json_put_i64(&j, "pid", p->pid);
		if (p->tag[0])
			json_put_c(&j, "tag", p->tag);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	if (json_done(&j) < 0)
		envd_fail(v, "internal", "the list is too long");
	else
		envd_answer(v, &out);
}

static void answer_nothing(struct envd *v)
{
	http_answer(v->q->http, 200, "application/json", STR("{}"));
}

/* Clients may leave the padding out. */
static int decode(struct buf *out, const char *text)
{
	static const char *const padding[] = { "", "=", "==", "=" };
	auto_done(buf_done) struct buf padded = BUF_INIT(ENVD_BODY);
	size_t n = strlen(text);
	int r = buf_add(&padded, text, n);

	if (r == 0)
		r = buf_add_c(&padded, padding[n % 4 == 0 ? 0 : n % 4 == 3 ? 1 : 2]);
	return r < 0 ? r : b64_decode(out, buf_str(&padded));
}

bool process_give(struct envd *v, struct proc *p, const json_t *input)
{
	auto_done(buf_done) struct buf data = BUF_INIT(ENVD_BODY);
	const char *field = p->tty ? "pty" : "stdin";
	const char *text = json_string_value(json_object_get(input, field));

	if (!text || decode(&data, text) < 0)
		envd_fail(v, "invalid_argument", "input.%s is missing or not base64", field);
	else if (!p->stdin_open)
		envd_fail(v, "internal", "stdin of process %d is closed", p->pid);
	else if (proc_write(p, buf_str(&data)) < 0)
		envd_fail(v, "resource_exhausted", "process %d does not read its input", p->pid);
	else
		return true;
	return false;
}

void process_input(struct envd *v, struct box *b, const json_t *body)
{
	struct proc *p = named(v, b, body, false);

	if (p && process_give(v, p, json_object_get(body, "input")))
		answer_nothing(v);
}

void process_close_stdin(struct envd *v, struct box *b, const json_t *body)
{
	struct proc *p = named(v, b, body, false);

	if (!p)
		return;
	if (p->tty) {
		envd_fail(v, "unknown", "a terminal has no stdin to close");
		return;
	}
	proc_eof(p);
	answer_nothing(v);
}

void process_signal(struct envd *v, struct box *b, const json_t *body)
{
	const json_t *given = json_object_get(body, "signal");
	const char *name = json_string_value(given);
	struct proc *p = named(v, b, body, false);
	int sig = 0;

	if (!p)
		return;
	if ((name && strcmp(name, "SIGNAL_SIGKILL") == 0) || json_integer_value(given) == SIGKILL)
		sig = SIGKILL;
	else if ((name && strcmp(name, "SIGNAL_SIGTERM") == 0) ||
		 json_integer_value(given) == SIGTERM)
		sig = SIGTERM;
	if (!sig) {
		envd_fail(v, "unimplemented", "only SIGKILL and SIGTERM can be sent");
		return;
	}
	link_call_signal(&p->call, sig);
	answer_nothing(v);
}

void process_update(struct envd *v, struct box *b, const json_t *body)
{
	struct proc *p = named(v, b, body, false);
	int64_t rows = 24, cols = 80;
	struct err e = { 0 };

	if (!p)
		return;
	if (!p->tty || read_size(json_object_get(body, "pty"), &rows, &cols, &e) < 0) {
		envd_fail(v, "invalid_argument", "%s", p->tty ? e.msg : "it has no terminal");
		return;
	}
	link_call_resize(&p->call, (unsigned)rows, (unsigned)cols);
	answer_nothing(v);
}
