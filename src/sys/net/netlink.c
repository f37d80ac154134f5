/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/net/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/cleanup.h"

/* `size` bytes of the request, aligned and zeroed; NULL if it is full. */
static void *room(struct netlink *n, size_t size)
{
	size_t padded = NLMSG_ALIGN(size);
	void *at = n->data + n->len;

	if (n->full || padded < size || padded > sizeof n->data - n->len) {
		n->full = true;
		return NULL;
	}
	memset(at, 0, padded);
	n->len += padded;
	return at;
}

void netlink_begin(struct netlink *n, uint16_t type, uint16_t flags, const void *header,
		   size_t size)
{
	struct nlmsghdr *h;

	n->at = n->len;
	h = room(n, NLMSG_HDRLEN + size);
	if (!h)
		return;
	h->nlmsg_type = type;
	h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	h->nlmsg_seq = ++n->seq;
	memcpy((char *)h + NLMSG_HDRLEN, header, size);
	n->acks += (flags & NLM_F_ACK) != 0;
}

void netlink_end(struct netlink *n)
{
	if (!n->full)
		((struct nlmsghdr *)(void *)(n->data + n->at))->nlmsg_len =
			(uint32_t)(n->len - n->at);
}

void netlink_put(struct netlink *n, uint16_t type, const void *value, size_t size)
{
	struct nlattr *a = room(n, NLA_HDRLEN + size);

	if (!a)
		return;
	a->nla_type = type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + size);
	if (size)
		memcpy((char *)a + NLA_HDRLEN, value, size);
}

void netlink_text(struct netlink *n, uint16_t type, const char *text)
{
	netlink_put(n, type, text, strlen(text) + 1);
}

void netlink_u32(struct netlink *n, uint16_t type, uint32_t value)
{
	netlink_put(n, type, &value, sizeof value);
}

void netlink_be32(struct netlink *n, uint16_t type, uint32_t value)
{
	netlink_u32(n, type, htonl(value));
}

size_t netlink_nest(struct netlink *n, uint16_t type)
{
	size_t at = n->len;

	netlink_put(n, type | NLA_F_NESTED, NULL, 0);
	return at;
}

void netlink_unnest(struct netlink *n, size_t nest)
{
	if (!n->full)
		((struct nlattr *)(void *)(n->data + nest))->nla_len = (uint16_t)(n->len - nest);
}

int netlink_open(int family)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, family);

	return fd < 0 ? -errno : fd;
}

/* Count the answers in one datagram; or return the first refusal. */
static int take_answers(const char *data, size_t len)
{
	int acks = 0;

	while (len >= NLMSG_HDRLEN) {
		const struct nlmsghdr *h = (const void *)data;
		size_t step = NLMSG_ALIGN(h->nlmsg_len);

		if (h->nlmsg_len < NLMSG_HDRLEN || h->nlmsg_len > len)
			return -EBADMSG;
		if (h->nlmsg_type == NLMSG_ERROR) {
			const struct nlmsgerr *e = NLMSG_DATA(h);

			if (e->error)
				return e->error;
			acks++;
		}
		if (step >= len)
			break;
		data += step;
		len -= step;
	}
	return acks;
}

int netlink_talk(struct netlink *n, int fd)
{
	_Alignas(8) char answer[8192];

	if (n->full)
		return -EMSGSIZE;
	if (send(fd, n->data, n->len, 0) < 0)
		return -errno;
	while (n->acks > 0) {
		ssize_t got = recv(fd, answer, sizeof answer, 0);
		int r;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EBADMSG;
		r = take_answers(answer, (size_t)got);
		if (r < 0)
			return r;
		n->acks -= r;
	}
	n->len = 0;
	return 0;
}

int netlink_ask(int fd, const void *request, size_t size, void *answer, size_t room)
{
	const struct nlmsghdr *asked = request, *h = answer;

	if (send(fd, request, size, 0) < 0)
		return -errno;
	do {
		ssize_t got = recv(fd, answer, room, 0);

		if (got < 0)
			return -errno;
		if (!NLMSG_OK(h, (size_t)got))
			return -EBADMSG;
	} while (h->nlmsg_seq != asked->nlmsg_seq);
	return 0;
}
