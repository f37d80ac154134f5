/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/copy/file_call.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "link/wait.h"

enum { CHUNK = 256 * 1024, STDERR_MAX = 64 * 1024, REST_MAX = 4 << 20 };

static void end_if_passed_on(struct file_call *f)
{
	f->done = f->ended && f->out_rest.len == 0;
}

/* --- stdin --- */

static void input_broke_off(struct file_call *f)
{
	f->failed = true;
	(void)err_sys(&f->why, EPIPE, "the input broke off");
	/*
	 * Dropping the call makes the warden kill it. The command never sees an end of its input.
	 */
	link_call_drop(&f->call);
	f->ended = true;
	buf_clear(&f->out_rest);
	end_if_passed_on(f);
}

static void end_input(struct file_call *f)
{
	loop_del(&f->c->loop, &f->in_io);
	f->spec.in_fd = FD_NONE;
	if (f->spec.in_whole && !f->spec.in_whole(f->spec.in_ctx))
		input_broke_off(f);
	else
		link_call_eof(&f->call);
}

/* Write input that was read earlier. True if all of it is written. */
static bool write_rest(struct file_call *f)
{
	size_t n = link_call_write(&f->call, buf_str(&f->in_rest));

	buf_shift(&f->in_rest, n);
	return f->in_rest.len == 0;
}

/* Read once, as much as the warden accepts. */
static void pass_input(struct file_call *f)
{
	size_t most = link_call_room(&f->call), taken;
	ssize_t n;

	if (!most)
		return;
	n = read(f->spec.in_fd, f->chunk, most < CHUNK ? most : CHUNK);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end_input(f);
		return;
	}
	taken = link_call_write(&f->call, (struct str){ f->chunk, (size_t)n });
	(void)!buf_add(&f->in_rest, f->chunk + taken, (size_t)n - taken); /* in_rest has the room */
}

static void on_input(struct loop_io *io, uint32_t events)
{
	struct file_call *f = container_of(io, struct file_call, in_io);

	(void)events;
	if (f->in_rest.len == 0 || write_rest(f))
		pass_input(f);
	/* Remove it instead of waiting for no events: a pipe without a writer is always ready. */
	if (f->in_rest.len || !link_call_room(&f->call))
		loop_del(&f->c->loop, &f->in_io);
}

static void on_room(struct link_call *call, size_t bytes)
{
	struct file_call *f = container_of(call, struct file_call, call);

	(void)bytes;
	if (f->spec.in_fd >= 0 && f->in_io.fd < 0 &&
	    loop_add(&f->c->loop, &f->in_io, f->spec.in_fd, EPOLLIN, on_input) < 0)
		input_broke_off(f);
}

/* --- stdout and stderr --- */

/* The reader of the output is gone: the command sees that like a command at a closed pipe. */
static void output_broke(struct file_call *f)
{
	f->out_broken = true;
	loop_del(&f->c->loop, &f->out_io);
	buf_clear(&f->out_rest);
	link_call_signal(&f->call, SIGPIPE);
}

/* *ret: how many bytes were handled. -1: the reader is gone. */
static int write_some(struct file_call *f, struct str data, size_t *ret)
{
	ssize_t n = write(f->spec.out_fd, data.p, data.n);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		output_broke(f);
		*ret = data.n;
		return -1;
	}
	*ret = n < 0 ? 0 : (size_t)n;
	return 0;
}

static void on_out_ready(struct loop_io *io, uint32_t events)
{
	struct file_call *f = container_of(io, struct file_call, out_io);
	size_t n = f->out_rest.len;

	(void)events;
	if (write_some(f, buf_str(&f->out_rest), &n) == 0)
		buf_shift(&f->out_rest, n);
	link_call_taken(&f->call, CALL_STDOUT, n);
	if (f->out_rest.len == 0)
		loop_del(&f->c->loop, &f->out_io);
	end_if_passed_on(f);
}

