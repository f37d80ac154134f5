/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that a worker wrote into a file, because they may be longer than a frame. */
#include <errno.h>
#include <stdlib.h>

#include "api/error.h"
#include "api/v1/v1.h"

enum { PIECE = 32 * 1024 };

void v1_sender_drop(struct v1_sender *s)
{
	fd_close(&s->fd);
}

void v1_sender_room(struct v1_sender *s)
{
	char piece[PIECE];
	ssize_t n;

	while (s->fd >= 0) {
		n = read(s->fd, piece, sizeof piece);
		if (n <= 0) {
			v1_sender_drop(s);
			s->done(s, n < 0 ? -errno : 0);
			return;
		}
		if (http_answer_write(s->http, (struct str){ piece, (size_t)n }) != 0)
			return;
	}
}

void v1_sender_start(struct v1_sender *s)
{
	v1_sender_room(s);
}

static void on_room(struct http_request *r)
{
	v1_sender_room(v1_of(r)->own);
}

static void on_sent(struct v1_sender *s, int err)
{
	if (err < 0)
		http_request_cut(s->http);
	else
		http_answer_end(s->http);
}

static void sender_free(struct v1 *v)
{
	v1_sender_drop(v->own);
	free(v->own);
}

void v1_send_file(struct api_request *q, int status, struct str type, int fd)
{
	static const struct http_handler handler = { .room = on_room, .ended = v1_ended };
	struct v1 *v = v1_new(q);
	struct v1_sender *s = v ? calloc(1, sizeof *s) : NULL;
	char name[64];

	if (!s) {
		(void)close(fd);
		if (v)
			api_refuse(q->http, 503, "out of memory");
		return;
	}
	*s = (struct v1_sender){ .http = q->http, .fd = fd, .done = on_sent };
	v->own = s;
	v->own_done = sender_free;
	q->http->handler = &handler;
	(void)str_copy(name, sizeof name, type);
	(void)http_answer_begin(q->http, status, name, HTTP_LENGTH_UNKNOWN);
	v1_sender_start(s);
}
