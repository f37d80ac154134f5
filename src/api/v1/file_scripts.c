/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stat, list, mkdir, move and delete: each is one small command inside, with the rights of its
 * user. Its exit code and what find(1) prints are the answer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/error.h"
#include "api/v1/file.h"
#include "base/clock.h"
#include "wire/file_entry.h"

/* The loop sorts and writes the entries at once, and all other clients wait for that. */
enum { OUT_MOST = 16 << 20, ENTRIES_MOST = 50000 };

#define SHOW " && exec find \"$2\" -maxdepth 0 -printf \"$1\""

/* $1 is the format for find, $2 the path, $3 another path or a depth. */
const char file_stat_script[] = "[ -e \"$2\" ] || [ -L \"$2\" ] || exit 44; :" SHOW;
static const char mkdir_script[] = "[ -e \"$2\" ] && exit 17; mkdir -p -- \"$2\"" SHOW;
static const char move_script[] =
	"[ -e \"$2\" ] || [ -L \"$2\" ] || exit 44; "
	"mkdir -p -- \"$(dirname -- \"$3\")\" && mv -fT -- \"$2\" \"$3\" && "
	"exec find \"$3\" -maxdepth 0 -printf \"$1\"";
static const char list_script[] = "[ -e \"$2\" ] || exit 44; [ -d \"$2\" ] || exit 20; "
				  "exec find -H \"$2\" -mindepth 1 -maxdepth \"$3\" -printf \"$1\"";
static const char remove_script[] = "[ -e \"$2\" ] || [ -L \"$2\" ] || exit 44; "
				    "exec rm -rf -- \"$2\"";

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct v1_file *f = v1_file_of(c);

	if (stream == CALL_STDERR)
		file_complaint_add(&f->complaint, data);
	else if (buf_add_str(&f->out, data) < 0)
		f->too_long = true;
	link_call_taken(c, stream, data.n);
}

static void on_ended(struct link_call *c, const struct call_result *res, const struct err *why)
{
	struct v1_file *f = v1_file_of(c);

	box_call_done(&f->call);
	if (why || res->code != 0)
		v1_file_refuse(f, why ? 0 : res->code, why);
	else if (f->too_long)
		api_refuse(f->v->q->http, 413, "the list is too long");
	else
		f->done(f);
}

void v1_file_run(struct v1_file *f, struct box *b, const char *script, const char *other,
		 void (*done)(struct v1_file *f))
{
	static const struct link_call_ops ops = { .output = on_output, .ended = on_ended };
	const char *const argv[] = { "/bin/sh",		"-c",	 script, "sh",
				     FILE_ENTRY_FORMAT, f->path, other,	 NULL };
	const struct call_spec spec = {
		.op = CALL_EXEC, .argv = argv, .cwd = "/", .user = f->user[0] ? f->user : NULL
	};

	f->out = (struct buf)BUF_INIT(OUT_MOST);
	f->done = done;
	if (box_call(b, &f->call, &spec, &ops) < 0)
		api_refuse(f->v->q->http, 503, "the sandbox takes no more requests just now");
	else
		link_call_eof(&f->call.call);
}

/* ---- entries ---- */

static const char *type_name(char type)
{
	switch (type) {
	case 'f':
		return "file";
	case 'd':
		return "directory";
	case 'l':
		return "symlink";
	case 'p':
		return "fifo";
	case 's':
		return "socket";
	default:
		return "device";
	}
}

