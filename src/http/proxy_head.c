/* SPDX-License-Identifier: Apache-2.0 */
#include "http/proxy_head.h"

#include <stdlib.h>

#include "wire/http_lines.h"
#include "wire/http_write.h"

enum { NAME_MOST = 128 };

/* RFC 9110 7.6.1, and what we write ourselves. */
static const char *const hop_by_hop[] = { "connection",
					  "keep-alive",
					  "proxy-connection",
					  "proxy-authenticate",
					  "proxy-authorization",
					  "te",
					  "trailer",
					  "transfer-encoding",
					  "upgrade",
					  "content-length",
					  NULL };
static const char *const of_requests[] = { "host", "expect", NULL };
static const char *const of_forwarding[] = { "forwarded", "x-forwarded-for", "x-forwarded-proto",
					     "x-forwarded-host", NULL };
static const char *const of_answers[] = { "date", NULL };

static bool is_in(struct str name, const char *const *names)
{
	for (; names && *names; names++)
		if (http_name_is(name, *names))
			return true;
	return false;
}

/* The sender names it in Connection: it is for this connection only. */
static bool is_named_by_connection(const struct http_head *h, struct str name)
{
	char text[NAME_MOST];

	return str_copy(text, sizeof text, name) && http_has_token(h, "connection", text);
}

static int put_header(struct buf *out, const struct http_header *h)
{
	char name[NAME_MOST];

	/* A name that long serves no purpose but to hide something. */
	return str_copy(name, sizeof name, h->name) ? http_put_header(out, name, h->value) : 0;
}

static int put_forwarded(struct buf *out, struct http_request *r,
			 const struct http_proxy_options *o)
{
	const struct str *host = http_request_header(r, "host");
	char ip[IP_TEXT];
	int err = http_put_header(out, "X-Forwarded-Proto", str_of(o->forwarded_proto));

	ip_text(&http_request_peer(r)->ip, ip);
	if (err == 0 && ip[0])
		err = http_put_header(out, "X-Forwarded-For", str_of(ip));
	if (err == 0 && host)
		err = http_put_header(out, "X-Forwarded-Host", *host);
	return err;
}

static int put_framing(struct buf *out, const struct http_head *h)
{
	const struct str *to = http_header(h, "upgrade");
	int err = 0;

	if (h->framing == HTTP_BODY_LENGTH)
		err = http_put_header_u64(out, "Content-Length", h->length);
	else if (h->framing == HTTP_BODY_CHUNKED)
		err = http_put_header(out, "Transfer-Encoding", STR("chunked"));
	else if (h->upgrade && to)
		err = http_put_header(out, "Upgrade", *to);
	if (err == 0 && h->framing == HTTP_BODY_NONE && h->upgrade && to)
		err = http_put_header(out, "Connection", STR("Upgrade"));
	return err;
}

/* An absolute target becomes a path: its host is in Host. */
static int put_line(struct buf *out, const struct http_request *r, const struct http_head *h,
		    struct str target)
{
	auto_done(buf_done) struct buf path = BUF_INIT(LIMIT_HTTP_HEAD);
	int err = 0;

	if (target.n || h->form != HTTP_ABSOLUTE)
		return http_put_request(out, r->method, target.n ? target : h->target);
	err = buf_add_str(&path, h->path);
	if (err == 0 && h->query.n)
		err = buf_printf(&path, "?%.*s", STR_ARG(h->query));
	return err < 0 ? err : http_put_request(out, r->method, buf_str(&path));
}

int proxy_put_request(struct buf *out, struct http_request *r, const struct http_proxy_options *o)
{
	const struct http_head *h = http_request_head(r);
	const struct str *host = http_header(h, "host");
	int err = put_line(out, r, h, o->target);

	if (err == 0 && (o->host.n || host))
		err = http_put_header(out, "Host", o->host.n ? o->host : *host);
	for (size_t i = 0; i < h->n && err == 0; i++) {
		struct str name = h->headers[i].name;

		if (is_in(name, hop_by_hop) || is_in(name, of_requests) || is_in(name, o->remove) ||
		    (o->forwarded_proto && is_in(name, of_forwarding)) ||
		    is_named_by_connection(h, name))
			continue;
		err = put_header(out, &h->headers[i]);
	}
	if (err == 0 && o->forwarded_proto)
		err = put_forwarded(out, r, o);
	if (err == 0)
		err = put_framing(out, http_request_head(r));
	return err < 0 ? err : http_put_end(out);
}

void proxy_copy_answer(struct http_request *r, const struct http_head *h)
{
	char name[NAME_MOST];

	for (size_t i = 0; i < h->n; i++) {
		if (is_in(h->headers[i].name, hop_by_hop) ||
		    is_in(h->headers[i].name, of_answers) ||
		    is_named_by_connection(h, h->headers[i].name))
			continue;
		if (str_copy(name, sizeof name, h->headers[i].name))
			http_answer_header(r, name, h->headers[i].value);
	}
}

int64_t proxy_length(const struct http_head *h, const struct http_request *r)
{
	const struct str *length = http_header(h, "content-length");
	char text[24];

	if (h->framing == HTTP_BODY_LENGTH)
		return (int64_t)h->length;
	/* An answer to HEAD tells the length of a body that does not follow; it was checked. */
	if (h->framing == HTTP_BODY_NONE && http_request_is(r, "HEAD"))
		return length && str_copy(text, sizeof text, *length) ? strtoll(text, NULL, 10)
								      : HTTP_LENGTH_UNKNOWN;
	return h->framing == HTTP_BODY_NONE ? 0 : HTTP_LENGTH_UNKNOWN;
}
