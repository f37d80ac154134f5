/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "api/e2b/events.h"
#include "base/clock.h"

enum { KEEP_S = 30, PIECE = 32 * 1024, FEED_AHEAD = 256 * 1024, LIMIT_LATER_MS = 100 };

static const char killed[] = "The sandbox was killed or reached its end of life while the request "
			     "was in flight.";

struct proc *proc_new(struct box *b)
{
	struct proc *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->box = b;
	p->input = (struct buf)BUF_INIT(PROC_INPUT_MOST);
	p->end = (struct buf)BUF_INIT(4096);
	for (int i = 0; i < 2; i++)
		p->early[i] = (struct buf)BUF_INIT(LINK_WINDOW);
	return p;
}

static void count(struct proc *p)
{
	size_t now = p->config_n + p->input.len;

	p->box->held += now - p->counted;
	p->counted = now;
}

/* Only what is running counts: of one that has ended, little is kept. */
static void forget_config(struct proc *p)
{
	free(TAKE_PTR(p->config));
	buf_done(&p->input);
	p->config_n = 0;
	count(p);
}

/* ---- input ---- */

void feeder_add(struct proc *p, struct feeder *f)
{
	f->proc = p;
	f->next = p->feeders;
	p->feeders = f;
}

void feeder_remove(struct feeder *f)
{
	struct proc *p = TAKE_PTR(f->proc);

	for (struct feeder **at = p ? &p->feeders : NULL; at && *at; at = &(*at)->next)
		if (*at == f) {
			*at = f->next;
			return;
		}
}

bool feeder_is_full(const struct feeder *f)
{
	return f->proc && !f->at_its_end && f->proc->input.len > FEED_AHEAD;
}

static void drop_feeders(struct proc *p)
{
	while (p->feeders) {
		struct feeder *f = p->feeders;

		feeder_remove(f);
		f->room(f);
	}
}

static void feed(struct proc *p)
{
	for (struct feeder *f = p->feeders, *next; f; f = next) {
		next = f->next;
		f->room(f);
	}
}