static void put_entry(struct json *j, const struct file_entry *f)
{
	const char *slash = memrchr(f->path.p, '/', f->path.n);
	char time[CLOCK_TEXT_SIZE], mode[8];

	clock_text(f->mtime_ns, time);
	(void)snprintf(mode, sizeof mode, "%04o", f->mode & 07777u);
	json_obj(j);
	json_put_str(j, "name",
		     slash ? (struct str){ slash + 1, f->path.n - (size_t)(slash + 1 - f->path.p) }
			   : f->path);
	json_put_str(j, "path", f->path);
	json_put_c(j, "type", type_name(f->type));
	json_put_u64(j, "size", f->size);
	json_put_c(j, "mode", mode);
	json_put_str(j, "owner", f->owner);
	json_put_str(j, "group", f->group);
	json_put_c(j, "modified", time);
	if (f->type == 'l')
		json_put_str(j, "target", f->link);
	json_end(j);
}

static int by_path(const void *x, const void *y)
{
	const struct file_entry *a = x, *b = y;

	return file_entry_compare(a->path, b->path);
}

/* All entries, sorted. Their number, or -errno. */
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

static void answer_entries(struct v1_file *f, bool list)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_HTTP_ANSWER);
	auto_free struct file_entry *all = NULL;
	long n = read_entries(buf_str(&f->out), &all);
	struct json j;

	if (n == -E2BIG) {
		api_refuse(f->v->q->http, 413, "the list is too long: at most %d entries",
			   ENTRIES_MOST);
		return;
	}
	if (n < 0 || (!list && n != 1)) {
		api_refuse(f->v->q->http, 500, "the sandbox gave a malformed answer");
		return;
	}
	json_init(&j, &b);
	if (list) {
		json_obj(&j);
		json_put_arr(&j, "items");
	}
	for (long i = 0; i < n; i++)
		put_entry(&j, &all[i]);
	if (list) {
		json_end(&j);
		json_put_nil(&j, "next");
		json_end(&j);
	}
	v1_answer(f->v, 200, &j, &b);
}

static void answer_one(struct v1_file *f)
{
	answer_entries(f, false);
}

static void answer_list(struct v1_file *f)
{
	answer_entries(f, true);
}

static void answer_nothing(struct v1_file *f)
{
	http_answer(f->v->q->http, 204, NULL, STR_NONE);
}

/* ---- routes ---- */

static void begin_stat(struct v1 *v, struct box *b)
{
	struct v1_file *f = v1_file_new(v);

	if (f)
		v1_file_run(f, b, file_stat_script, "", answer_one);
}

static void begin_list(struct v1 *v, struct box *b)
{
	struct v1_file *f = v1_file_new(v);
	char depth[16];

	(void)snprintf(depth, sizeof depth, "%u", (unsigned)v1_param_number(v->q, "depth", 1));
	if (f)
		v1_file_run(f, b, list_script, depth, answer_list);
}

static void begin_mkdir(struct v1 *v, struct box *b)
{
	struct v1_file *f = v1_file_new(v);

	if (f)
		v1_file_run(f, b, mkdir_script, "", answer_one);
}

static void begin_move(struct v1 *v, struct box *b)
{
	struct v1_file *f = v1_file_new(v);
	const char *to = json_string_value(json_object_get(v->body, "to"));
	struct err e = { 0 };

	if (!f)
		return;
	if (to[0] == '/') {
		v1_file_run(f, b, move_script, to, answer_one);
		return;
	}
	(void)err_set(&e, ERR_INVALID, "to must be absolute");
	(void)err_field(&e, "to");
	api_refuse_err(v->q->http, &e);
}

static void begin_delete(struct v1 *v, struct box *b)
{
	struct v1_file *f = v1_file_new(v);

	if (f)
		v1_file_run(f, b, remove_script, "", answer_nothing);
}

void v1_file_stat(struct api_request *q)
{
	v1_with_box(q, begin_stat);
}

void v1_file_list(struct api_request *q)
{
	v1_with_box(q, begin_list);
}

void v1_file_mkdir(struct api_request *q)
{
	v1_with_box(q, begin_mkdir);
}

void v1_file_move(struct api_request *q)
{
	v1_with_box(q, begin_move);
}

void v1_file_delete(struct api_request *q)
{
	v1_with_box(q, begin_delete);
}
