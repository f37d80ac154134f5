/* SPDX-License-Identifier: Apache-2.0 */
/* GET /files: one file, as it is read inside. */
#include <stdlib.h>
#include <string.h>

#include "api/e2b/file.h"
#include "api/error.h"

struct reading {
	struct envd *v;
	struct box_call call;
	char path[ENVD_PATH];
	struct file_complaint complaint;
	size_t held; /* passed on, and not taken by the client yet */
	bool begun;
};

static struct reading *reading_of(struct link_call *c)
{
	return container_of(container_of(c, struct box_call, call), struct reading, call);
}

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct reading *d = reading_of(c);
	struct http_request *r = d->v->q->http;

	if (stream == CALL_STDERR) {
		file_complaint_add(&d->complaint, data);
		link_call_taken(c, stream, data.n);
		return;
	}
	if (!d->begun) {
		d->begun = true;
		(void)http_answer_begin(r, 200, "application/octet-stream", HTTP_LENGTH_UNKNOWN);
	}
	d->held += data.n;
	if (http_answer_write(r, data) != 0)
		return;
	link_call_taken(c, stream, d->held);
	d->held = 0;
}

static void on_room(struct http_request *r)
{
	struct reading *d = envd_of(r)->own;

	if (d->call.box && d->held)
		link_call_taken(&d->call.call, CALL_STDOUT, d->held);
	d->held = 0;
}

static void on_ended(struct link_call *c, const struct call_result *res, const struct err *why)
{
	struct reading *d = reading_of(c);
	struct http_request *r = d->v->q->http;

	box_call_done(&d->call);
	if (!why && res->code == 0) {
		if (d->begun)
			http_answer_end(r);
		else
			http_answer(r, 200, "application/octet-stream", STR_NONE);
	} else if (d->begun) {
		http_request_cut(r); /* the client must not take a part for the whole */
	} else {
		file_refuse(d->v, d->path, &d->complaint, why);
	}
}

static void on_gone(struct box_call *c, const struct err *why)
{
	struct reading *d = container_of(c, struct reading, call);

	if (d->begun)
		http_request_cut(d->v->q->http);
	else
		envd_gone(d->v, why);
}

static void reading_done(struct envd *v)
{
	struct reading *d = v->own;

	box_call_done(&d->call);
	free(d);
}

void file_read(struct envd *v, struct box *b)
{
	static const struct link_call_ops ops = { .output = on_output, .ended = on_ended };
	static const struct http_handler handler = { .room = on_room, .ended = envd_ended };
	struct reading *d = calloc(1, sizeof *d);
	struct call_spec spec = { .op = CALL_READ_FILE };

	if (!d) {
		api_refuse(v->q->http, 503, "out of memory");
		return;
	}
	d->v = v;
	d->call.gone = on_gone;
	v->own = d;
	v->own_done = reading_done;
	v->q->http->handler = &handler;
	if (!file_query(v, d->path)) {
		api_refuse(v->q->http, 400, "path is missing or malformed");
		return;
	}
	spec.path = d->path;
	spec.user = v->user[0] ? v->user : NULL;
	if (box_call(b, &d->call, &spec, &ops) < 0)
		api_refuse(v->q->http, 503, "the sandbox takes no more requests just now");
	else
		link_call_eof(&d->call.call);
}
