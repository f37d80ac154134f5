/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filesystem.Filesystem: each RPC is one call inside, with the rights of its user: a list by init,
 * or a small command. Its exit code and the entries that it prints are the answer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/e2b/entry.h"
#include "api/e2b/file.h"
#include "api/fields.h"
#include "wire/file_entry.h"
#include "wire/json_write.h"

/* The loop sorts and writes the entries at once, and all other clients wait for that. */
enum {
	OUT_MOST = 16 << 20,
	ENTRIES_MOST = 50000,
	NO_SUCH = 44,
	EXISTS = 17,
	WRONG_TYPE = 20,
	DEPTH_MOST = 1000
};

#define SHOW " && exec find \"$2\" -maxdepth 0 -printf \"$1\""

/* $1 is the format for find; $2 and $3 are paths. */
static const char make_script[] = "[ -d \"$2\" ] && exit 17; [ -e \"$2\" ] && exit 20; "
				  "mkdir -p -- \"$2\"" SHOW;
static const char move_script[] = "[ -e \"$3\" ] || [ -L \"$3\" ] || exit 44; "
				  "mkdir -p -- \"$(dirname -- \"$2\")\" && "
				  "mv -fT -- \"$3\" \"$2\"" SHOW;
static const char remove_script[] = "exec rm -rf -- \"$2\"";

enum shape { ONE_ENTRY, MANY_ENTRIES, NOTHING };

struct asking {
	struct envd *v;
	struct box_call call;
	enum shape shape;
	char path[ENVD_PATH], other[ENVD_PATH]; /* other: the source of a move */
	struct file_complaint complaint;
	struct buf out;
	bool too_long;
};

static struct asking *asking_of(struct link_call *c)
{
	return container_of(container_of(c, struct box_call, call), struct asking, call);
}

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct asking *a = asking_of(c);

	if (stream == CALL_STDERR)
		file_complaint_add(&a->complaint, data);
	else if (buf_add_str(&a->out, data) < 0)
		a->too_long = true;
	link_call_taken(c, stream, data.n);
}

static int by_path(const void *x, const void *y)
{
	const struct file_entry *a = x, *b = y;

	return file_entry_compare(a->path, b->path);
}

/* All entries, in order; the caller frees them. -E2BIG, -EBADMSG or -ENOMEM. */
static long read_entries(struct str text, struct file_entry **ret)
{
	auto_free struct file_entry *all = NULL;
	size_t n = 0, room = 0;
	struct file_entry f;
	int r;

	while ((r = file_entry_next(&text, &f)) == 1) {
		if (n == ENTRIES_MOST)
			return -E2BIG;
		if (n == room) {
			void *more = reallocarray(all, room * 2 + 16, sizeof *all);

			if (!more)
				return -ENOMEM;
			all = more;
			room = room * 2 + 16;
		}
		all[n++] = f;
	}
	if (r < 0)
		return r;
	if (n)
		qsort(all, n, sizeof *all, by_path);
	*ret = TAKE_PTR(all);
	return (long)n;
}

static int put_answer(struct asking *a, struct buf *out)
{
	auto_free struct file_entry *all = NULL;
	long n = read_entries(buf_str(&a->out), &all);
	struct json j;

	if (n < 0)
		return (int)n;
	if (a->shape == ONE_ENTRY && n != 1)
		return -EBADMSG;
	json_init(&j, out);
	json_obj(&j);
	if (a->shape == MANY_ENTRIES)
		json_put_arr(&j, "entries");
	else if (a->shape == ONE_ENTRY)
		json_key(&j, "entry");
	for (long i = 0; i < n; i++)
		entry_put(&j, &all[i]);
	if (a->shape == MANY_ENTRIES)
		json_end(&j);
	json_end(&j);
	return json_done(&j);
}

static void refuse(struct asking *a, int code)
{
	if (code == NO_SUCH)
		envd_fail(a->v, "not_found", "path '%s' does not exist",
			  a->other[0] == '/' ? a->other : a->path);
	else if (code == EXISTS)
		envd_fail(a->v, "already_exists", "path '%s' exists already", a->path);
	else if (code == WRONG_TYPE)
		envd_fail(a->v, "invalid_argument", "path '%s' %s", a->path,
			  a->shape == MANY_ENTRIES ? "is not a directory"
						   : "exists and is not a directory");
	else if (strstr(a->complaint.text, "Permission denied"))
		envd_fail(a->v, "permission_denied", "%s", a->complaint.text);
	else
		envd_fail(a->v, "internal", "%s", a->complaint.text);
}

