/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access_tell.h"

#include "api/access_log.h"
#include "api/front.h"
#include "base/clock.h"

/* A client can write anything as a method. */
static const char *method_of(const struct http_request *r)
{
	static const char *const known[] = { "GET",   "POST", "PUT",	"DELETE",
					     "PATCH", "HEAD", "OPTIONS" };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (http_request_is(r, known[i]))
			return known[i];
	return "other";
}

static void put_address(struct access_record *a, const struct http_peer *peer)
{
	char text[IP_TEXT];

	if (peer->local) {
		(void)str_copy(a->address, sizeof a->address, STR("unix"));
		return;
	}
	ip_text(&peer->ip, text);
	(void)str_copy(a->address, sizeof a->address, str_of(text));
}

static void fill(struct access_record *a, const struct api_request *q, const char *route)
{
	(void)str_copy(a->request, sizeof a->request, str_of(q->request));
	(void)str_copy(a->method, sizeof a->method, str_of(method_of(q->http)));
	(void)str_copy(a->route, sizeof a->route, str_of(route));
	(void)str_copy(a->key, sizeof a->key, str_of(q->who.owner));
	/* Whatever else stands in the path is the client's text. */
	if (state_id_ok(q->id))
		(void)str_copy(a->sandbox, sizeof a->sandbox, str_of(q->id));
	put_address(a, http_request_peer(q->http));
	a->status = (uint64_t)q->http->status;
	a->us = (clock_mono_ns() - q->http->began_ns) / NS_PER_US;
	a->bytes_in = q->http->bytes_in;
	a->bytes_out = q->http->bytes_out;
}

void access_tell(const struct api_request *q, const char *route)
{
	struct access_record a = { 0 };
	struct front *f = q->front;
	size_t at = 0;

	if (!f->logs)
		return;
	/* The supervisor waits for a disk: requests do not. */
	if (conn_backlog(&f->control) > LIMIT_CONN_HIGH) {
		f->log_dropped++;
		return;
	}
	fill(&a, q, route);
	a.dropped = f->log_dropped;
	if (conn_begin(&f->control, F_LOG, 0, &at) < 0)
		return;
	if (access_record_put(&f->control.out, &a) < 0) {
		conn_cancel(&f->control, at);
		f->log_dropped++;
		return;
	}
	if (conn_end_later(&f->control, at) == 0)
		f->log_dropped = 0;
}
