/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/conn.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/io.h"

/* Reads start small and grow with the data: most connections never see a large frame. */
enum {
	READ_MIN = 2048,
	READ_CHUNK = LIMIT_FRAME_DATA + 4096,
	KEEP_IDLE = 4096,
	READS_PER_TURN = 4
};

#define PATIENCE_NS (5 * NS_PER_MS)

static void parcel_free(struct conn_parcel *p)
{
	for (int i = 0; i < p->n; i++)
		fds_close_sent(&p->fds[i]);
	free(p);
}

static void drop_first_parcel(struct conn *c)
{
	struct conn_parcel *p = c->parcels;

	c->parcels = p->next;
	if (!c->parcels)
		c->parcels_end = &c->parcels;
	parcel_free(p);
}

static void drop_output(struct conn *c)
{
	buf_clear(&c->out);
	while (c->parcels)
		drop_first_parcel(c);
}

void conn_done(struct conn *c)
{
	if (!c->loop)
		return;
	loop_del(c->loop, &c->io);
	loop_timer_stop(c->loop, &c->kick);
	loop_timer_stop(c->loop, &c->patience);
	if (c->hostile)
		fds_close_socket(&c->fd);
	else
		fd_close(&c->fd);
	drop_output(c);
	buf_done(&c->in);
	buf_done(&c->out);
	fds_discard(c->fdq, c->fdq_len);
	if (c->gone)
		*c->gone = true;
	c->loop = NULL;
}

int conn_release(struct conn *c)
{
	int fd;

	if (!c->loop)
		return -ENOTCONN;
	if (c->in.len || c->out.len || c->fdq_len)
		return -EBUSY;
	loop_del(c->loop, &c->io);
	fd = TAKE_FD(c->fd);
	conn_done(c);
	return fd;
}

/*
 * EPOLLHUP cannot be masked. During a hold it is edge-triggered, so that it arrives once and not
 * for ever. Above the mark we wait for writability even with nothing to send, to call `drained`.
 */
static void update_events(struct conn *c)
{
	bool sends = (c->out.len && !c->waits) || c->above;
	uint32_t want = (c->held ? EPOLLET : EPOLLIN) | (sends ? EPOLLOUT : 0);

	(void)loop_mod(c->loop, &c->io, want);
}

static int queue_fds(struct conn *c, const struct msghdr *m)
{
	int room = CONN_FDQ - c->fdq_len;
	int came = fds_take(m, c->fdq + c->fdq_len, room);

	c->fdq_len += came < room ? came : room;
	return came > room || came > LIMIT_FRAME_FDS || m->msg_flags & MSG_CTRUNC ? -EBADMSG : 0;
}

/* Returns bytes read, 0 at the end, or -errno. *ret_all: the socket is empty, wait for the loop. */
static ssize_t receive(struct conn *c, bool *ret_all)
{
	union fds_control ctl;
	struct iovec iov;
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl };
	size_t most = c->chunk ? c->chunk : READ_MIN;
	ssize_t n;
	int r = buf_reserve(&c->in, most);

	if (r < 0)
		return r;
	iov = (struct iovec){ c->in.data + c->in.len, most };
	m.msg_controllen = sizeof ctl;
	do {
		n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	buf_grew(&c->in, (size_t)n);
	*ret_all = n > 0 && (size_t)n < most;
	if ((size_t)n == most)
		c->chunk = 4 * most < READ_CHUNK ? 4 * most : READ_CHUNK;
	r = queue_fds(c, &m);
	return r < 0 ? r : n;
}

/* Deliver the complete frames. False if the connection is gone. */
static bool deliver(struct conn *c)
{
	bool gone = false;
	int err = 0;

	c->gone = &gone;
	while (!c->held && c->in.len > c->taken) {
		struct str rest = { c->in.data + c->taken, c->in.len - c->taken };
		struct frame f = { 0 };
		int fds[LIMIT_FRAME_FDS];
		int64_t n = frame_parse(rest, &f);

		if (n == 0)
			break;
		if (n < 0 || f.nfds > c->fdq_len) {
			err = n < 0 ? (int)n : -EBADMSG;
			break;
		}
		memcpy(fds, c->fdq, sizeof(int) * f.nfds);
		c->fdq_len -= f.nfds;
		memmove(c->fdq, c->fdq + f.nfds, sizeof(int) * (size_t)c->fdq_len);
		c->taken += (size_t)n;
		c->ops->frame(c, &f, fds);
		if (gone)
			return false;
	}
	c->gone = NULL;
	buf_shift(&c->in, c->taken);
	c->taken = 0;
	buf_trim(&c->in, KEEP_IDLE);
	if (err < 0)
		c->ops->closed(c, err);
	return err == 0;
}

