/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of requests and responses. */
#include "wire/http1.h"

#include <errno.h>
#include <strings.h>

#include "wire/http_lines.h"

enum { HTTP_PORT = 80 };

/* Cut *s at its first blank and drop the blank. False if there is none. */
static bool cut_at_blank(struct str *s, struct str *ret)
{
	const char *blank = memchr(s->p, ' ', s->n);

	if (!blank)
		return false;
	*ret = (struct str){ s->p, (size_t)(blank - s->p) };
	s->p += ret->n + 1;
	s->n -= ret->n + 1;
	return true;
}

static void split_path(struct str target, struct http_head *h)
{
	const char *mark = target.n ? memchr(target.p, '?', target.n) : NULL;

	h->path = (struct str){ target.p, mark ? (size_t)(mark - target.p) : target.n };
	if (mark)
		h->query = (struct str){ mark + 1, target.n - h->path.n - 1 };
	if (h->path.n == 0)
		h->path = STR("/");
}

static int absolute_parse(struct http_head *h)
{
	static const struct str scheme = STR("http://");
	struct str rest = { h->target.p + scheme.n, h->target.n - scheme.n };
	size_t n = 0;

	while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
		n++;
	if (authority_parse((struct str){ rest.p, n }, &h->host, &h->port) < 0)
		return http_bad(h, "the target's authority is not host or host:port");
	h->form = HTTP_ABSOLUTE;
	h->has_host = true;
	split_path((struct str){ rest.p + n, rest.n - n }, h);
	return 0;
}

static int target_parse(struct http_head *h)
{
	for (size_t i = 0; i < h->target.n; i++)
		if (!http_is_target_byte((unsigned char)h->target.p[i]))
			return http_bad(h, "the target has an invalid byte");
	if (h->is_connect) {
		h->form = HTTP_AUTHORITY;
		if (authority_parse(h->target, &h->host, &h->port) < 0 || h->port == 0)
			return http_bad(h, "CONNECT needs host:port");
		h->has_host = true;
		return 0;
	}
	if (str_is(h->target, "*") && str_is(h->method, "OPTIONS")) {
		h->form = HTTP_ASTERISK;
		h->path = h->target;
		return 0;
	}
	if (h->target.n > 7 && strncasecmp(h->target.p, "http://", 7) == 0)
		return absolute_parse(h);
	if (h->target.n == 0 || h->target.p[0] != '/')
		return http_bad(h, "the target is neither a path nor an http URL");
	h->form = HTTP_ORIGIN;
	split_path(h->target, h);
	return 0;
}

static int request_line_parse(struct str line, struct http_head *h)
{
	int r;

	if (!cut_at_blank(&line, &h->method) || !http_is_token(h->method))
		return http_bad(h, "the method is not a token");
	if (!cut_at_blank(&line, &h->target))
		return http_bad(h, "the request line has no version");
	r = http_version_parse(line, h);
	if (r < 0)
		return r;
	h->is_connect = str_is(h->method, "CONNECT");
	return target_parse(h);
}

static uint16_t port_or(uint16_t port, uint16_t other)
{
	return port ? port : other;
}

static bool agrees(const struct http_head *h, const struct host *host, uint16_t port)
{
	if (!ip_eq(&h->host.ip, &host->ip) || strcmp(h->host.name, host->name) != 0)
		return false;
	if (h->is_connect)
		return port == 0 || port == h->port;
	return port_or(h->port, HTTP_PORT) == port_or(port, HTTP_PORT);
}

static int host_header_parse(struct http_head *h)
{
	const struct str *value = NULL;
	struct host host = { 0 };
	uint16_t port = 0;

	for (size_t i = 0; i < h->n; i++) {
		if (!http_name_is(h->headers[i].name, "host"))
			continue;
		if (value)
			return http_bad(h, "there are several Host headers");
		value = &h->headers[i].value;
	}
	if (!value)
		return h->minor == 0 ? 0 : http_bad(h, "there is no Host header");
	if (authority_parse(*value, &host, &port) < 0)
		return http_bad(h, "Host is not host or host:port");
	if (h->has_host && !agrees(h, &host, port))
		return http_bad(h, "Host and the target contradict each other");
	if (!h->has_host) {
		h->has_host = true;
		h->host = host;
		h->port = port;
	}
	return 0;
}

