/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call/call_stdio.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/call/sink.h"
#include "cli/output.h"
#include "link/decode.h"

enum { WINDOW = 1 << 20, CTRL_P = 0x10, CTRL_Q = 0x11 };

/* The destination of one stream. Bytes count as taken once the sink has written all of them. */
struct outlet {
	struct sink sink;
	struct live *l;
	enum call_stream stream;
	size_t untaken;
};

struct live {
	const struct call_stdio *s;
	struct call_outcome *ret;
	struct err *e;
	struct loop *loop;
	struct link_call call;
	struct outlet out, err;
	struct loop_io in_io, sig_io;
	int sig_fd;
	bool in_open, in_polled, started, over;
	bool after_ctrl_p;
	int result;
	sigset_t old_mask;
	struct termios old_tty;
	bool tty_raw;
};

static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

void call_outcome_done(struct call_outcome *o)
{
	buf_done(&o->denied);
}

void call_print_warnings(struct str fields)
{
	struct str text;

	while (warning_next(&fields, &text)) {
		fputs("cay: warning: ", stderr);
		out_safe_to(stderr, text);
		putc('\n', stderr);
	}
}

static void finish(struct live *l, int result)
{
	l->result = result;
	l->over = true;
}

/* Leave the call; a detached call keeps running. */
static void leave(struct live *l)
{
	link_call_drop(&l->call);
	l->ret->left = true;
	finish(l, 0);
}

/* --- stdin --- */

static void stdin_end(struct live *l)
{
	if (!l->in_open)
		return;
	l->in_open = false;
	loop_del(l->loop, &l->in_io);
	link_call_eof(&l->call);
}

/* True if these terminal bytes, or the previous last byte and these, are the leave sequence. */
static bool wants_to_leave(struct live *l, const char *data, size_t n)
{
	for (size_t i = 0; i < n && l->s->leaves && l->s->tty; i++) {
		if (l->after_ctrl_p && data[i] == CTRL_Q)
			return true;
		l->after_ctrl_p = data[i] == CTRL_P;
	}
	return false;
}

/* Read stdin once, as much as the warden accepts. False if it would block or has ended. */
static bool stdin_step(struct live *l)
{
	static char data[LIMIT_FRAME_DATA];
	size_t room = link_call_room(&l->call);
	ssize_t n = read(l->s->in_fd, data, room < sizeof data ? room : sizeof data);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		stdin_end(l);
		return false;
	}
	if (wants_to_leave(l, data, (size_t)n)) {
		leave(l);
		return false;
	}
	(void)link_call_write(&l->call, (struct str){ data, (size_t)n });
	return true;
}

static void on_stdin(struct loop_io *io, uint32_t events)
{
	struct live *l = container_of(io, struct live, in_io);

	(void)events;
	if (link_call_room(&l->call))
		(void)stdin_step(l);
	if (l->in_open && !link_call_room(&l->call))
		(void)loop_mod(l->loop, &l->in_io, 0);
}

/* A regular file is always ready and epoll refuses it: read it as room becomes available. */
static void stdin_go_on(struct live *l)
{
	if (!l->in_open)
		return;
	if (l->in_polled)
		(void)loop_mod(l->loop, &l->in_io, link_call_room(&l->call) ? EPOLLIN : 0);
	else
		while (l->in_open && link_call_room(&l->call) && stdin_step(l))
			;
}

static void stdin_begin(struct live *l, bool writes)
{
	if (!writes)
		return;
	l->in_open = true;
	if (l->s->in_fd < 0) {
		stdin_end(l);
		return;
	}
	l->in_polled = loop_add(l->loop, &l->in_io, l->s->in_fd, EPOLLIN, on_stdin) == 0;
	stdin_go_on(l);
}

/* --- what the call tells --- */

static struct live *live_of(struct link_call *c)
{
	return container_of(c, struct live, call);
}

static void on_started(struct link_call *c, const struct call_started *s)
{
	struct live *l = live_of(c);

	l->started = true;
	call_print_warnings(s->fields);
	if (l->s->started && l->s->started(l->s->ctx, s))
		leave(l);
}

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct live *l = live_of(c);
	struct outlet *o = stream == CALL_STDOUT ? &l->out : &l->err;

	(void)sink_write(&o->sink, data);
	/* The reader is gone: the command notices it as it would without cay. */
	if (o->sink.broken && o == &l->out)
		link_call_signal(c, SIGPIPE);
	if (o->sink.rest.len)
		o->untaken += data.n;
	else
		link_call_taken(c, stream, data.n);
	if (l->s->enough && l->s->enough(l->s->ctx, data.n))
		leave(l);
}

static void on_room(struct link_call *c, size_t bytes)
{
	(void)bytes;
	stdin_go_on(live_of(c));
}

static void on_ended(struct link_call *c, const struct call_result *r, const struct err *why)
{
	struct live *l = live_of(c);
	struct str fields = r ? r->fields : STR_NONE;
	struct field field;

	if (why) {
		*l->e = *why;
		if (strcmp(why->code, "sandbox.gone") == 0)
			(void)err_set(l->e, ERR_UNAVAILABLE,
				      l->started ? "the sandbox ended while the command ran"
						 : "the warden ended before the command started");
		finish(l, -1);
		return;
	}
	l->ret->result = *r;
	l->ret->result.fields = STR_NONE;
	while (field_next(&fields, &field) > 0)
		if (field.tag == TAG_DENIED &&
		    field_put(&l->ret->denied, TAG_DENIED, field.value) < 0)
			break; /* the first entries are enough */
	finish(l, 0);
}

static void on_emptied(struct sink *s)
{
	struct outlet *o = container_of(s, struct outlet, sink);
	size_t n = o->untaken;

	o->untaken = 0;
	link_call_taken(&o->l->call, o->stream, n);
}