/* 0 if something was sent, -EAGAIN, or another -errno. */
static int send_some(struct conn *c)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * LIMIT_FRAME_FDS)];
		struct cmsghdr align;
	} ctl = { .bytes = { 0 } };
	struct conn_parcel *p = c->parcels;
	struct iovec iov = { c->out.data, c->out.len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	bool with_fds = p && p->at == 0;
	ssize_t n;

	if (with_fds) {
		size_t size = sizeof(int) * (size_t)p->n;

		m.msg_control = &ctl;
		m.msg_controllen = (socklen_t)CMSG_SPACE(size);
		ctl.align = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = (socklen_t)CMSG_LEN(size),
		};
		memcpy(CMSG_DATA(&ctl.align), p->fds, size);
		p = p->next;
	}
	if (p) /* a parcel's descriptors must travel with the first byte of its frame */
		iov.iov_len = p->at;
	do {
		n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	buf_shift(&c->out, (size_t)n);
	if (with_fds)
		drop_first_parcel(c);
	for (p = c->parcels; p; p = p->next)
		p->at -= (size_t)n;
	return 0;
}

static bool is_peer_gone(int r)
{
	return r == -EPIPE || r == -ECONNRESET;
}

static void on_patience(struct loop_timer *t)
{
	conn_push(container_of(t, struct conn, patience));
}

static void send_later(struct conn *c)
{
	c->waits = true;
	loop_timer_set(c->loop, &c->patience, PATIENCE_NS, on_patience);
}

/* Drops unsent bytes if the peer no longer reads. The peer's last frames are still delivered. */
static int send_all(struct conn *c)
{
	int r = 0;

	if (c->waits)
		loop_timer_stop(c->loop, &c->patience);
	c->waits = false;
	while (c->out.len && r == 0)
		r = send_some(c);
	if (is_peer_gone(r))
		drop_output(c);
	buf_trim(&c->out, KEEP_IDLE);
	/*
	 * The kernel counts descriptors in flight per user, so another sandbox of the same user may
	 * have used them up. No event reports when the count falls: retry later.
	 */
	if (r == -ETOOMANYREFS)
		send_later(c);
	return r == -EAGAIN || r == -ETOOMANYREFS ? 0 : r;
}

/* False if the connection is gone. */
static bool on_writable(struct conn *c)
{
	bool gone = false;
	int r = send_all(c);

	if (r < 0 && !is_peer_gone(r)) {
		c->ops->closed(c, r);
		return false;
	}
	if (!c->above || c->out.len >= LIMIT_CONN_HIGH)
		return true;
	c->above = false;
	if (!c->ops->drained)
		return true;
	c->gone = &gone;
	c->ops->drained(c);
	if (!gone)
		c->gone = NULL;
	return !gone;
}

/* Delivers the frames from before a hold first, then reads more, then reports the end. */
static bool on_readable(struct conn *c)
{
	bool all = false;

	if (!deliver(c))
		return false;
	for (int i = 0; i < READS_PER_TURN && !c->held && !all; i++) {
		ssize_t n = receive(c, &all);

		if (n == -EAGAIN) {
			buf_trim(&c->in, KEEP_IDLE);
			return true;
		}
		if (n <= 0) {
			c->ops->closed(c, (int)n);
			return false;
		}
		if (!deliver(c))
			return false;
	}
	return true;
}

static void on_event(struct loop_io *io, uint32_t events)
{
	struct conn *c = container_of(io, struct conn, io);

	if (events & EPOLLOUT && !on_writable(c))
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !on_readable(c))
		return;
	update_events(c);
}

static void on_kick(struct loop_timer *t)
{
	struct conn *c = container_of(t, struct conn, kick);

	if (deliver(c))
		update_events(c);
}

int conn_init(struct conn *c, struct loop *l, int fd, const struct conn_ops *ops)
{
	int r;

	*c = (struct conn){
		.loop = l,
		.ops = ops,
		.fd = fd,
		.in = BUF_INIT(LIMIT_FRAME_BODY + 2 * READ_CHUNK),
		.out = BUF_INIT(LIMIT_CONN_OUT),
	};
	c->parcels_end = &c->parcels;
	r = io_set_nonblock(fd, true);
	if (r == 0)
		r = loop_add(l, &c->io, fd, EPOLLIN, on_event);
	if (r < 0)
		conn_done(c);
	return r;
}

int conn_begin(struct conn *c, uint8_t type, uint32_t chan, size_t *ret_at)
{
	return c->loop ? frame_begin(&c->out, type, chan, ret_at) : -ENOTCONN;
}

static int add_parcel(struct conn *c, size_t at, const int *fds, int nfds)
{
	struct conn_parcel *p = calloc(1, sizeof *p);

	if (!p)
		return -ENOMEM;
	p->at = at;
	p->n = nfds;
	memcpy(p->fds, fds, sizeof(int) * (size_t)nfds);
	*c->parcels_end = p;
	c->parcels_end = &p->next;
	return 0;
}

