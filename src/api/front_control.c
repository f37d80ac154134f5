/* SPDX-License-Identifier: Apache-2.0 */
/* The front's side of the frames between supervisor and front (api/control.h). */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "api/front.h"
#include "base/clock.h"

enum { DRAIN_MS = 10000, DRAIN_LOOK_MS = 20 };

static void host_start(void *ctx, int slot)
{
	struct front *f = ctx;

	(void)CONN_SAY(&f->control, F_START, 0, { CONTROL_SLOT, (uint64_t)slot, NULL });
}

static void host_kill(void *ctx, int slot)
{
	struct front *f = ctx;

	(void)CONN_SAY(&f->control, F_KILL, 0, { CONTROL_SLOT, (uint64_t)slot, NULL });
}

/* One frame's fields; those that it does not have are empty. */
struct control_fields {
	struct str secret, cert, key, ticket;
	struct known_names names;
	uint64_t tls, log, generation;
};

static int read_fields(const struct frame *frame, struct control_fields *ret)
{
	struct str body = frame->body;
	struct field field;
	int r;

	*ret = (struct control_fields){ 0 };
	while ((r = field_next(&body, &field)) == 1) {
		if (field.tag == CONTROL_SECRET)
			ret->secret = field.value;
		else if (field.tag == CONTROL_DOMAIN &&
			 names_add_domain(&ret->names, field.value) == 0)
			continue;
		else if (field.tag == CONTROL_ORIGIN &&
			 names_add_origin(&ret->names, field.value) == 0)
			continue;
		else if (field.tag == CONTROL_CERT)
			ret->cert = field.value;
		else if (field.tag == CONTROL_KEY)
			ret->key = field.value;
		else if (field.tag == CONTROL_TICKET)
			ret->ticket = field.value;
		else if (field.tag == CONTROL_LOG && field_u64(field, &ret->log) == 0)
			continue;
		else if (field.tag == CONTROL_GENERATION && field_u64(field, &ret->generation) == 0)
			continue;
		else if (field.tag != CONTROL_TLS || field_u64(field, &ret->tls) < 0)
			return -EBADMSG;
	}
	return r;
}

static int begin(struct front *f, const struct frame *frame, const int *fds)
{
	struct control_fields in;

	if (f->begun || read_fields(frame, &in) < 0 || in.secret.n != sizeof f->secret ||
	    (in.tls && !f->tls) || frame->nfds > CONTROL_LISTENERS)
		return -EBADMSG;
	memcpy(f->secret, in.secret.p, sizeof f->secret);
	f->names = in.names;
	f->tls_listeners = in.tls;
	f->logs = in.log != 0;
	f->generation = in.generation;
	f->begun = true;
	for (int i = 0; i < frame->nfds; i++)
		f->waiting[f->nlisteners++] = fds[i];
	front_ask_keys(f);
	return 0;
}

/* The supervisor has checked the certificate. Connections keep the one that they began with. */
static int take_certs(struct front *f, const struct frame *frame)
{
	struct control_fields in;
	struct http_tls_cert cert;
	struct http_tls_options o = { .certs = &cert, .n = 1 };
	struct err e = { 0 };

	if (read_fields(frame, &in) < 0 || in.ticket.n != HTTP_TLS_TICKET)
		return -EBADMSG;
	cert = (struct http_tls_cert){ in.cert, in.key };
	o.ticket = (const unsigned char *)in.ticket.p;
	if (f->tls)
		return http_tls_replace(f->tls, &o, &e) < 0 ? -EBADMSG : 0;
	return http_tls_new(&f->tls, &o, &e) < 0 ? -EBADMSG : 0;
}

void front_accept(struct front *f)
{
	if (f->accepts)
		return;
	f->accepts = true;
	for (int i = 0; i < f->nlisteners; i++)
		(void)http_listen_add(&f->http, &f->listeners[i], f->waiting[i],
				      f->tls_listeners >> i & 1 ? http_tls_maker(f->tls) : NULL);
	(void)conn_send(&f->control, F_READY, 0, STR_NONE);
}

static int slot_of(const struct frame *f)
{
	struct str body = f->body;
	struct field field;
	uint64_t slot;

	if (field_next(&body, &field) != 1 || field_u64(field, &slot) < 0 || slot >= JOB_WORKERS)
		return -1;
	return (int)slot;
}

static void on_drain(struct loop_timer *t)
{
	struct front *f = container_of(t, struct front, drain);

	if (f->http.counters.conns == 0 || clock_mono_ns() > f->drain_until_ns)
		loop_stop(&f->loop);
	else
		loop_timer_set(&f->loop, t, DRAIN_LOOK_MS * NS_PER_MS, on_drain);
}

void front_drain(struct front *f)
{
	f->drain_until_ns = clock_mono_ns() + DRAIN_MS * NS_PER_MS;
	http_server_drain(&f->http);
	loop_timer_set(&f->loop, &f->drain, 0, on_drain);
}

static void on_control(struct conn *c, const struct frame *frame, int *fds)
{
	struct front *f = container_of(c, struct front, control);
	int slot = slot_of(frame);

	if (frame->type == F_WORKER && slot >= 0 && frame->nfds == 2) {
		job_queue_started(&f->queue, slot, fds[0], fds[1]);
		return;
	}
	if (frame->type == F_BEGIN) {
		if (begin(f, frame, fds) < 0)
			loop_stop(&f->loop);
		return;
	}
	if (frame->nfds == 1 && (frame->type == F_RETIRE || frame->type == F_HEIR)) {
		(frame->type == F_RETIRE ? front_retire : front_inherit)(f, fds[0]);
		return;
	}
	for (int i = 0; i < frame->nfds; i++)
		(void)close(fds[i]);
	if (frame->type == F_GONE && slot >= 0)
		job_queue_gone(&f->queue, slot);
	else if (frame->type == F_KEYS)
		front_ask_keys(f);
	else if (frame->type == F_STOP)
		front_drain(f);
	else if (frame->type == F_TLS && take_certs(f, frame) < 0 && !f->begun)
		loop_stop(&f->loop);
}

static void on_supervisor_left(struct conn *c, int err)
{
	struct front *f = container_of(c, struct front, control);

	(void)err;
	conn_done(c);
	front_drain(f);
}

int front_control_init(struct front *f, int fd)
{
	static const struct conn_ops ops = { .frame = on_control, .closed = on_supervisor_left };

	return conn_init(&f->control, &f->loop, fd, &ops);
}

struct job_host front_control_host(struct front *f)
{
	return (struct job_host){ host_start, host_kill, f };
}
