/* SPDX-License-Identifier: Apache-2.0 */
#include "http/client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "wire/http_write.h"

enum { CLIENT_CHUNK = 16 * 1024, CLIENT_INTERIM = 8, CLIENT_HEAD = 64 * 1024 };

/* Wait until the socket is ready. 0, -ETIMEDOUT or -errno. */
static int client_wait(struct http_client *c, short events)
{
	struct pollfd p = { .fd = c->fd, .events = events };
	int timeout_ms = -1, n;

	do {
		if (c->deadline_ns) {
			uint64_t now = clock_mono_ns(), left;

			if (now >= c->deadline_ns)
				return -ETIMEDOUT;
			left = (c->deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS;
			timeout_ms = left > INT32_MAX ? INT32_MAX : (int)left;
		}
		n = poll(&p, 1, timeout_ms);
	} while (n == 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : 0;
}

static int client_shake(struct http_client *c)
{
	int r;

	if (!c->filter->ops->shake)
		return 0;
	while ((r = c->filter->ops->shake(c->filter, c->fd)) == -EAGAIN) {
		r = client_wait(c, c->filter->read_wants_write ? POLLOUT : POLLIN);
		if (r < 0)
			return r;
	}
	return r;
}

int http_client_init(struct http_client *c, int fd, struct http_filter *filter,
		     uint64_t deadline_ns)
{
	int r;

	*c = (struct http_client){ .fd = fd,
				   .filter = filter ? filter : http_filter_plain(),
				   .deadline_ns = deadline_ns,
				   .in = BUF_INIT(LIMIT_HTTP_HEAD),
				   .text = BUF_INIT(LIMIT_HTTP_HEAD),
				   .complete = true };
	r = io_set_nonblock(fd, true);
	if (r == 0)
		r = client_shake(c);
	if (r < 0)
		http_client_done(c);
	return r;
}

void http_client_done(struct http_client *c)
{
	if (c->filter) {
		c->filter->ops->shut(c->filter, c->fd);
		c->filter->ops->free(c->filter);
	}
	c->filter = NULL;
	fd_close(&c->fd);
	buf_done(&c->in);
	buf_done(&c->text);
}

static int client_send(struct http_client *c, struct str data)
{
	while (data.n) {
		ssize_t n = c->filter->ops->write(c->filter, c->fd, data.p, data.n);
		int r;

		if (n == -EAGAIN) {
			r = client_wait(c, c->filter->write_wants_read ? POLLIN : POLLOUT);
			if (r < 0)
				return r;
			continue;
		}
		if (n < 0)
			return (int)n;
		data.p += n;
		data.n -= (size_t)n;
	}
	return 0;
}

/* Bytes into p: their number, 0 at the end, -errno. */
static ssize_t client_receive(struct http_client *c, void *p, size_t n)
{
	for (;;) {
		ssize_t k = c->filter->ops->read(c->filter, c->fd, p, n);
		int r;

		if (k != -EAGAIN)
			return k;
		r = client_wait(c, c->filter->read_wants_write ? POLLOUT : POLLIN);
		if (r < 0)
			return r;
	}
}

/* More bytes behind those in c->in. -ENODATA at the end. */
static int client_fill(struct http_client *c)
{
	size_t room;
	ssize_t n;

	buf_shift(&c->in, c->taken);
	c->taken = 0;
	room = c->in.max - c->in.len;
	if (room == 0 || buf_reserve(&c->in, room) < 0)
		return -ENOMEM;
	n = client_receive(c, c->in.data + c->in.len, room);
	if (n <= 0)
		return n < 0 ? (int)n : -ENODATA;
	buf_grew(&c->in, (size_t)n);
	return 0;
}

static struct str client_unused(const struct http_client *c)
{
	return buf_behind(&c->in, c->taken);
}

static int client_head(struct http_client *c, struct str method)
{
	for (int i = 0; i < CLIENT_INTERIM;) {
		int64_t n = c->in.len > c->taken
				    ? http_response_parse(client_unused(c), method, &c->head)
				    : 0;
		int r;

		if (n < 0)
			return -EBADMSG;
		if (n == 0) {
			r = client_fill(c);
			if (r < 0)
				return r;
			continue;
		}
		buf_clear(&c->text);
		if (buf_add(&c->text, c->in.data + c->taken, (size_t)n) < 0)
			return -ENOMEM;
		c->taken += (size_t)n;
		(void)http_response_parse(buf_str(&c->text), method, &c->head);
		if (c->head.status == 101)
			return -EBADMSG;
		if (c->head.status >= 200)
			return 0;
		i++;
	}
	return -EBADMSG;
}

static int client_put(struct buf *b, struct str method, struct str host, struct str target,
		      const struct http_client_header *headers, size_t n, size_t body_n)
{
	int r = http_put_request(b, method, target);

	if (r == 0)
		r = http_put_header(b, "Host", host);
	if (r == 0)
		r = http_put_header(b, "Accept-Encoding", STR("identity"));
	for (size_t i = 0; i < n && r == 0; i++)
		r = http_put_header(b, headers[i].name, headers[i].value);
	/* A method that expects a body says so, even for an empty one (RFC 9110 8.6). */
	if (r == 0 && (body_n || str_is(method, "POST") || str_is(method, "PUT")))
		r = http_put_header_u64(b, "Content-Length", body_n);
	return r < 0 ? r : http_put_end(b);
}

int http_client_ask(struct http_client *c, struct str method, struct str host, struct str target,
		    const struct http_client_header *headers, size_t n, struct str body)
{
	auto_done(buf_done) struct buf b = BUF_INIT(CLIENT_HEAD);
	int r;

	if (!c->complete)
		return -EBUSY;
	c->complete = false;
	r = client_put(&b, method, host, target, headers, n, body.n);
	if (r == 0 && body.n <= CLIENT_CHUNK && buf_add_str(&b, body) == 0)
		body = STR_NONE;
	if (r == 0)
		r = client_send(c, buf_str(&b));
	if (r == 0)
		r = client_send(c, body);
	/* A server may answer and close before it has read everything. */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return r;
	r = client_head(c, method);
	if (r < 0)
		return r;
	http_body_init(&c->body, &c->head);
	c->complete = c->body.state == HTTP_S_DONE;
	return 0;
}

ssize_t http_client_read(struct http_client *c, void *p, size_t n)
{
	while (!c->complete) {
		struct str in = client_unused(c), data;
		size_t given = in.n < n ? in.n : n; /* so that the data fits */
		int r;

		in.n = given;
		r = http_body_next(&c->body, &in, &data);
		c->taken += given - in.n;
		if (r < 0)
			return r;
		c->complete = c->body.state == HTTP_S_DONE;
		if (data.n) {
			memcpy(p, data.p, data.n);
			return (ssize_t)data.n;
		}
		if (r == HTTP_END || c->taken < c->in.len)
			continue;
		r = client_fill(c);
		if (r == -ENODATA && http_body_eof(&c->body) == 0) {
			c->complete = true;
			c->head.keep_alive = false;
		} else if (r < 0) {
			return r == -ENODATA ? -EBADMSG : r;
		}
	}
	return 0;
}

int http_client_read_all(struct http_client *c, struct buf *b)
{
	ssize_t n;

	do {
		int r = buf_reserve(b, 1);
		size_t room;

		if (r < 0 && c->complete)
			return 0;
		if (r < 0)
			return r;
		room = b->max - b->len < CLIENT_CHUNK ? b->max - b->len : CLIENT_CHUNK;
		r = buf_reserve(b, room);
		if (r < 0)
			return r;
		n = http_client_read(c, b->data + b->len, room);
		if (n > 0)
			buf_grew(b, (size_t)n);
	} while (n > 0);
	return (int)n;
}

bool http_client_is_reusable(const struct http_client *c)
{
	return c->complete && c->head.keep_alive && c->in.len == c->taken;
}
