/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/call/sink.h"
#include "cli/output.h"
#include "link/client.h"
#include "loop/conn.h"

enum { CHAN = 1, CODE_TIMEOUT = 124, CODE_SIGNAL = 128 };

struct live {
	struct session *s;
	struct session_result *ret;
	struct err *e;
	struct loop loop;
	struct conn conn;
	struct sink out, err;
	struct loop_io in_io, sig_io;
	int sig_fd;
	size_t credit; /* stdin that the warden will take */
	bool in_open, in_polled, started, ended;
	int result;
	sigset_t old_mask;
	struct termios old_tty;
	bool tty_raw;
};

static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

static void finish(struct live *l, int result)
{
	l->result = result;
	l->ended = true;
	loop_stop(&l->loop);
}

static void stdin_end(struct live *l)
{
	if (!l->in_open)
		return;
	l->in_open = false;
	loop_del(&l->loop, &l->in_io);
	if (l->s->in_whole && !l->s->in_whole(l->s->in_ctx)) {
		/* Without us the warden kills the call, which has not seen an end. */
		(void)err_sys(l->e, EPIPE, "the input broke off");
		finish(l, -1);
		return;
	}
	(void)conn_send(&l->conn, MSG_C_STDIN_EOF, CHAN, STR_NONE);
}

/* One read of stdin, as much as the credit allows. False when it would block or has ended. */
static bool stdin_step(struct live *l)
{
	size_t most = l->credit < LIMIT_FRAME_DATA ? l->credit : LIMIT_FRAME_DATA;
	ssize_t n = conn_send_read(&l->conn, MSG_C_STDIN, CHAN, l->s->in_fd, most);

	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n <= 0) {
		stdin_end(l);
		return false;
	}
	l->credit -= (size_t)n;
	return true;
}

static void on_stdin(struct loop_io *io, uint32_t events)
{
	struct live *l = container_of(io, struct live, in_io);

	(void)events;
	if (l->credit)
		(void)stdin_step(l);
	if (l->in_open && !l->credit)
		(void)loop_mod(&l->loop, &l->in_io, 0);
}

/* A regular file is always ready, and epoll refuses it: it is read as credit comes. */
static void stdin_go_on(struct live *l)
{
	if (!l->in_open)
		return;
	if (l->in_polled)
		(void)loop_mod(&l->loop, &l->in_io, l->credit ? EPOLLIN : 0);
	else
		while (l->in_open && l->credit && stdin_step(l))
			;
}

static void stdin_begin(struct live *l)
{
	l->in_open = true;
	l->credit = LIMIT_STDIN_WINDOW;
	if (l->s->in_fd < 0) {
		stdin_end(l);
		return;
	}
	l->in_polled = loop_add(&l->loop, &l->in_io, l->s->in_fd, EPOLLIN, on_stdin) == 0;
	stdin_go_on(l);
}

static void on_exit_frame(struct live *l, const struct frame *f)
{
	struct session_result *r = l->ret;
	struct str body = f->body;
	struct field field;

	r->status = (int)client_number(f, TAG_STATUS, 0);
	r->call = (uint32_t)client_number(f, TAG_CALL, 0);
	r->duration_us = client_number(f, TAG_DURATION_US, 0);
	r->oom_kills = client_number(f, TAG_OOM_KILLS, 0);
	r->memory = client_number(f, TAG_CALL_MEMORY, 0);
	r->limit = r->memory ? "call-memory" : "memory";
	if (!r->memory)
		r->memory = client_number(f, TAG_MEMORY, 0);
	while (field_next(&body, &field) > 0)
		if (field.tag == TAG_REASON)
			(void)str_copy(r->reason, sizeof r->reason, field.value);
		else if (field.tag == TAG_DENIED &&
			 field_put(&r->denied, TAG_DENIED, field.value) < 0)
			break; /* the first ones are enough */
	r->code =
		WIFSIGNALED(r->status) ? CODE_SIGNAL + WTERMSIG(r->status) : WEXITSTATUS(r->status);
	if (strcmp(r->reason, "timeout") == 0)
		r->code = CODE_TIMEOUT;
	finish(l, 0);
}

static void emit(struct live *l, struct sink *to, struct str data)
{
	(void)sink_write(to, data);
	/* Nobody takes it any more: the command learns it as it would without us. */
	if (to->broken && to == &l->out)
		(void)CONN_SAY(&l->conn, MSG_C_SIGNAL, CHAN, { TAG_SIGNAL, SIGPIPE, NULL });
	conn_hold(&l->conn, l->out.rest.len || l->err.rest.len);
}

static void on_stderr(struct live *l, struct str data)
{
	if (!l->s->err_text)
		emit(l, &l->err, data);
	else if (buf_add_str(l->s->err_text, data) < 0)
		return; /* it is a message; its beginning is enough */
}

static void on_error(struct live *l, const struct frame *f)
{
	l->ret->failed_exec = client_number(f, TAG_STAGE, STAGE_SETUP) == STAGE_EXEC;
	finish(l, client_take_error(f, l->e));
}

