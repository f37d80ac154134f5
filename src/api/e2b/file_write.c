/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /files: one file as the body, or several as parts of a form. Each is a call inside, one
 * after the other; nothing is stored on the way.
 *
 *   body ── (form) ──> pending ──> stdin of the call ── its end ──> the next file
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/e2b/entry.h"
#include "api/e2b/file.h"
#include "api/error.h"
#include "wire/json_write.h"
#include "wire/multipart.h"

enum {
	FILES_MOST = 10000,
	ANSWER_MOST = 4 << 20,
	METADATA_MOST = 8192,
	METADATA_COUNT = 64,
	METADATA_KEY = 200 /* the kernel allows 255 with our prefix */
};

struct writing {
	struct envd *v;
	struct box_call call; /* of the file at hand */
	bool open;	      /* a call runs */
	bool finished;	      /* the file at hand has come whole */
	bool form, form_over, all_over, refused;
	struct multipart parts;
	char query_path[ENVD_PATH]; /* empty: each part says where it goes */
	char path[ENVD_PATH];
	struct file_complaint complaint;
	struct buf pending; /* of the file at hand, not taken by the call */
	struct buf answer;  /* JSON of the files that are written */
	struct json json;
	int files;
	struct buf metadata; /* lines K=V */
};

static void refuse(struct writing *w, int status, const char *why)
{
	if (!w->refused)
		api_refuse(w->v->q->http, status, "%s", why);
	w->refused = true;
}

static void put_written(struct writing *w)
{
	const char *slash = strrchr(w->path, '/');

	json_obj(&w->json);
	json_put_c(&w->json, "name", slash ? slash + 1 : w->path);
	json_put_c(&w->json, "path", w->path);
	json_put_c(&w->json, "type", "file");
	entry_put_metadata(&w->json, buf_str(&w->metadata));
	json_end(&w->json);
	w->files++;
}

static void answer_if_over(struct writing *w)
{
	if (!w->all_over || w->open || w->refused)
		return;
	if (w->form && !w->form_over) {
		refuse(w, 400, "the form ends too early");
		return;
	}
	json_end(&w->json);
	if (json_done(&w->json) < 0)
		refuse(w, 500, "too many files at once");
	else
		http_answer(w->v->q->http, 200, "application/json", buf_str(&w->answer));
}

/* To the call, as much as it takes. */
static void push(struct writing *w)
{
	if (!w->open)
		return;
	buf_shift(&w->pending, link_call_write(&w->call.call, buf_str(&w->pending)));
	if (w->finished && w->pending.len == 0)
		link_call_eof(&w->call.call);
}

static struct writing *writing_of(struct link_call *c)
{
	return container_of(container_of(c, struct box_call, call), struct writing, call);
}

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	file_complaint_add(&writing_of(c)->complaint, data);
	link_call_taken(c, stream, data.n);
}

static void on_call_room(struct link_call *c, size_t bytes)
{
	struct writing *w = writing_of(c);

	(void)bytes;
	push(w);
	if (w->pending.len == 0)
		http_request_resume(w->v->q->http);
}

static void on_call_ended(struct link_call *c, const struct call_result *res, const struct err *why)
{
	struct writing *w = writing_of(c);

	box_call_done(&w->call);
	w->open = false;
	if (why || res->code != 0) {
		if (!w->refused)
			file_refuse(w->v, w->path, &w->complaint, why);
		w->refused = true;
		return;
	}
	put_written(w);
	http_request_resume(w->v->q->http);
	answer_if_over(w);
}

static void on_gone(struct box_call *c, const struct err *why)
{
	struct writing *w = container_of(c, struct writing, call);

	w->open = false;
	if (!w->refused)
		envd_gone(w->v, why);
	w->refused = true;
}

/* X-Metadata-KEY: VALUE. False: there is too much of it, or a key is unusable. */
static bool take_metadata(struct writing *w)
{
	static const struct str prefix = { "x-metadata-", sizeof "x-metadata-" - 1 };
	const struct http_head *h = http_request_head(w->v->q->http);
	int n = 0;

	for (size_t i = 0; i < h->n; i++) {
		struct str name = h->headers[i].name;
		size_t from = w->metadata.len;

		if (name.n <= prefix.n || strncasecmp(name.p, prefix.p, prefix.n) != 0)
			continue;
		name = (struct str){ name.p + prefix.n, name.n - prefix.n };
		if (++n > METADATA_COUNT || name.n > METADATA_KEY || memchr(name.p, '=', name.n) ||
		    buf_add_str(&w->metadata, name) < 0 || buf_add_c(&w->metadata, "=") < 0)
			return false;
		for (size_t k = from; k < w->metadata.len; k++)
			w->metadata.data[k] = (char)tolower((unsigned char)w->metadata.data[k]);
		if (buf_add_str(&w->metadata, h->headers[i].value) < 0 ||
		    buf_add_c(&w->metadata, "\n") < 0)
			return false;
	}
	return true;
}

/* The lines of the metadata, each a text. */
static const char *const *split_lines(const struct writing *w, char text[METADATA_MOST],
				      const char *out[METADATA_COUNT + 1])
{
	int n = 0;

	(void)str_copy(text, METADATA_MOST, buf_str(&w->metadata));
	for (char *end; n < METADATA_COUNT && (end = strchr(text, '\n')); text = end + 1) {
		*end = '\0';
		out[n++] = text;
	}
	out[n] = NULL;
	return out;
}