static void pass_output(struct file_call *f, struct str data)
{
	size_t n = 0;

	if (f->out_rest.len == 0)
		(void)write_some(f, data, &n);
	link_call_taken(&f->call, CALL_STDOUT, n);
	if (n == data.n)
		return;
	if (buf_add(&f->out_rest, data.p + n, data.n - n) < 0 ||
	    (f->out_io.fd < 0 &&
	     loop_add(&f->c->loop, &f->out_io, f->spec.out_fd, EPOLLOUT, on_out_ready) < 0))
		output_broke(f);
}

static void on_output(struct link_call *call, enum call_stream stream, struct str data)
{
	struct file_call *f = container_of(call, struct file_call, call);
	size_t room = STDERR_MAX - f->text.len;

	if (stream == CALL_STDOUT && f->spec.out_fd >= 0 && !f->out_broken) {
		pass_output(f, data);
		return;
	}
	/* An error message; its beginning is enough. */
	if (stream == CALL_STDERR)
		(void)!buf_add(&f->text, data.p, data.n < room ? data.n : room);
	link_call_taken(call, stream, data.n);
}

/* --- the call --- */

static void on_ended(struct link_call *call, const struct call_result *r, const struct err *why)
{
	struct file_call *f = container_of(call, struct file_call, call);

	loop_del(&f->c->loop, &f->in_io);
	f->spec.in_fd = FD_NONE;
	f->ended = true;
	f->failed = !r;
	if (r)
		f->code = r->code;
	else
		f->why = *why;
	end_if_passed_on(f);
}

static int begin_pipes(struct file_call *f)
{
	int r = f->spec.out_fd < 0 ? 0 : io_set_nonblock(f->spec.out_fd, true);

	if (r == 0 && f->spec.in_fd < 0) {
		link_call_eof(&f->call);
		return 0;
	}
	if (r == 0)
		r = io_set_nonblock(f->spec.in_fd, true);
	return r < 0 ? r : loop_add(&f->c->loop, &f->in_io, f->spec.in_fd, EPOLLIN, on_input);
}

int file_call_start(struct file_call *f, struct cay *c, const struct file_call_spec *spec,
		    struct err *e)
{
	static const struct link_call_ops ops = { .output = on_output,
						  .room = on_room,
						  .ended = on_ended };
	const struct call_spec call = {
		.op = spec->op, .path = spec->path, .mode = spec->mode, .user = spec->user
	};
	int r;

	*f = (struct file_call){ .c = c,
				 .spec = *spec,
				 .in_io.fd = FD_NONE,
				 .out_io.fd = FD_NONE,
				 .in_rest = BUF_INIT(CHUNK),
				 .out_rest = BUF_INIT(REST_MAX),
				 .text = BUF_INIT(STDERR_MAX) };
	f->chunk = malloc(CHUNK);
	if (!f->chunk || buf_reserve(&f->in_rest, CHUNK) < 0)
		return err_sys(e, ENOMEM, "ask for a file");
	if (link_connect(&c->wait, &c->state, spec->id, &f->link, e) < 0)
		return -1;
	r = link_call(f->link, &f->call, &call, &ops);
	if (r == 0)
		r = begin_pipes(f);
	return r < 0 ? err_sys(e, -r, "ask for a file") : 0;
}

int file_call_wait(struct file_call *f, struct err *e)
{
	if (cay_wait(f->c, &f->done, "the copy", e) < 0)
		return -1;
	if (!f->failed)
		return 0;
	*e = f->why;
	return -1;
}

void file_call_done(struct file_call *f)
{
	if (!f->c)
		return;
	loop_del(&f->c->loop, &f->in_io);
	loop_del(&f->c->loop, &f->out_io);
	link_call_drop(&f->call);
	link_free(f->link);
	buf_done(&f->in_rest);
	buf_done(&f->out_rest);
	buf_done(&f->text);
	free(f->chunk);
	f->c = NULL;
}
