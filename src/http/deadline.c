/* SPDX-License-Identifier: Apache-2.0 */
/* How long a connection may stay in each state, and what happens then. */
#include "base/clock.h"
#include "http/parts.h"

enum { BODY_RATE = 1024 }; /* bytes per second that a buffered body must reach */

enum http_phase http_exchange_phase(const struct http_exchange *x)
{
	if (x->tunnel)
		return HTTP_TUNNEL;
	if (x->out_mode == HTTP_OUT_STREAM)
		return HTTP_STREAM;
	if (x->out_mode != HTTP_OUT_OPEN)
		return HTTP_SEND;
	if (x->full_in)
		return HTTP_FULL;
	if ((x->in_mode == HTTP_IN_BUFFER || x->in_mode == HTTP_IN_STREAM) && !x->paused)
		return HTTP_BODY;
	return HTTP_WAIT;
}

/* A buffered body has a total time that grows with its bytes; an upload must only go on. */
static uint64_t body_deadline(const struct http_exchange *x, const struct http_limits *l)
{
	if (x->in_mode == HTTP_IN_STREAM)
		return x->in_ns + l->stall_ms * NS_PER_MS;
	return x->asked_ns + l->body_ms * NS_PER_MS + x->in.got * NS_PER_S / BODY_RATE;
}

static uint64_t exchange_deadline(const struct http_exchange *x, const struct http_limits *l)
{
	switch (http_exchange_phase(x)) {
	case HTTP_BODY:
		return body_deadline(x, l);
	case HTTP_FULL:
		return x->in_ns + l->full_ms * NS_PER_MS;
	case HTTP_WAIT:
		return x->in_ns + l->wait_ms * NS_PER_MS;
	case HTTP_SEND:
		return x->out_ns + l->stall_ms * NS_PER_MS;
	case HTTP_STREAM: /* TCP_USER_TIMEOUT ends a client that takes nothing */
	case HTTP_TUNNEL:
		break;
	}
	return 0;
}

uint64_t http_conn_deadline(const struct http_conn *c)
{
	const struct http_limits *l = &c->server->limits;

	switch ((enum http_state)c->state) {
	case HTTP_HANDSHAKE:
		return c->since_ns + l->handshake_ms * NS_PER_MS;
	case HTTP_IDLE:
		return c->since_ns + (c->first ? l->first_ms : l->idle_ms) * NS_PER_MS;
	case HTTP_HEAD:
		return c->since_ns + l->head_ms * NS_PER_MS;
	case HTTP_ACTIVE:
		return exchange_deadline(c->x, l);
	case HTTP_LINGER:
		return c->since_ns + l->linger_ms * NS_PER_MS;
	case HTTP_CLOSED:
	case HTTP_STATES:
		break;
	}
	return 0;
}

static void exchange_expire(struct http_conn *c)
{
	switch (http_exchange_phase(c->x)) {
	case HTTP_BODY:
		http_conn_refuse(c, 408, "the body took too long");
		break;
	case HTTP_FULL:
		http_conn_refuse(c, 503, "there is no memory for the body; try again later");
		break;
	case HTTP_WAIT:
		http_conn_refuse(c, 504, "the request took too long");
		break;
	case HTTP_SEND:
	case HTTP_STREAM:
	case HTTP_TUNNEL:
		http_conn_close(c, HTTP_END_GONE);
		break;
	}
}

void http_conn_expire(struct http_conn *c)
{
	c->server->counters.refused[HTTP_REFUSED_TIMEOUT] +=
		c->state == HTTP_HEAD || c->state == HTTP_HANDSHAKE || c->state == HTTP_ACTIVE;
	c->entered = true; /* the caller runs c */
	if (c->state == HTTP_HEAD)
		http_conn_refuse(c, 408, "the head took too long");
	else if (c->state == HTTP_ACTIVE)
		exchange_expire(c);
	else
		http_conn_close(c, HTTP_END_GONE);
	c->entered = false;
}