/* --- signals and the terminal --- */

static void send_size(struct live *l)
{
	struct winsize ws;

	if (ioctl(l->s->in_fd, TIOCGWINSZ, &ws) == 0)
		link_call_resize(&l->call, ws.ws_row, ws.ws_col);
}

static void on_signal(struct loop_io *io, uint32_t events)
{
	struct live *l = container_of(io, struct live, sig_io);
	struct signalfd_siginfo si;

	(void)events;
	while (read(l->sig_fd, &si, sizeof si) == (ssize_t)sizeof si)
		if (si.ssi_signo == SIGWINCH)
			send_size(l);
		else
			link_call_signal(&l->call, (int)si.ssi_signo);
}

static int signals_begin(struct live *l)
{
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(passed_on); i++)
		(void)sigaddset(&set, passed_on[i]);
	if (l->s->tty)
		(void)sigaddset(&set, SIGWINCH);
	(void)sigprocmask(SIG_BLOCK, &set, &l->old_mask);
	l->sig_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->sig_fd < 0) {
		int r = -errno;

		(void)sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
		return r;
	}
	return loop_add(l->loop, &l->sig_io, l->sig_fd, EPOLLIN, on_signal);
}

static void tty_begin(struct live *l)
{
	struct termios raw;

	if (!l->s->tty || tcgetattr(l->s->in_fd, &l->old_tty) < 0)
		return;
	raw = l->old_tty;
	cfmakeraw(&raw);
	l->tty_raw = tcsetattr(l->s->in_fd, TCSADRAIN, &raw) == 0;
}

/* --- the whole --- */

static void live_done(struct live *l)
{
	link_call_drop(&l->call);
	if (l->tty_raw)
		(void)tcsetattr(l->s->in_fd, TCSADRAIN, &l->old_tty);
	if (l->sig_fd >= 0) {
		loop_del(l->loop, &l->sig_io);
		fd_close(&l->sig_fd);
		(void)sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
	}
	loop_del(l->loop, &l->in_io);
	if (l->out.sink.loop)
		sink_done(&l->out.sink);
	if (l->err.sink.loop)
		sink_done(&l->err.sink);
}

/* Set up everything needed before the call starts. Returns 0 or -errno. */
static int live_begin(struct live *l)
{
	int r = sink_init(&l->out.sink, l->loop, l->s->out_fd, on_emptied);

	if (r == 0)
		r = sink_init(&l->err.sink, l->loop, l->s->err_fd, on_emptied);
	if (r == 0 && l->s->signals)
		r = signals_begin(l);
	return r;
}

/* Ignore a reader that went away; report a full disk. */
static void flush_outlet(struct live *l, struct outlet *o, const char *name)
{
	(void)sink_flush(&o->sink);
	if (o->sink.broken && o->sink.error != EPIPE && l->result == 0)
		l->result = err_sys(l->e, o->sink.error, "write to %s", name);
}

static int live_run(struct live *l, bool writes)
{
	int r;

	tty_begin(l);
	stdin_begin(l, writes);
	r = loop_run_until(l->loop, &l->over);
	if (r < 0)
		l->result = err_sys(l->e, -r, "wait for events");
	else if (!l->over)
		l->result = err_set(l->e, ERR_FAILED, "the wait for the command was ended");
	flush_outlet(l, &l->out, "stdout");
	flush_outlet(l, &l->err, "stderr");
	return l->result;
}

static const struct link_call_ops ops = {
	.started = on_started, .output = on_output, .room = on_room, .ended = on_ended
};

static void live_init(struct live *l, const struct call_stdio *s, struct call_outcome *ret,
		      struct err *e)
{
	*l = (struct live){ .s = s,
			    .ret = ret,
			    .e = e,
			    .loop = link_loop(s->link),
			    .out = { .l = l, .stream = CALL_STDOUT },
			    .err = { .l = l, .stream = CALL_STDERR },
			    .in_io.fd = FD_NONE,
			    .sig_io.fd = FD_NONE,
			    .sig_fd = FD_NONE };
	/* Permanently: later writes notice a missing reader by their own errors. */
	(void)signal(SIGPIPE, SIG_IGN);
}

static int not_begun(int r, struct err *e)
{
	if (r == -E2BIG)
		return err_set(e, ERR_LIMIT,
			       "the command and its environment are larger than %d KiB",
			       LIMIT_FRAME_BODY / 1024);
	return err_sys(e, -r, "start a call");
}

int call_stdio_run(const struct call_stdio *s, const struct call_spec *spec,
		   struct call_outcome *ret, struct err *e)
{
	struct call_spec asked = *spec;
	struct live l;
	int r;

	live_init(&l, s, ret, e);
	asked.window = spec->window ? spec->window : WINDOW;
	asked.start_ms = LINK_NO_DEADLINE; /* the call may have to wait for a snapshot */
	r = live_begin(&l);
	if (r == 0)
		r = link_call(s->link, &l.call, &asked, &ops);
	r = r < 0 ? not_begun(r, e) : live_run(&l, !(spec->detached && spec->tty));
	live_done(&l);
	return r;
}

int call_stdio_attach(const struct call_stdio *s, const struct call_attach *how,
		      struct call_outcome *ret, struct err *e)
{
	struct call_attach asked = *how;
	struct live l;
	int r;

	live_init(&l, s, ret, e);
	asked.window = how->window ? how->window : WINDOW;
	r = live_begin(&l);
	if (r == 0)
		r = link_attach(s->link, &l.call, &asked, &ops);
	if (r == 0 && s->tty)
		send_size(&l);
	r = r < 0 ? not_begun(r, e) : live_run(&l, how->writes);
	live_done(&l);
	return r;
}
