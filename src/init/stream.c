/* SPDX-License-Identifier: Apache-2.0 */
#include "init/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

struct stream {
	struct channel channel;
	void (*moved)(void *ctx);
	void *ctx;
	bool tty;  /* sink 0 is the master of a terminal */
	bool dial; /* a connection to a port */
	bool left; /* the call has ended */
	struct stream *next;
};

static struct stream *streams;

static struct stream *stream_find(uint32_t chan)
{
	for (struct stream *s = streams; s; s = s->next)
		if (s->channel.id == chan && !s->left)
			return s;
	return NULL;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	for (struct stream **at = &streams; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	channel_done(&s->channel);
	free(s);
}

static void on_moved(struct channel *c)
{
	struct stream *s = container_of(c, struct stream, channel);

	if ((s->dial || s->left) && channel_is_over(c))
		stream_free(s);
	else if (s->moved && !s->left)
		s->moved(s->ctx);
}

struct stream *stream_new(struct loop *l, struct conn *warden, uint32_t chan,
			  void (*moved)(void *ctx), void *ctx)
{
	struct stream *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	channel_init(&s->channel, l, warden, chan, MSG_CREDIT, on_moved);
	s->moved = moved;
	s->ctx = ctx;
	s->next = streams;
	streams = s;
	return s;
}

static int open_terminal(struct stream *s, struct request *r)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), unlock = 0, other, e;

	if (master < 0)
		return -errno;
	other = fcntl(master, F_DUPFD_CLOEXEC, 3);
	if (other < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 ||
	    (r->fds[FD_STDIN] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
		int err = errno;

		(void)close(master);
		fd_close(&other);
		return -err;
	}
	s->tty = true;
	e = channel_source(&s->channel, 0, master, MSG_STDOUT, 0);
	if (e < 0)
		(void)close(other);
	return e < 0 ? e : channel_sink(&s->channel, 0, other, MSG_STDIN, 0);
}

static int open_pipes(struct stream *s, struct request *r)
{
	static const struct {
		enum fd_role role;
		uint8_t type;
	} outs[] = { { FD_STDOUT, MSG_STDOUT }, { FD_STDERR, MSG_STDERR } };
	int p[2], e = 0;

	for (int i = 0; i < (int)ARRAY_LEN(outs) && e == 0; i++) {
		if (pipe2(p, O_CLOEXEC) < 0)
			return -errno;
		r->fds[outs[i].role] = p[1];
		e = channel_source(&s->channel, i, p[0], outs[i].type, 0);
	}
	if (e == 0 && pipe2(p, O_CLOEXEC) < 0)
		e = -errno;
	if (e < 0)
		return e;
	r->fds[FD_STDIN] = p[0];
	return channel_sink(&s->channel, 0, p[1], MSG_STDIN, MSG_STDIN_EOF);
}

/* Every user that a command may run as can open /dev/stdin, /dev/stdout and /dev/stderr. */
static int open_to_all(const struct request *r)
{
	static const enum fd_role roles[] = { FD_STDIN, FD_STDOUT, FD_STDERR };

	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (r->fds[roles[i]] >= 0 && fchmod(r->fds[roles[i]], 0666) < 0)
			return -errno;
	return 0;
}

int stream_open(struct stream *s, struct request *r)
{
	int e;

	if (r->tty)
		return open_terminal(s, r);
	e = open_pipes(s, r);
	return e < 0 ? e : open_to_all(r);
}

int stream_dial(struct stream *s, int fd)
{
	int other = fcntl(fd, F_DUPFD_CLOEXEC, 3), e;

	s->dial = true;
	if (other < 0) {
		e = -errno;
		(void)close(fd);
		return e;
	}
	e = channel_source(&s->channel, 0, fd, MSG_STDOUT, MSG_END);
	if (e == 0)
		return channel_sink(&s->channel, 0, other, MSG_STDIN, MSG_STDIN_EOF);
	(void)close(other);
	return e;
}

bool stream_is_drained(struct stream *s)
{
	return channel_is_drained(&s->channel);
}

void stream_leave(struct stream *s)
{
	if (!s)
		return;
	s->left = true;
	s->ctx = NULL;
	channel_finish(&s->channel);
	channel_drop(&s->channel);
	if (s->tty || channel_is_over(&s->channel)) /* hang up the terminal */
		stream_free(s);
}

static void resize(struct stream *s, const struct frame *f)
{
	struct winsize ws = { 0 };
	struct str body = f->body;
	struct field field;
	uint64_t v;

	while (field_next(&body, &field) > 0)
		if (field_u64(field, &v) == 0 && field.tag == TAG_ROWS)
			ws.ws_row = (unsigned short)v;
		else if (field_u64(field, &v) == 0 && field.tag == TAG_COLS)
			ws.ws_col = (unsigned short)v;
	if (s->tty)
		(void)ioctl(s->channel.source[0].fd, TIOCSWINSZ, &ws);
}

static bool is_ours(uint8_t type)
{
	return type == MSG_STDIN || type == MSG_STDIN_EOF || type == MSG_CREDIT ||
	       type == MSG_RESIZE || type == MSG_END;
}

int stream_frame(const struct frame *f)
{
	struct stream *s;

	if (!is_ours(f->type))
		return 1;
	s = stream_find(f->chan);
	if (!s) /* the stream has just ended */
		return 0;
	if (f->type == MSG_RESIZE) {
		resize(s, f);
	} else if (f->type == MSG_END) {
		if (s->dial)
			stream_free(s);
	} else {
		int e = channel_frame(&s->channel, f);

		if (e < 0)
			return e;
		on_moved(&s->channel);
	}
	return 0;
}

void streams_resume(void)
{
	for (struct stream *s = streams; s; s = s->next)
		channel_resume(&s->channel);
}

void streams_close(void)
{
	for (struct stream *s = streams; s; s = s->next)
		for (int i = 0; i < CHANNEL_ENDS; i++) {
			fd_close(&s->channel.source[i].fd);
			fd_close(&s->channel.sink[i].fd);
		}
}
