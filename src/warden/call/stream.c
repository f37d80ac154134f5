/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/call/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/channel.h"
#include "warden/features.h"

struct stream {
	struct channel channel;
	struct warden *w;
	struct call *call; /* NULL: a port */
	struct stream *next;
};

bool stream_is_needed(const struct warden *w)
{
	return w->cell && !(w->cell->has & HAS_FDS);
}

void stream_free(struct stream *s)
{
	for (struct stream **at = &s->w->streams; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	if (s->call)
		s->call->stream = NULL;
	channel_done(&s->channel);
	free(s);
}

/* Both directions of a port have ended: init can close its end too. */
static void on_moved(struct channel *c)
{
	struct stream *s = container_of(c, struct stream, channel);

	if (s->call || !channel_is_over(c))
		return;
	(void)conn_send(&s->w->init, MSG_END, c->id, STR_NONE);
	stream_free(s);
}

static struct stream *stream_new(struct warden *w, uint32_t chan, struct call *c)
{
	struct stream *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	channel_init(&s->channel, &w->loop, &w->init, chan, MSG_CREDIT, on_moved);
	s->w = w;
	s->call = c;
	s->next = w->streams;
	w->streams = s;
	return s;
}

int stream_open(struct call *c, int fds[FD_ROLES])
{
	struct stream *s = stream_new(c->w, c->job, c);
	int r;

	if (!s)
		return -ENOMEM;
	c->stream = s;
	r = channel_source(&s->channel, 0, TAKE_FD(fds[FD_STDIN]), MSG_STDIN, MSG_STDIN_EOF);
	if (r == 0)
		r = channel_sink(&s->channel, 0, TAKE_FD(fds[FD_STDOUT]), MSG_STDOUT, 0);
	if (r == 0)
		r = channel_sink(&s->channel, 1, TAKE_FD(fds[FD_STDERR]), MSG_STDERR, 0);
	return r;
}

void stream_finish(struct call *c)
{
	if (!c->stream)
		return;
	channel_drop(&c->stream->channel); /* no process is left to read stdin */
	channel_finish(&c->stream->channel);
}

bool stream_is_pending(const struct call *c)
{
	return c->stream && channel_is_pending(&c->stream->channel);
}

void stream_resize(struct call *c, unsigned rows, unsigned cols)
{
	if (c->stream && c->tty)
		(void)CONN_SAY(&c->w->init, MSG_RESIZE, c->job, { TAG_ROWS, rows, NULL },
			       { TAG_COLS, cols, NULL });
}

int stream_dial(struct warden *w, uint32_t chan)
{
	struct stream *s = stream_new(w, chan, NULL);
	int pair[2], other, r;

	if (!s)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		r = -errno;
		stream_free(s);
		return r;
	}
	other = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
	r = other < 0 ? -errno : 0;
	if (r == 0)
		r = channel_sink(&s->channel, 0, other, MSG_STDOUT, MSG_END);
	if (r == 0)
		r = channel_source(&s->channel, 0, TAKE_FD(pair[0]), MSG_STDIN, MSG_STDIN_EOF);
	if (r == 0)
		return pair[1];
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	stream_free(s);
	return r;
}

int stream_frame(struct warden *w, const struct frame *f)
{
	if (f->type != MSG_STDOUT && f->type != MSG_STDERR && f->type != MSG_END &&
	    f->type != MSG_CREDIT)
		return 1;
	for (struct stream *s = w->streams; s; s = s->next) {
		int r;

		if (s->channel.id != f->chan)
			continue;
		r = channel_frame(&s->channel, f);
		if (r == 0)
			on_moved(&s->channel);
		return r < 0 ? r : 0;
	}
	return 0; /* the frame is for a call that has just ended */
}

void streams_resume(struct warden *w)
{
	for (struct stream *s = w->streams; s; s = s->next)
		channel_resume(&s->channel);
}

void streams_free(struct warden *w)
{
	while (w->streams)
		stream_free(w->streams);
}
