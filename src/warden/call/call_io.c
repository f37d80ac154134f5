/* SPDX-License-Identifier: Apache-2.0 */
/* The warden's side of the command's stdio: read output under back-pressure, write stdin. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "warden/call/call.h"
#include "warden/call/stream.h"
#include "warden/record.h"

enum { READS_PER_TURN = 4, READ_MIN = 2048 };

static void outlet_close(struct outlet *o)
{
	loop_del(&o->call->w->loop, &o->io);
	fd_close(&o->fd);
	o->drained = true;
}

/* Read once: number of bytes, 0 at the end, -errno. The bytes go to the client, or are dropped. */
static ssize_t outlet_read(struct outlet *o)
{
	struct call *c = o->call;
	size_t most = o->chunk ? o->chunk : READ_MIN;
	char dropped[READ_MIN];
	ssize_t n;

	if (c->record && c->record->detached)
		return viewers_read(c->record, o->type, o->fd);
	if (!c->client || c->answered) {
		n = read(o->fd, dropped, sizeof dropped);
		return n < 0 ? -errno : n;
	}
	if (c->limited && most > c->credit)
		most = (size_t)c->credit;
	n = conn_send_read(&c->client->conn, o->type, c->chan, o->fd, most);
	if (c->limited && n > 0)
		c->credit -= (uint64_t)n;
	if (n == (ssize_t)most)
		o->chunk = 4 * most < LIMIT_FRAME_DATA ? 4 * most : LIMIT_FRAME_DATA;
	return n;
}

static bool client_is_full(const struct call *c)
{
	if (c->record && c->record->detached)
		return viewers_are_full(c->record);
	if (!c->client || c->answered)
		return false;
	return conn_backlog(&c->client->conn) >= LIMIT_CONN_HIGH || (c->limited && !c->credit);
}

/*
 * A terminal's master is one descriptor for both directions. EPOLLHUP cannot be masked: while
 * paused, use edge-triggered mode to get it once instead of endlessly.
 */
static void outlet_poll(struct outlet *o)
{
	const struct call *c = o->call;
	uint32_t want = o->paused ? EPOLLET : EPOLLIN;

	if (c->has_master && c->in_fd >= 0 && c->in.len)
		want |= EPOLLOUT;
	if (o->fd >= 0)
		(void)loop_mod(&c->w->loop, &o->io, want);
}

static void outlet_pause(struct outlet *o, bool pause)
{
	o->paused = pause;
	outlet_poll(o);
}

static void outlet_pump(struct outlet *o)
{
	for (int i = 0; i < READS_PER_TURN && o->fd >= 0; i++) {
		ssize_t n;

		if (client_is_full(o->call)) {
			outlet_pause(o, true);
			return;
		}
		n = outlet_read(o);
		if (n > 0) {
			o->bytes += (uint64_t)n;
			continue;
		}
		if (n == -EAGAIN || n == -EINTR) {
			/* The command itself has ended, and its pipe is empty. */
			o->drained = o->call->exited && !stream_is_pending(o->call);
			return;
		}
		outlet_close(o); /* the end, or EIO from a terminal that every process closed */
	}
}

static void stdin_pump(struct call *c);

static void on_output(struct loop_io *io, uint32_t events)
{
	struct outlet *o = container_of(io, struct outlet, io);

	if (events & EPOLLOUT)
		stdin_pump(o->call);
	if (events & ~(uint32_t)EPOLLOUT && !o->paused)
		outlet_pump(o);
	call_check_done(o->call);
}

static int outlet_open(struct outlet *o, struct call *c, int fd, uint8_t type)
{
	*o = (struct outlet){ .call = c, .fd = fd, .type = type };
	return loop_add(&c->w->loop, &o->io, fd, EPOLLIN, on_output);
}

static void stdin_close(struct call *c)
{
	loop_del(&c->w->loop, &c->in_io);
	if (c->has_master)
		c->in_fd = FD_NONE; /* the master stays open for output */
	fd_close(&c->in_fd);
	buf_done(&c->in);
}

static void give_credit(struct call *c, size_t n)
{
	if (c->client && n)
		(void)CONN_SAY(&c->client->conn, MSG_C_CREDIT, c->chan, { TAG_BYTES, n, NULL });
	else if (c->record && n)
		viewers_stdin_taken(c->record, n);
}

/* Write queued stdin; the pipe accepts some, none, or has no reader. */
static void stdin_pump(struct call *c)
{
	while (c->in_fd >= 0 && c->in.len) {
		ssize_t n = write(c->in_fd, c->in.data, c->in.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			give_credit(c, c->in.len);
			stdin_close(c);
			return;
		}
		buf_shift(&c->in, (size_t)n);
		give_credit(c, (size_t)n);
	}
	if (c->in_fd >= 0 && !c->in.len && c->in_eof && !c->has_master)
		stdin_close(c);
	else if (c->has_master)
		outlet_poll(&c->out);
	else if (c->in_fd >= 0)
		(void)loop_mod(&c->w->loop, &c->in_io, c->in.len ? EPOLLOUT : 0);
}