void proc_free(struct proc *p)
{
	for (struct proc **at = &p->box->procs; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	loop_timer_stop(&p->box->front->loop, &p->keep);
	loop_timer_stop(&p->box->front->loop, &p->limit);
	drop_feeders(p);
	link_call_drop(&p->call);
	for (int i = 0; i < 2; i++)
		buf_done(&p->early[i]);
	forget_config(p);
	buf_done(&p->end);
	free(p);
}

/* ---- listeners ---- */

static void give_credit(struct proc *p)
{
	for (struct listener *l = p->listeners; l; l = l->next)
		if (l->full)
			return;
	for (int i = 0; i < 2; i++) {
		size_t n = p->held[i];

		p->held[i] = 0;
		if (n && !p->ended)
			link_call_taken(&p->call, (enum call_stream)i, n);
	}
}

void proc_room(struct proc *p)
{
	give_credit(p);
}

void listener_done(struct listener *l)
{
	struct proc *p = TAKE_PTR(l->proc);
	struct loop *loop = &l->v->q->front->loop;

	loop_timer_stop(loop, &l->deadline);
	loop_timer_stop(loop, &l->ping);
	if (!p)
		return;
	for (struct listener **at = &p->listeners; *at; at = &(*at)->next)
		if (*at == l) {
			*at = l->next;
			break;
		}
	give_credit(p);
}

static void listener_send(struct listener *l, const struct buf *event)
{
	if (http_answer_envelope(l->v->q->http, 0, buf_str(event)) == 1)
		l->full = true;
	if (l->ping_ns)
		loop_timer_set(&l->v->q->front->loop, &l->ping, l->ping_ns, l->ping.fn);
}

static void send_all(struct proc *p, const struct buf *event)
{
	for (struct listener *l = p->listeners; l; l = l->next)
		listener_send(l, event);
}

/* The stream is over, well. */
static void listener_end(struct listener *l)
{
	struct http_request *r = l->v->q->http;

	listener_done(l);
	(void)http_answer_envelope(r, 2, STR("{}"));
	http_answer_end(r);
}

static void on_ping(struct loop_timer *t)
{
	struct listener *l = container_of(t, struct listener, ping);
	auto_done(buf_done) struct buf b = BUF_INIT(256);

	if (buf_add_c(&b, "{\"event\":{\"keepalive\":{}}}") == 0)
		listener_send(l, &b);
}

/* First the stream ends, then the process: else the client would hear of its death. */
static void on_deadline(struct loop_timer *t)
{
	struct listener *l = container_of(t, struct listener, deadline);
	struct proc *p = l->proc;

	listener_done(l);
	envd_fail(l->v, "deadline_exceeded", "the time for this command is over");
	if (l->kills && !p->ended)
		link_call_signal(&p->call, SIGKILL);
}

void proc_listen(struct proc *p, struct listener *l)
{
	struct loop *loop = &p->box->front->loop;
	struct http_request *r = l->v->q->http;
	auto_done(buf_done) struct buf b = BUF_INIT(256);
	uint64_t ms = event_header_number(r, "connect-timeout-ms");

	l->ping_ns = event_header_number(r, "keepalive-ping-interval") * NS_PER_S;
	l->proc = p;
	l->next = p->listeners;
	p->listeners = l;
	if (r->status == 0)
		(void)http_answer_begin(r, 200, "application/connect+json", HTTP_LENGTH_UNKNOWN);
	if (ms)
		loop_timer_set(loop, &l->deadline, ms * NS_PER_MS, on_deadline);
	if (l->ping_ns)
		loop_timer_set(loop, &l->ping, l->ping_ns, on_ping);
	if (p->pid && event_start(&b, p->pid) == 0)
		listener_send(l, &b);
	if (p->ended) {
		listener_send(l, &p->end);
		listener_end(l);
	}
}

/* ---- the call ---- */

static void send_output(struct proc *p, enum call_stream stream, struct str data)
{
	while (data.n) {
		auto_done(buf_done) struct buf b = BUF_INIT(2 * PIECE);
		struct str piece = { data.p, data.n < PIECE ? data.n : PIECE };

		if (event_data(&b,
			       p->tty		       ? "pty"
			       : stream == CALL_STDOUT ? "stdout"
						       : "stderr",
			       piece) == 0)
			send_all(p, &b);
		data.p += piece.n;
		data.n -= piece.n;
	}
}

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct proc *p = container_of(c, struct proc, call);

	if (!p->pid) {
		/* Clients want to hear of the start first. At most a window comes. */
		if (buf_add_str(&p->early[stream], data) < 0)
			link_call_taken(c, stream, data.n);
		return;
	}
	send_output(p, stream, data);
	p->held[stream] += data.n;
	give_credit(p);
}

static void on_started(struct link_call *c, const struct call_started *s)
{
	struct proc *p = container_of(c, struct proc, call);
	auto_done(buf_done) struct buf b = BUF_INIT(256);

	/* The pid of one that was joined was known before. */
	if (!p->pid) {
		p->pid = s->pid;
		if (event_start(&b, p->pid) == 0)
			send_all(p, &b);
	}
	for (int i = 0; i < 2; i++) {
		send_output(p, (enum call_stream)i, buf_str(&p->early[i]));
		p->held[i] += p->early[i].len;
		buf_done(&p->early[i]);
	}
	give_credit(p);
}

static void flush_input(struct proc *p)
{
	size_t n = link_call_write(&p->call, buf_str(&p->input));

	buf_shift(&p->input, n);
	buf_trim(&p->input, 0);
	count(p);
	if (p->eof && p->input.len == 0)
		link_call_eof(&p->call);
}

static void on_room(struct link_call *c, size_t bytes)
{
	struct proc *p = container_of(c, struct proc, call);

	(void)bytes;
	flush_input(p);
	if (p->input.len <= FEED_AHEAD)
		feed(p);
}

static void on_forgotten(struct loop_timer *t)
{
	proc_free(container_of(t, struct proc, keep));
}

