/* SPDX-License-Identifier: Apache-2.0 */
/* Files and trees of a sandbox, as streams. Nothing is stored on the way. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/error.h"
#include "api/v1/file.h"
#include "wire/file_entry.h"
#include "wire/http_range.h"

#define TAR   "application/x-tar"
#define BYTES "application/octet-stream"

static void file_free(struct v1 *v)
{
	struct v1_file *f = v->own;

	box_call_done(&f->call);
	buf_done(&f->out);
	free(f);
}

static void on_gone(struct box_call *c, const struct err *why)
{
	struct v1_file *f = container_of(c, struct v1_file, call);

	if (f->begun)
		http_request_cut(f->v->q->http);
	else
		v1_gone(f->v, why);
}

struct v1_file *v1_file_new(struct v1 *v)
{
	struct v1_file *f = calloc(1, sizeof *f);
	struct err e = { 0 };

	if (!f) {
		api_refuse(v->q->http, 503, "out of memory");
		return NULL;
	}
	f->v = v;
	f->call.gone = on_gone;
	v->own = f;
	v->own_done = file_free;
	(void)v1_param(v->q, "user", f->user, sizeof f->user);
	if (v1_param(v->q, "path", f->path, sizeof f->path) && f->path[0] == '/')
		return f;
	(void)err_set(&e, ERR_INVALID, "path must be absolute");
	(void)err_code(&e, "field.invalid", NULL);
	(void)err_field(&e, "path");
	api_refuse_err(v->q->http, &e);
	return NULL;
}

void v1_file_refuse(struct v1_file *f, int code, const struct err *why)
{
	static const struct {
		const char *says;
		enum err_kind kind;
		const char *code, *message;
	} rows[] = {
		{ "No such file", ERR_NOT_FOUND, "file.unknown", "does not exist" },
		{ "s a directory", ERR_CONFLICT, "file.is_directory", "is a directory" },
		{ "Not a directory", ERR_CONFLICT, "file.not_directory", "leads through a file" },
		{ "not a directory", ERR_CONFLICT, "file.not_directory", "is not a directory" },
		{ "No space left", ERR_FAILED, "disk.full", "does not fit on the disk" },
		{ "Disk quota", ERR_FAILED, "disk.full", "does not fit on the disk" },
		{ "ermission denied", ERR_NOT_ALLOWED, "file.denied",
		  "may not be used by this user" },
	};
	const char *text = f->complaint.text;
	struct err e = { 0 };
	size_t i = 0;

	if (why) {
		api_refuse_err(f->v->q->http, why);
		return;
	}
	if (code == FILE_NO_SUCH)
		text = rows[0].says;
	if (code == FILE_WRONG_TYPE)
		text = rows[3].says;
	while (i < ARRAY_LEN(rows) && !strstr(text, rows[i].says))
		i++;
	if (i < ARRAY_LEN(rows)) {
		(void)err_set(&e, rows[i].kind, "'%.300s' %s", f->path, rows[i].message);
		(void)err_code(&e, rows[i].code, NULL);
	} else {
		(void)err_set(&e, code == FILE_EXISTS ? ERR_CONFLICT : ERR_FAILED,
			      "'%.200s': %.200s", f->path,
			      code == FILE_EXISTS ? "exists already" : f->complaint.text);
		(void)err_code(&e, code == FILE_EXISTS ? "file.exists" : "file.failed", NULL);
	}
	api_refuse_err(f->v->q->http, &e);
}

/* ---- reading ---- */

static void read_begin(struct v1_file *f, int64_t length)
{
	f->begun = true;
	(void)http_answer_begin(f->v->q->http, f->n ? 206 : 200,
				f->op == CALL_READ_TREE ? TAR : BYTES, length);
}

static void read_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct v1_file *f = v1_file_of(c);

	if (stream == CALL_STDERR) {
		file_complaint_add(&f->complaint, data);
		link_call_taken(c, stream, data.n);
		return;
	}
	if (!f->begun)
		read_begin(f, f->n ? (int64_t)f->n : HTTP_LENGTH_UNKNOWN);
	f->held += data.n;
	if (http_answer_write(f->v->q->http, data) != 0)
		return;
	link_call_taken(c, stream, f->held);
	f->held = 0;
}

static void read_room(struct http_request *r)
{
	struct v1_file *f = v1_of(r)->own;

	if (f->call.box && f->held)
		link_call_taken(&f->call.call, CALL_STDOUT, f->held);
	f->held = 0;
}

static void read_ended(struct link_call *c, const struct call_result *res, const struct err *why)
{
	struct v1_file *f = v1_file_of(c);
	struct http_request *r = f->v->q->http;

	box_call_done(&f->call);
	if (why || res->code != 0) {
		if (f->begun)
			http_request_cut(r); /* the client must not take a part for the whole */
		else
			v1_file_refuse(f, why ? 0 : res->code, why);
		return;
	}
	if (!f->begun)
		read_begin(f, 0);
	http_answer_end(r);
}

