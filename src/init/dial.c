/* SPDX-License-Identifier: Apache-2.0 */
#include "init/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/cleanup.h"

static int dial_one(const struct sockaddr *to, socklen_t size)
{
	auto_close int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, to, size) < 0 && errno != EINPROGRESS)
		return -errno;
	return TAKE_FD(fd);
}

int dial_inside(uint16_t port)
{
	const struct sockaddr_in to4 = { .sin_family = AF_INET,
					 .sin_port = htons(port),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 to6 = { .sin6_family = AF_INET6,
					  .sin6_port = htons(port),
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = dial_one((const void *)&to4, sizeof to4);

	return fd >= 0 ? fd : dial_one((const void *)&to6, sizeof to6);
}