/* What the start of a command failed with, in the words of E2B. */
static void tell_failure(struct proc *p, const struct err *why)
{
	bool gone = why->kind == ERR_UNAVAILABLE;

	while (p->listeners) {
		struct listener *l = p->listeners;

		listener_done(l);
		if (gone)
			envd_fail(l->v, "unavailable", "%s", killed);
		else if (strstr(why->msg, "user"))
			envd_fail(l->v, "unauthenticated", "invalid username: '%s'", l->v->user);
		else
			envd_fail(l->v,
				  why->kind == ERR_LIMIT ? "resource_exhausted"
							 : "invalid_argument",
				  "%s", why->msg);
	}
}

static void on_ended(struct link_call *c, const struct call_result *res, const struct err *why)
{
	struct proc *p = container_of(c, struct proc, call);

	struct err gone = { 0 };

	p->ended = true;
	/* It died with its sandbox. */
	if (!why && strcmp(res->reason, "sandbox_ended") == 0) {
		(void)err_set(&gone, ERR_UNAVAILABLE, "%s", killed);
		why = &gone;
	}
	if (why) {
		tell_failure(p, why);
		proc_free(p);
		return;
	}
	if (event_end(&p->end, res->status) == 0)
		send_all(p, &p->end);
	while (p->listeners)
		listener_end(p->listeners);
	drop_feeders(p);
	/* Only the end is kept: a client may have given it megabytes of arguments. */
	forget_config(p);
	loop_timer_set(&p->box->front->loop, &p->keep, KEEP_S * NS_PER_S, on_forgotten);
}

static const struct link_call_ops proc_ops = {
	.started = on_started, .output = on_output, .room = on_room, .ended = on_ended
};

static void on_limit(struct loop_timer *t)
{
	struct proc *p = container_of(t, struct proc, limit);

	if (!p->ended)
		link_call_signal(&p->call, SIGKILL);
}

int proc_start(struct box *b, const struct call_spec *spec, struct proc *p, struct listener *l)
{
	uint64_t ms = event_header_number(l->v->q->http, "connect-timeout-ms");
	int r;

	p->config_n = strlen(p->config);
	count(p);
	if (b->held > BOX_HELD_MOST)
		return -E2BIG;
	r = link_call(b->link, &p->call, spec, &proc_ops);
	if (r < 0)
		return r;
	p->next = b->procs;
	b->procs = p;
	if (!p->stdin_open)
		link_call_eof(&p->call);
	l->kills = true;
	/* Behind the listener's own deadline: the client hears of that, not of the death. */
	if (ms)
		loop_timer_set(&b->front->loop, &p->limit, (ms + LIMIT_LATER_MS) * NS_PER_MS,
			       on_limit);
	proc_listen(p, l);
	return 0;
}

int proc_join(struct proc *p, const struct link_call_row *row)
{
	const struct call_attach how = { .call = row->call,
					 .offset = row->kept_to,
					 .writes = true,
					 /* A front that retires may still have it. */
					 .takes = true };
	int r = link_attach(p->box->link, &p->call, &how, &proc_ops);

	if (r < 0)
		return r;
	p->pid = row->pid;
	p->next = p->box->procs;
	p->box->procs = p;
	return 0;
}

struct proc *proc_find(struct box *b, int pid, const char *tag)
{
	for (struct proc *p = b->procs; p; p = p->next)
		if (p->pid && (tag ? strcmp(p->tag, tag) == 0 : p->pid == pid))
			return p;
	return NULL;
}

int proc_write(struct proc *p, struct str data)
{
	int r = p->box->held + data.n > BOX_HELD_MOST ? -E2BIG : buf_add_str(&p->input, data);

	if (r == 0)
		flush_input(p);
	return r;
}

void proc_eof(struct proc *p)
{
	p->eof = true;
	p->stdin_open = false;
	flush_input(p);
}

void procs_free(struct box *b)
{
	struct err why = { 0 };

	(void)err_set(&why, ERR_UNAVAILABLE, "%s", killed);
	while (b->procs) {
		tell_failure(b->procs, &why);
		proc_free(b->procs);
	}
}
