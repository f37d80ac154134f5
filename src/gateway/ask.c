/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/ask.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fds.h"
#include "gateway/flow.h"
#include "gateway/gateway.h"

enum {
	BATCH = 64,					/* answers per turn */
	OUT_MOST = 2 * LIMIT_DIAL_ASKS * DIAL_ASK_SIZE, /* each ask and its cancellation */
};

static void watch(struct gateway *g)
{
	(void)loop_mod(&g->loop, &g->asker.io, EPOLLIN | (g->asker.out.len ? EPOLLOUT : 0));
}

static void send_waiting(struct gateway *g)
{
	struct asker *k = &g->asker;
	size_t at = 0;

	while (at < k->out.len &&
	       send(k->fd, k->out.data + at, DIAL_ASK_SIZE, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		at += DIAL_ASK_SIZE;
	buf_shift(&k->out, at);
	watch(g);
}

static int send_packet(struct gateway *g, const struct dial_ask *a)
{
	struct asker *k = &g->asker;
	uint8_t packet[DIAL_ASK_SIZE];
	int r;

	dial_ask_write(a, packet);
	if (k->out.len == 0) {
		if (send(k->fd, packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
			return 0;
		if (errno != EAGAIN)
			return -errno;
	}
	r = buf_add(&k->out, packet, sizeof packet);
	watch(g);
	return r;
}

int ask_send(struct gateway *g, struct dial_ask *a, uint32_t *ret_serial)
{
	int r;

	if (++g->asker.serial == 0)
		g->asker.serial = 1;
	a->serial = g->asker.serial;
	r = send_packet(g, a);
	if (r == 0)
		*ret_serial = a->serial;
	return r;
}

void ask_cancel(struct gateway *g, uint32_t slot, uint32_t *serial)
{
	const struct dial_ask a = { .kind = DIAL_ASK_CANCEL, .slot = slot, .serial = *serial };

	/* If this cannot be sent, the answer is dropped by its serial number. */
	if (*serial)
		(void)send_packet(g, &a);
	*serial = 0;
}

static void take_answer(struct gateway *g, const struct dial_answer *a, int fd)
{
	auto_close int owned = fd;
	struct flow *f;

	if (a->slot >= LIMIT_NET_FLOWS) {
		dns_answered(g, a);
		return;
	}
	f = g->flows[a->slot];
	if (!f || !f->asked || f->asked != a->serial)
		return; /* it was cancelled */
	f->asked = 0;
	flow_answered(f, a, TAKE_FD(owned));
}

static void on_answers(struct loop_io *io, uint32_t events)
{
	struct gateway *g = container_of(io, struct gateway, asker.io);

	if (events & EPOLLOUT)
		send_waiting(g);
	for (int i = 0; i < BATCH; i++) {
		char packet[DIAL_ANSWER_SIZE + 1];
		union {
			char bytes[CMSG_SPACE(sizeof(int))];
			struct cmsghdr align;
		} ctl;
		struct iovec iov = { packet, sizeof packet };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl };
		struct dial_answer a;
		int fd = FD_NONE;
		ssize_t n;

		m.msg_controllen = sizeof ctl;
		n = recvmsg(io->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) { /* the dialer ended: the warden ends the front too */
			loop_del(&g->loop, io);
			return;
		}
		(void)fds_take(&m, &fd, 1);
		if (dial_answer_read((struct str){ packet, (size_t)n }, &a) < 0)
			_exit(3);
		take_answer(g, &a, fd);
	}
}

int ask_begin(struct gateway *g, int fd)
{
	g->asker = (struct asker){ .fd = fd, .out = BUF_INIT(OUT_MOST) };
	return loop_add(&g->loop, &g->asker.io, fd, EPOLLIN, on_answers);
}
