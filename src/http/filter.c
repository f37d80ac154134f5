/* SPDX-License-Identifier: Apache-2.0 */
#include "http/filter.h"

#include <errno.h>
#include <sys/socket.h>

static ssize_t plain_read(struct http_filter *f, int fd, void *p, size_t n)
{
	ssize_t r;

	(void)f;
	do
		r = recv(fd, p, n, MSG_DONTWAIT);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static ssize_t plain_write(struct http_filter *f, int fd, const void *p, size_t n)
{
	ssize_t r;

	(void)f;
	do
		r = send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static bool plain_pending(const struct http_filter *f)
{
	(void)f;
	return false;
}

static void plain_shut(struct http_filter *f, int fd)
{
	(void)f;
	(void)fd;
}

static void plain_free(struct http_filter *f)
{
	(void)f;
}

struct http_filter *http_filter_plain(void)
{
	static const struct http_filter_ops ops = {
		.read = plain_read,
		.write = plain_write,
		.pending = plain_pending,
		.shut = plain_shut,
		.free = plain_free,
	};
	static struct http_filter plain = { .ops = &ops };

	return &plain;
}