static void begin_file(struct writing *w)
{
	static const struct link_call_ops ops = { .output = on_output,
						  .room = on_call_room,
						  .ended = on_call_ended };
	char lines[METADATA_MOST];
	const char *metadata[METADATA_COUNT + 1];
	const struct call_spec spec = { .op = CALL_WRITE_FILE,
					.argv = split_lines(w, lines, metadata),
					.path = w->path,
					.mode = 0644,
					.user = w->v->user[0] ? w->v->user : NULL };
	struct box *b = box_find(w->v->q->front, w->v->q->id);

	w->call = (struct box_call){ .gone = on_gone };
	w->complaint = (struct file_complaint){ 0 };
	w->finished = false;
	if (w->files >= FILES_MOST)
		refuse(w, 400, "too many files at once");
	else if (!b || box_call(b, &w->call, &spec, &ops) < 0)
		refuse(w, 502, "The sandbox was not found");
	else
		w->open = true;
}

/* A part of the form begins: the query says where it goes, or its file name does. */
static void begin_part(struct writing *w)
{
	char name[ENVD_PATH];

	if (w->query_path[0])
		(void)str_copy(w->path, sizeof w->path, str_of(w->query_path));
	else if (!str_copy(name, sizeof name, w->parts.filename) || !name[0] ||
		 !envd_path(w->v, name, w->path)) {
		refuse(w, 400, "a part of the form has no usable file name");
		return;
	}
	begin_file(w);
}

/* One step through the form. True: go on with the rest of *in. */
static bool step(struct writing *w, struct str *in)
{
	struct str data;

	/* The file before is still being written, or this one is behind. */
	if ((w->finished && w->open) || w->pending.len)
		return false;
	switch (multipart_next(&w->parts, in, &data)) {
	case MULTIPART_MORE:
		return false;
	case MULTIPART_PART:
		begin_part(w);
		break;
	case MULTIPART_DATA:
		if (buf_add_str(&w->pending, data) < 0)
			refuse(w, 503, "out of memory");
		push(w);
		break;
	case MULTIPART_PART_END:
		w->finished = true;
		push(w);
		break;
	case MULTIPART_END:
		w->form_over = true;
		break;
	default:
		refuse(w, 400, w->parts.why ? w->parts.why : "the form is malformed");
	}
	return !w->refused;
}

static size_t on_data(struct http_request *r, struct str data)
{
	struct writing *w = envd_of(r)->own;
	struct str in = data;

	if (w->refused)
		return data.n;
	if (!w->form)
		return w->open ? link_call_write(&w->call.call, data) : 0;
	while (!w->form_over && step(w, &in))
		;
	return w->refused || w->form_over ? data.n : data.n - in.n;
}

static void on_body_end(struct http_request *r)
{
	struct writing *w = envd_of(r)->own;

	w->all_over = true;
	if (!w->form) {
		w->finished = true;
		push(w);
	}
	answer_if_over(w);
}

static void writing_done(struct envd *v)
{
	struct writing *w = v->own;

	box_call_done(&w->call);
	multipart_done(&w->parts);
	buf_done(&w->pending);
	buf_done(&w->answer);
	buf_done(&w->metadata);
	free(w);
}

static bool is_form(struct http_request *r, struct str *ret_type)
{
	const struct str *type = http_request_header(r, "content-type");

	*ret_type = type ? *type : STR_NONE;
	return type && str_starts(*type, STR("multipart/"));
}

static void begin_writing(struct writing *w)
{
	struct http_request *r = w->v->q->http;
	struct str type;

	w->form = is_form(r, &type);
	if (!take_metadata(w)) {
		refuse(w, 400, "there is too much metadata, or a key of it is not valid");
		return;
	}
	if (!file_query(w->v, w->query_path) || (!w->form && !w->query_path[0])) {
		refuse(w, 400, "path is missing or malformed");
		return;
	}
	if (w->form && multipart_init(&w->parts, type) < 0) {
		refuse(w, 400, "the form has no boundary");
		return;
	}
	if (!w->form) {
		(void)str_copy(w->path, sizeof w->path, str_of(w->query_path));
		begin_file(w);
	}
	if (!w->refused)
		(void)http_request_stream(r, 0, false);
}

void file_write(struct envd *v, struct box *b)
{
	static const struct http_handler handler = { .data = on_data,
						     .body_end = on_body_end,
						     .ended = envd_ended };
	struct writing *w = calloc(1, sizeof *w);

	(void)b;
	if (!w) {
		api_refuse(v->q->http, 503, "out of memory");
		return;
	}
	w->v = v;
	w->pending = (struct buf)BUF_INIT(LIMIT_HTTP_WRITE);
	w->answer = (struct buf)BUF_INIT(ANSWER_MOST);
	w->metadata = (struct buf)BUF_INIT(METADATA_MOST - 1);
	v->own = w;
	v->own_done = writing_done;
	v->q->http->handler = &handler;
	json_init(&w->json, &w->answer);
	json_arr(&w->json);
	begin_writing(w);
}