void conn_push(struct conn *c)
{
	(void)send_all(c); /* the loop will see the broken socket and call closed() */
	c->above |= c->out.len >= LIMIT_CONN_HIGH;
	update_events(c);
}

int conn_end(struct conn *c, size_t at, const int *fds, int nfds)
{
	int r = nfds > LIMIT_FRAME_FDS ? -EMSGSIZE : frame_end(&c->out, at, (uint8_t)nfds);

	if (r == 0 && nfds > 0)
		r = add_parcel(c, at, fds, nfds);
	if (r < 0) {
		for (int i = 0; i < nfds; i++) {
			int fd = fds[i];

			fds_close_sent(&fd);
		}
		conn_cancel(c, at);
		return r;
	}
	conn_push(c);
	return 0;
}

void conn_cancel(struct conn *c, size_t at)
{
	buf_cut(&c->out, at);
}

int conn_send(struct conn *c, uint8_t type, uint32_t chan, struct str body)
{
	size_t at = 0;
	int r = conn_begin(c, type, chan, &at);

	if (r < 0)
		return r;
	r = buf_add_str(&c->out, body);
	if (r < 0) {
		conn_cancel(c, at);
		return r;
	}
	return conn_end(c, at, NULL, 0);
}

ssize_t conn_send_read(struct conn *c, uint8_t type, uint32_t chan, int fd, size_t most)
{
	size_t at = c->out.len;
	ssize_t n;
	int r = conn_begin(c, type, chan, &at);

	if (r == 0)
		r = buf_reserve(&c->out, most);
	if (r < 0) {
		conn_cancel(c, at);
		return r;
	}
	n = read(fd, c->out.data + c->out.len, most);
	if (n <= 0) {
		r = n < 0 ? -errno : 0;
		conn_cancel(c, at);
		return r;
	}
	buf_grew(&c->out, (size_t)n);
	r = conn_end(c, at, NULL, 0);
	return r < 0 ? r : n;
}

static int begin_with(struct conn *c, uint8_t type, uint32_t chan, const struct conn_field *fields,
		      int n, size_t *ret_at)
{
	int r = conn_begin(c, type, chan, ret_at);

	if (r < 0)
		return r;
	for (int i = 0; i < n && r == 0; i++)
		r = fields[i].text ? field_put_c(&c->out, fields[i].tag, fields[i].text)
				   : field_put_u64(&c->out, fields[i].tag, fields[i].number);
	if (r < 0)
		conn_cancel(c, *ret_at);
	return r;
}

int conn_say(struct conn *c, uint8_t type, uint32_t chan, const struct conn_field *fields, int n)
{
	size_t at = 0;
	int r = begin_with(c, type, chan, fields, n, &at);

	return r < 0 ? r : conn_end(c, at, NULL, 0);
}

int conn_end_later(struct conn *c, size_t at)
{
	bool company = at > 0 && !c->waits; /* a frame that is sent soon takes this one along */
	int r = frame_end(&c->out, at, 0);

	if (r < 0)
		conn_cancel(c, at);
	if (r < 0 || company || c->waits)
		return r;
	send_later(c);
	return 0;
}

int conn_mention(struct conn *c, uint8_t type, uint32_t chan, const struct conn_field *fields,
		 int n)
{
	size_t at = 0;
	int r = begin_with(c, type, chan, fields, n, &at);

	return r < 0 ? r : conn_end_later(c, at);
}

size_t conn_backlog(const struct conn *c)
{
	return c->out.len;
}

void conn_hold(struct conn *c, bool hold)
{
	if (c->held && !hold &&
	    c->in.len) /* these frames arrived before the hold; no event reports them */
		loop_timer_set(c->loop, &c->kick, 0, on_kick);
	c->held = hold;
	update_events(c);
}

int conn_flush(struct conn *c, int timeout_ms)
{
	uint64_t start_ns = clock_mono_ns();

	while (c->out.len) {
		struct pollfd p = { .fd = c->fd, .events = POLLOUT };
		int spent_ms = (int)((clock_mono_ns() - start_ns) / NS_PER_MS);
		int r = spent_ms > timeout_ms ? 0 : poll(&p, 1, timeout_ms - spent_ms);

		if (r == 0)
			return -ETIMEDOUT;
		if (r < 0 && errno != EINTR)
			return -errno;
		r = send_all(c);
		if (r < 0)
			return r;
	}
	return 0;
}

int conn_drain(struct conn *c, int timeout_ms)
{
	uint64_t end_ns = clock_mono_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	uint64_t now_ns;

	if (shutdown(c->fd, SHUT_WR) < 0)
		return -errno;
	while ((now_ns = clock_mono_ns()) < end_ns) {
		struct pollfd p = { .fd = c->fd, .events = POLLIN };
		int r = poll(&p, 1, (int)((end_ns - now_ns) / NS_PER_MS) + 1);

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0 && !on_readable(c))
			return 0;
	}
	return -ETIMEDOUT;
}