static void print_warnings(const struct frame *f)
{
	struct str body = f->body, text;

	while (client_next_warning(&body, &text)) {
		fputs("cay: warning: ", stderr);
		out_safe_to(stderr, text);
		putc('\n', stderr);
	}
}

static void on_frame(struct conn *c, const struct frame *f, int *fds)
{
	struct live *l = container_of(c, struct live, conn);

	for (int i = 0; i < f->nfds; i++)
		fd_close(&fds[i]);
	if (l->ended) /* the first answer counts */
		return;
	switch (f->type) {
	case MSG_C_READY:
		print_warnings(f);
		break;
	case MSG_C_STARTED:
		l->started = true;
		print_warnings(f);
		l->ret->call = (uint32_t)client_number(f, TAG_CALL, 0);
		if (l->s->started)
			l->s->started(l->s->ctx);
		break;
	case MSG_C_STDOUT:
		emit(l, &l->out, f->body);
		break;
	case MSG_C_STDERR:
		on_stderr(l, f->body);
		break;
	case MSG_C_CREDIT:
		l->credit += client_number(f, TAG_BYTES, 0);
		stdin_go_on(l);
		break;
	case MSG_C_EXIT:
		on_exit_frame(l, f);
		break;
	case MSG_C_ERROR:
		on_error(l, f);
		break;
	default:
		break;
	}
}

static void on_closed(struct conn *c, int err)
{
	struct live *l = container_of(c, struct live, conn);

	(void)err;
	if (l->ended) /* the sandbox may end with the call: then its exit came before */
		return;
	finish(l, err_set(l->e, ERR_UNAVAILABLE,
			  l->started ? "the sandbox ended while the command ran"
				     : "the warden ended before the command was started"));
}

static void on_emptied(struct sink *s)
{
	struct live *l = container_of(s->loop, struct live, loop);

	conn_hold(&l->conn, l->out.rest.len || l->err.rest.len);
}

static void send_size(struct live *l)
{
	struct winsize ws;

	if (ioctl(l->s->in_fd, TIOCGWINSZ, &ws) == 0)
		(void)CONN_SAY(&l->conn, MSG_C_RESIZE, CHAN, { TAG_ROWS, ws.ws_row, NULL },
			       { TAG_COLS, ws.ws_col, NULL });
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
			(void)CONN_SAY(&l->conn, MSG_C_SIGNAL, CHAN,
				       { TAG_SIGNAL, si.ssi_signo, NULL });
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
	if (l->sig_fd < 0)
		return -errno;
	return loop_add(&l->loop, &l->sig_io, l->sig_fd, EPOLLIN, on_signal);
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

static void live_done(struct live *l)
{
	if (l->tty_raw)
		(void)tcsetattr(l->s->in_fd, TCSADRAIN, &l->old_tty);
	if (l->sig_fd >= 0) {
		loop_del(&l->loop, &l->sig_io);
		fd_close(&l->sig_fd);
		(void)sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
	}
	loop_del(&l->loop, &l->in_io);
	if (l->out.loop)
		sink_done(&l->out);
	if (l->err.loop)
		sink_done(&l->err);
	conn_done(&l->conn);
	loop_done(&l->loop);
}

static int live_begin(struct live *l, struct err *e)
{
	static const struct conn_ops ops = { .frame = on_frame, .closed = on_closed };
	int fd = fcntl(l->s->warden_fd, F_DUPFD_CLOEXEC, 0);
	int r = fd < 0 ? -errno : conn_init(&l->conn, &l->loop, fd, &ops);

	if (r == 0)
		r = sink_init(&l->out, &l->loop, l->s->out_fd, on_emptied);
	if (r == 0)
		r = sink_init(&l->err, &l->loop, l->s->err_fd, on_emptied);
	if (r == 0 && l->s->signals)
		r = signals_begin(l);
	if (r == 0)
		r = conn_send(&l->conn, MSG_C_EXEC, CHAN, buf_str(l->s->request));
	if (r < 0)
		return err_sys(e, -r, "start a call");
	tty_begin(l);
	stdin_begin(l);
	return 0;
}

/* A reader that went away is its own affair; a disk that is full is not. */
static void flush_out(struct live *l, struct sink *s, const char *name)
{
	(void)sink_flush(s);
	if (s->broken && s->error != EPIPE && l->result == 0)
		l->result = err_sys(l->e, s->error, "write to %s", name);
}

int session_run(struct session *s, struct session_result *ret, struct err *e)
{
	struct live l = { .s = s, .ret = ret, .e = e, .sig_fd = FD_NONE };
	int r;

	*ret = (struct session_result){ .denied = BUF_INIT(64 * 1024) };
	(void)signal(SIGPIPE, SIG_IGN);
	r = loop_init(&l.loop);
	if (r < 0)
		return err_sys(e, -r, "make an event loop");
	if (live_begin(&l, e) < 0) {
		live_done(&l);
		return -1;
	}
	r = loop_run(&l.loop);
	if (r < 0)
		l.result = err_sys(e, -r, "wait for events");
	flush_out(&l, &l.out, "stdout");
	flush_out(&l, &l.err, "stderr");
	live_done(&l);
	return l.result;
}
