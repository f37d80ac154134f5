/* SPDX-License-Identifier: Apache-2.0 */
#include "api/admit.h"

#include <string.h>

#include "api/error.h"
#include "base/clock.h"

enum { FORKS_MOST = 100 };

/* ---- browsers ---- */

static bool is_network(const struct api_request *q)
{
	return !http_request_peer(q->http)->local;
}

bool admit_host(struct api_request *q)
{
	if (!is_network(q) ||
	    names_know_host(&q->front->names, http_request_head(q->http), q->port_host))
		return true;
	http_request_last(q->http);
	api_refuse(q->http, 421,
		   "this server is not known by the name in the Host header; "
		   "start it with --domain NAME");
	return false;
}

static bool is_change(const struct http_request *r)
{
	return !http_request_is(r, "GET") && !http_request_is(r, "HEAD") &&
	       !http_request_is(r, "OPTIONS");
}

bool admit_origin(struct api_request *q)
{
	struct http_request *r = q->http;

	if (!is_network(q) || !is_change(r) ||
	    names_know_origin(&q->front->names, http_request_head(r), http_request_is_tls(r)))
		return true;
	api_refuse(r, 403,
		   "web pages of another origin may not change anything here; "
		   "start the server with --origin URL");
	return false;
}

/* ---- keys ---- */

static unsigned scope_of(const struct route *route)
{
	/* A copy of a sandbox shows all that is in it. */
	if (route->flags & ROUTE_CREATES)
		return SCOPE_CREATE | (strstr(route->path, "{id}") ? SCOPE_USE : 0);
	if (route->flags & ROUTE_NETWORK)
		return SCOPE_NETWORK;
	if (route->flags & ROUTE_SNAPSHOT)
		return SCOPE_SNAPSHOT;
	return strcmp(route->method, "GET") == 0 && !(route->flags & ROUTE_USES) ? SCOPE_READ
										 : SCOPE_USE;
}

/* Visitors of its sandboxes are counted apart, so that they cannot shut out the key itself. */
static bool count_call(struct api_request *q, struct auth_key *k, bool visitor)
{
	unsigned *n = visitor ? &k->visits : &k->calls;

	if (*n >= k->said.calls) {
		api_refuse_until(q->http, NS_PER_S, "quota.calls",
				 "the key has %u requests and streams under way, as many as it may",
				 *n);
		return false;
	}
	++*n;
	q->counted = k;
	q->visits = visitor;
	return true;
}

static bool count_connection(struct api_request *q, struct auth_key *k)
{
	http_request_own(q->http, &k->http);
	if (k->http.conns <= KEY_CONNS_MOST)
		return true;
	http_request_last(q->http);
	api_refuse_until(q->http, NS_PER_S, "quota.connections",
			 "the key has %u connections already", k->http.conns - 1);
	return false;
}

bool admit_key(struct api_request *q)
{
	struct auth_key *k = q->who.key;
	unsigned missing = k ? scope_of(q->route) & ~k->said.scope : 0;

	if (!k)
		return true;
	if (missing) {
		auto_done(buf_done) struct buf b = BUF_INIT(256);

		if (key_scope_put(missing, &b) < 0)
			buf_clear(&b);
		api_refuse(q->http, 403, "the scope of this key does not include '%.*s'",
			   (int)b.len, b.len ? b.data : "");
		return false;
	}
	return count_connection(q, k) && count_call(q, k, false);
}

bool admit_call(struct api_request *q, const char *owner, bool proven)
{
	struct auth_key *k = owner[0] ? auth_find(&q->front->auth, owner) : NULL;

	if (!k)
		return true;
	return (!proven || count_connection(q, k)) && count_call(q, k, !proven);
}

/* Sandboxes that this request makes. Whether the number is allowed is not decided here. */
static uint64_t creations_of(const json_t *body)
{
	json_int_t n = json_integer_value(json_object_get(body, "count"));

	return n > 1 && n <= FORKS_MOST ? (uint64_t)n : 1;
}

bool admit_creations(struct api_request *q, const json_t *body)
{
	struct auth_key *k = q->who.key;
	uint64_t wait;

	if (!k || !(q->route->flags & ROUTE_CREATES) || k->said.rate == KEY_LIMIT_NONE)
		return true;
	wait = pace_take(&k->creations, clock_mono_ns(), k->said.rate, k->said.rate,
			 creations_of(body));
	if (wait == 0)
		return true;
	api_refuse_until(q->http, wait, "quota.rate", "the key may make %llu sandboxes per minute",
			 (unsigned long long)k->said.rate);
	return false;
}

void admit_done(struct api_request *q)
{
	if (q->counted)
		--*(q->visits ? &q->counted->visits : &q->counted->calls);
	q->counted = NULL;
}

/* ---- strangers ---- */

static uint64_t stranger_wait(const struct api_request *q)
{
	return strangers_wait(&q->front->strangers, &http_request_peer(q->http)->ip,
			      clock_mono_ns());
}

static void refuse_often(struct api_request *q, uint64_t wait)
{
	http_request_last(q->http);
	api_refuse_until(q->http, wait, "auth.failures",
			 "too many requests of this address failed");
}

bool admit_stranger(struct api_request *q)
{
	uint64_t wait = stranger_wait(q);

	if (wait)
		refuse_often(q, wait);
	return wait == 0;
}

void admit_note_failure(struct api_request *q)
{
	strangers_note(&q->front->strangers, &http_request_peer(q->http)->ip, clock_mono_ns());
}

void admit_refuse(struct api_request *q, const char *why)
{
	uint64_t wait = stranger_wait(q);

	admit_note_failure(q);
	if (wait)
		refuse_often(q, wait);
	else
		api_refuse(q->http, 401, "%s", why);
}
