/* SPDX-License-Identifier: Apache-2.0 */
#include "link/client_many.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { TOGETHER = 128, ANSWER_MAX = 64 * 1024, CHUNK = 4096 };

/* One warden in a round of questions. */
struct asked {
	struct client_question *q;
	struct buf in;
};

struct round {
	struct pollfd fds[TOGETHER];
	struct asked asked[TOGETHER];
	int n, open;
};

/* A warden of version 2 sends no hello: its first frame is the answer. */
static int put_hello(struct buf *b)
{
	size_t at = 0;
	int r = frame_begin(b, MSG_C_HELLO, 0, &at);

	if (r == 0)
		r = field_put_u64(b, TAG_VERSION, PROTO_CLIENT_OLDEST);
	return r < 0 ? r : frame_end(b, at, 0);
}

static bool send_question(int fd)
{
	auto_done(buf_done) struct buf b = BUF_INIT(256);

	return put_hello(&b) == 0 && frame_put(&b, MSG_C_INFO, 1, STR_NONE) == 0 &&
	       send(fd, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len;
}

static void begin_one(struct round *r, const struct state *s, struct client_question *q)
{
	struct err ignored = { 0 };
	int fd = FD_NONE;

	/* Skip a warden that does not accept: it is stopped, and its queue is full. */
	(void)link_socket(s, q->id, &fd, &ignored);
	if (fd >= 0 && !send_question(fd))
		fd_close(&fd);
	if (fd < 0)
		return;
	r->fds[r->n] = (struct pollfd){ .fd = fd, .events = POLLIN };
	r->asked[r->n] = (struct asked){ .q = q, .in = BUF_INIT(ANSWER_MAX) };
	r->n++;
	r->open++;
}

static void end_one(struct round *r, int i)
{
	(void)close(r->fds[i].fd);
	r->fds[i].fd = -1; /* poll(2) skips it */
	buf_done(&r->asked[i].in);
	r->open--;
}

/* True if the answer is complete. */
static bool read_answer(struct asked *a, int fd)
{
	struct frame f;
	int64_t used;
	ssize_t got;

	if (buf_reserve(&a->in, CHUNK) < 0)
		return true;
	got = read(fd, a->in.data + a->in.len, CHUNK);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0)
		return true;
	buf_grew(&a->in, (size_t)got);
	used = frame_parse(buf_str(&a->in), &f);
	if (used == 0)
		return false;
	a->q->known = used > 0 && f.type == MSG_C_STATE;
	if (a->q->known)
		decode_status(&f, &a->q->state);
	return true;
}

static void wait_for_answers(struct round *r, int timeout_ms)
{
	uint64_t end = clock_mono_ns() + (uint64_t)timeout_ms * NS_PER_MS;

	while (r->open) {
		uint64_t now = clock_mono_ns();

		if (now >= end ||
		    poll(r->fds, (nfds_t)r->n, (int)((end - now) / NS_PER_MS) + 1) == 0)
			break;
		for (int i = 0; i < r->n; i++)
			if (r->fds[i].fd >= 0 && r->fds[i].revents &&
			    read_answer(&r->asked[i], r->fds[i].fd))
				end_one(r, i);
	}
	for (int i = 0; i < r->n; i++)
		if (r->fds[i].fd >= 0)
			end_one(r, i);
}

void client_info_many(const struct state *s, struct client_question *qs, int n, int timeout_ms)
{
	struct round r;

	for (int at = 0; at < n;) {
		r.n = r.open = 0;
		for (; at < n && r.n < TOGETHER; at++)
			if (qs[at].id)
				begin_one(&r, s, &qs[at]);
		wait_for_answers(&r, timeout_ms);
	}
}