static int expect_parse(struct http_head *h)
{
	for (size_t i = 0; i < h->n; i++) {
		if (!http_name_is(h->headers[i].name, "expect"))
			continue;
		if (h->expect_continue || !http_name_is(h->headers[i].value, "100-continue")) {
			h->why = "Expect is something else than '100-continue'";
			return -ENOMSG;
		}
		h->expect_continue = true;
	}
	return 0;
}

static int request_parse(struct str head, struct http_head *h)
{
	bool has_body;
	int r = request_line_parse(http_line(&head), h);

	if (r == 0)
		r = http_headers_parse(head, h);
	if (r == 0)
		r = host_header_parse(h);
	if (r == 0)
		r = http_framing_parse(h, &has_body);
	if (r == 0 && h->is_connect && has_body)
		r = http_bad(h, "CONNECT has no body");
	if (r == 0)
		r = http_connection_parse(h);
	if (r == 0)
		r = expect_parse(h);
	return r;
}

int64_t http_request_parse(struct str in, struct http_head *ret)
{
	int64_t n;
	int r;

	memset(ret, 0, sizeof *ret);
	n = http_head_size(in, ret);
	if (n <= 0)
		return n;
	r = request_parse((struct str){ in.p, (size_t)n }, ret);
	return r < 0 ? r : n;
}

static int status_line_parse(struct str line, struct http_head *h)
{
	enum { DIGITS = 3 };
	struct str version = { line.p, line.n < 8 ? line.n : 8 };
	struct str rest = { line.p + version.n, line.n - version.n };
	int r = http_version_parse(version, h);

	if (r < 0)
		return r;
	if (rest.n < 1 + DIGITS || rest.p[0] != ' ')
		return http_bad(h, "the status line is malformed");
	for (int i = 1; i <= DIGITS; i++) {
		if (rest.p[i] < '0' || rest.p[i] > '9')
			return http_bad(h, "the status is not a number");
		h->status = h->status * 10 + (rest.p[i] - '0');
	}
	/* Many servers omit the blank if there is no reason phrase. */
	if (h->status < 100 || h->status > 599 ||
	    (rest.n > 1 + DIGITS && rest.p[1 + DIGITS] != ' '))
		return http_bad(h, "the status is not valid");
	if (rest.n > 2 + DIGITS)
		h->reason = (struct str){ rest.p + 2 + DIGITS, rest.n - 2 - DIGITS };
	for (size_t i = 0; i < h->reason.n; i++)
		if (!http_is_value_byte((unsigned char)h->reason.p[i]))
			return http_bad(h, "the reason has a control character");
	return 0;
}

/* RFC 9112 6.3: these have no body, whatever their headers say. */
static bool is_bodiless(const struct http_head *h, struct str method)
{
	return str_is(method, "HEAD") || h->status < 200 || h->status == 204 || h->status == 304 ||
	       (str_is(method, "CONNECT") && h->status < 300);
}

static int response_parse(struct str head, struct str method, struct http_head *h)
{
	bool found = false;
	int r = status_line_parse(http_line(&head), h);

	if (r == 0)
		r = http_headers_parse(head, h);
	if (r == 0)
		r = http_framing_parse(h, &found);
	if (r == 0)
		r = http_connection_parse(h);
	if (r < 0)
		return r;
	if (is_bodiless(h, method)) {
		h->framing = HTTP_BODY_NONE;
		h->length = 0;
	} else if (!found) {
		h->framing = HTTP_BODY_CLOSE;
		h->keep_alive = false;
	}
	return 0;
}

int64_t http_response_parse(struct str in, struct str method, struct http_head *ret)
{
	int64_t n;
	int r;

	memset(ret, 0, sizeof *ret);
	n = http_head_size(in, ret);
	if (n <= 0)
		return n;
	r = response_parse((struct str){ in.p, (size_t)n }, method, ret);
	return r < 0 ? r : n;
}

int http_error_status(int64_t err)
{
	switch (err) {
	case -E2BIG:
		return 431;
	case -EPROTO:
		return 505;
	case -EOPNOTSUPP:
		return 501;
	case -ENOMSG:
		return 417;
	default:
		return 400;
	}
}