static void read_start(struct v1_file *f, struct box *b)
{
	static const struct link_call_ops ops = { .output = read_output, .ended = read_ended };
	const struct call_spec spec = { .op = f->op,
					.path = f->path,
					.user = f->user[0] ? f->user : NULL,
					.offset = f->from,
					.length = f->n };

	if (box_call(b, &f->call, &spec, &ops) < 0)
		api_refuse(f->v->q->http, 503, "the sandbox takes no more requests just now");
	else
		link_call_eof(&f->call.call);
}

/* The size is known: the range can be judged. */
static void on_stat(struct v1_file *f)
{
	const struct str *range = http_request_header(f->v->q->http, "range");
	struct box *b = box_find(f->v->q->front, f->v->q->id);
	auto_done(buf_done) struct buf value = BUF_INIT(128);
	struct str text = buf_str(&f->out);
	struct file_entry entry;
	struct err e = { 0 };
	int r;

	if (!b || file_entry_next(&text, &entry) != 1) {
		v1_gone(f->v, NULL);
		return;
	}
	r = range && entry.target == 'f' ? http_range_parse(*range, entry.size, &f->from, &f->n)
					 : 0;
	if (r < 0) {
		if (http_range_put(&value, 0, 0, entry.size) == 0)
			http_answer_header(f->v->q->http, "Content-Range", buf_str(&value));
		(void)err_set(&e, ERR_INVALID, "the file has %" PRIu64 " bytes", entry.size);
		(void)err_code(&e, "range.invalid", NULL);
		api_refuse_err(f->v->q->http, &e);
		return;
	}
	if (r == 1 && http_range_put(&value, f->from, f->n, entry.size) == 0)
		http_answer_header(f->v->q->http, "Content-Range", buf_str(&value));
	read_start(f, b);
}

static void begin_read(struct v1 *v, struct box *b, enum call_op op)
{
	static const struct http_handler handler = { .room = read_room, .ended = v1_ended };
	struct v1_file *f = v1_file_new(v);

	if (!f)
		return;
	v->q->http->handler = &handler;
	f->op = op;
	if (op == CALL_READ_FILE && http_request_header(v->q->http, "range"))
		v1_file_run(f, b, file_stat_script, "", on_stat);
	else
		read_start(f, b);
}

static void begin_file_get(struct v1 *v, struct box *b)
{
	begin_read(v, b, CALL_READ_FILE);
}

static void begin_tree_get(struct v1 *v, struct box *b)
{
	begin_read(v, b, CALL_READ_TREE);
}

void v1_file_get(struct api_request *q)
{
	v1_with_box(q, begin_file_get);
}

void v1_tree_get(struct api_request *q)
{
	v1_with_box(q, begin_tree_get);
}

/* ---- writing ---- */

static void write_output(struct link_call *c, enum call_stream stream, struct str data)
{
	file_complaint_add(&v1_file_of(c)->complaint, data);
	link_call_taken(c, stream, data.n);
}

static void write_room(struct link_call *c, size_t bytes)
{
	(void)bytes;
	http_request_resume(v1_file_of(c)->v->q->http);
}

static void write_ended(struct link_call *c, const struct call_result *res, const struct err *why)
{
	struct v1_file *f = v1_file_of(c);

	box_call_done(&f->call);
	if (why || res->code != 0)
		v1_file_refuse(f, why ? 0 : res->code, why);
	else
		http_answer(f->v->q->http, 204, NULL, STR_NONE);
}

static size_t on_data(struct http_request *r, struct str data)
{
	struct v1_file *f = v1_of(r)->own;

	return f->call.box ? link_call_write(&f->call.call, data) : data.n;
}

static void on_body_end(struct http_request *r)
{
	struct v1_file *f = v1_of(r)->own;

	if (f->call.box)
		link_call_eof(&f->call.call);
}

static void begin_write(struct v1 *v, struct box *b, enum call_op op)
{
	static const struct http_handler handler = { .data = on_data,
						     .body_end = on_body_end,
						     .ended = v1_ended };
	static const struct link_call_ops ops = { .output = write_output,
						  .room = write_room,
						  .ended = write_ended };
	struct v1_file *f = v1_file_new(v);
	struct call_spec spec = { .op = op };
	char mode[8];

	if (!f)
		return;
	v->q->http->handler = &handler;
	spec.path = f->path;
	spec.user = f->user[0] ? f->user : NULL;
	spec.mode =
		v1_param(v->q, "mode", mode, sizeof mode) ? (unsigned)strtoul(mode, NULL, 8) : 0;
	if (box_call(b, &f->call, &spec, &ops) < 0)
		api_refuse(v->q->http, 503, "the sandbox takes no more requests just now");
	else
		(void)http_request_stream(v->q->http, 0, false);
}

static void begin_file_put(struct v1 *v, struct box *b)
{
	begin_write(v, b, CALL_WRITE_FILE);
}

static void begin_tree_put(struct v1 *v, struct box *b)
{
	begin_write(v, b, CALL_WRITE_TREE);
}

void v1_file_put(struct api_request *q)
{
	v1_with_box(q, begin_file_put);
}

void v1_tree_put(struct api_request *q)
{
	v1_with_box(q, begin_tree_put);
}