static void on_stdin_room(struct loop_io *io, uint32_t events)
{
	struct call *c = container_of(io, struct call, in_io);

	/* No reader is left: report everything as read, and drop it. */
	if (events & EPOLLERR) {
		give_credit(c, c->in.len);
		stdin_close(c);
		return;
	}
	stdin_pump(c);
}

void call_stdin(struct call *c, struct str data)
{
	if (c->in_fd < 0) {
		give_credit(c, data.n);
		return;
	}
	if (buf_add_str(&c->in, data) < 0) {
		call_kill(c, "stdin_overrun"); /* more than the credit: the client is broken */
		return;
	}
	stdin_pump(c);
}

void call_stdin_eof(struct call *c)
{
	if (c->tty && !c->has_master) /* a terminal has no end of input */
		return;
	c->in_eof = true;
	if (!c->has_master)
		stdin_pump(c);
}

void call_resize(struct call *c, unsigned rows, unsigned cols)
{
	struct winsize ws = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };

	if (c->has_master && c->out.fd >= 0)
		(void)ioctl(c->out.fd, TIOCSWINSZ, &ws);
	else
		stream_resize(c, rows, cols);
}

static int open_terminal(struct call *c, unsigned rows, unsigned cols, int *ret_slave)
{
	int master, r = c->w->driver->terminal(c->w->cell, &master, ret_slave);

	if (r == 0)
		r = outlet_open(&c->out, c, master, MSG_C_STDOUT);
	if (r < 0)
		return r;
	c->in_fd = c->out.fd;
	c->has_master = true;
	call_resize(c, rows, cols);
	return 0;
}

static int open_pipe(int *ret_ours, int *ret_theirs, bool ours_reads)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	/*
	 * The warden owns the pipe, so no user inside could open it as /dev/stdout or /dev/stderr.
	 * The mode opens it to no other process: the path leads through a holder's /proc/PID/fd.
	 */
	if (fchmod(p[0], 0666) < 0) {
		int err = errno;

		(void)close(p[0]);
		(void)close(p[1]);
		return -err;
	}
	*ret_ours = p[ours_reads ? 0 : 1];
	*ret_theirs = p[ours_reads ? 1 : 0];
	return io_set_nonblock(*ret_ours, true);
}

static int open_pipes(struct call *c, int fds[FD_ROLES])
{
	int out = FD_NONE, err = FD_NONE;
	int r = open_pipe(&c->in_fd, &fds[FD_STDIN], false);

	if (r == 0)
		r = open_pipe(&out, &fds[FD_STDOUT], true);
	if (out >= 0 && r == 0)
		r = outlet_open(&c->out, c, out, MSG_C_STDOUT);
	if (r == 0)
		r = open_pipe(&err, &fds[FD_STDERR], true);
	if (err >= 0 && r == 0)
		r = outlet_open(&c->err, c, err, MSG_C_STDERR);
	if (r == 0)
		r = loop_add(&c->w->loop, &c->in_io, c->in_fd, 0, on_stdin_room);
	return r;
}

int call_io_open(struct call *c, unsigned rows, unsigned cols, int fds[FD_ROLES], struct err *e)
{
	int r;

	c->in = (struct buf)BUF_INIT(LIMIT_STDIN_WINDOW);
	c->in_fd = FD_NONE;
	c->out = (struct outlet){ .call = c, .fd = FD_NONE, .drained = true };
	c->err = (struct outlet){ .call = c, .fd = FD_NONE, .drained = true };
	if (stream_is_needed(c->w)) {
		r = open_pipes(c, fds);
		if (r == 0)
			r = stream_open(c, fds);
	} else {
		r = c->tty ? open_terminal(c, rows, cols, &fds[FD_STDIN]) : open_pipes(c, fds);
	}
	return r < 0 ? err_sys(e, -r, c->tty ? "open a terminal" : "open pipes") : 0;
}

void call_io_close(struct call *c)
{
	stdin_close(c);
	outlet_close(&c->out);
	outlet_close(&c->err);
	if (c->stream)
		stream_free(c->stream);
}

bool call_io_drained(struct call *c)
{
	/* The exit may be known before the warden has read the last output. */
	if (!c->out.drained && !c->out.paused)
		outlet_pump(&c->out);
	if (!c->err.drained && !c->err.paused)
		outlet_pump(&c->err);
	return c->out.drained && c->err.drained;
}

void call_credit(struct call *c, uint64_t bytes)
{
	c->credit = bytes < LIMIT_WINDOW - c->credit ? c->credit + bytes : LIMIT_WINDOW;
	call_resume(c);
}

void call_resume(struct call *c)
{
	if (c->out.paused)
		outlet_pause(&c->out, false);
	if (c->err.paused)
		outlet_pause(&c->err, false);
}