static void on_ended(struct link_call *c, const struct call_result *res, const struct err *why)
{
	struct asking *a = asking_of(c);
	auto_done(buf_done) struct buf out = BUF_INIT(LIMIT_HTTP_ANSWER);
	int r = !why && res->code == 0 && !a->too_long ? put_answer(a, &out) : 0;

	box_call_done(&a->call);
	if (why && why->kind == ERR_UNAVAILABLE)
		envd_gone(a->v, why);
	else if (why && strstr(why->msg, "user"))
		envd_fail(a->v, "unauthenticated", "invalid username: '%s'", a->v->user);
	else if (why)
		envd_fail(a->v, "internal", "%s", why->msg);
	else if (res->code != 0)
		refuse(a, res->code);
	else if (a->too_long || r == -E2BIG)
		envd_fail(a->v, "resource_exhausted", "the list is too long; at most %d entries",
			  ENTRIES_MOST);
	else if (r < 0)
		envd_fail(a->v, "internal", "the sandbox gave a malformed answer");
	else
		envd_answer(a->v, &out);
}

static void on_gone(struct box_call *c, const struct err *why)
{
	envd_gone(container_of(c, struct asking, call)->v, why);
}

static void asking_done(struct envd *v)
{
	struct asking *a = v->own;

	box_call_done(&a->call);
	buf_done(&a->out);
	free(a);
}

static void start(struct asking *a, struct box *b, const struct call_spec *spec)
{
	static const struct link_call_ops ops = { .output = on_output, .ended = on_ended };

	if (box_call(b, &a->call, spec, &ops) < 0)
		envd_fail(a->v, "unavailable", "the sandbox takes no more requests just now");
	else
		link_call_eof(&a->call.call);
}

/* The entry itself where the depth is "0". */
static void list(struct asking *a, struct box *b, const char *depth)
{
	const char *const argv[] = { depth, NULL };
	const struct call_spec spec = { .op = CALL_LIST,
					.argv = argv,
					.path = a->path,
					.cwd = "/",
					.user = a->v->user[0] ? a->v->user : NULL };

	start(a, b, &spec);
}

static void run(struct asking *a, struct box *b, const char *script)
{
	const char *const argv[] = { "/bin/sh",		"-c",	 script,   "sh",
				     FILE_ENTRY_FORMAT, a->path, a->other, NULL };
	const struct call_spec spec = {
		.op = CALL_EXEC, .argv = argv, .cwd = "/", .user = a->v->user[0] ? a->v->user : NULL
	};

	start(a, b, &spec);
}

/* With the path of this field of the body; NULL: the request was refused. */
static struct asking *begin(struct envd *v, const json_t *body, const char *field, enum shape shape)
{
	struct asking *a = calloc(1, sizeof *a);
	const char *given = "";
	struct err e = { 0 };

	if (!a) {
		envd_fail(v, "internal", "out of memory");
		return NULL;
	}
	*a = (struct asking){
		.v = v, .shape = shape, .call.gone = on_gone, .out = BUF_INIT(OUT_MOST)
	};
	v->own = a;
	v->own_done = asking_done;
	if (field_text(body, field, &given, &e) < 0 || !envd_path(v, given, a->path)) {
		envd_fail(v, "invalid_argument", "%s is missing or too long", field);
		return NULL;
	}
	return a;
}

void filesystem_stat(struct envd *v, struct box *b, const json_t *body)
{
	struct asking *a = begin(v, body, "path", ONE_ENTRY);

	if (a)
		list(a, b, "0");
}

void filesystem_make_dir(struct envd *v, struct box *b, const json_t *body)
{
	struct asking *a = begin(v, body, "path", ONE_ENTRY);

	if (a)
		run(a, b, make_script);
}

void filesystem_move(struct envd *v, struct box *b, const json_t *body)
{
	struct asking *a = begin(v, body, "destination", ONE_ENTRY);
	const char *source = "";
	struct err e = { 0 };

	if (!a)
		return;
	if (field_text(body, "source", &source, &e) < 0 || !envd_path(v, source, a->other))
		envd_fail(v, "invalid_argument", "source is missing or too long");
	else
		run(a, b, move_script);
}

void filesystem_list(struct envd *v, struct box *b, const json_t *body)
{
	struct asking *a = begin(v, body, "path", MANY_ENTRIES);
	int64_t depth = 1;
	struct err e = { 0 };
	char levels[16];

	if (!a)
		return;
	if (field_number(body, "depth", 0, DEPTH_MOST, &depth, &e) < 0) {
		envd_fail(v, "invalid_argument", "%s", e.msg);
		return;
	}
	(void)snprintf(levels, sizeof levels, "%d", depth ? (int)depth : 1);
	list(a, b, levels);
}

void filesystem_remove(struct envd *v, struct box *b, const json_t *body)
{
	struct asking *a = begin(v, body, "path", NOTHING);

	if (a)
		run(a, b, remove_script);
}
