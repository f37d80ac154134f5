/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a socket whose last close(2) would block for a minute, and how to pass it. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "t.h"

enum { LINGER_S = 60, SOON_S = 5 };

static int reader = FD_NONE; /* the other end, which never reads */

/* A TCP socket whose last close(2) blocks for LINGER_S. */
static inline int lingering(void)
{
	const struct linger on = { 1, LINGER_S };
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;
	static char data[65536];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && bind(server, (void *)&at, n) == 0 && listen(server, 1) == 0);
	CHECK(getsockname(server, (void *)&at, &n) == 0 && connect(fd, (void *)&at, n) == 0);
	reader = accept(server, NULL, NULL);
	CHECK(reader >= 0 && close(server) == 0);
	while (send(fd, data, sizeof data, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	CHECK(errno == EAGAIN);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof on) == 0);
	return fd;
}

/* Read from the kernel: tests of a warden replace the clock. */
static time_t began;

static inline time_t seconds(void)
{
	struct timespec now;

	CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return now.tv_sec;
}

static inline void begin_now(void)
{
	began = seconds();
}

static inline void check_soon(void)
{
	CHECK(seconds() - began < SOON_S);
}

static inline void put_fds(int sock, const int *fds, int n)
{
	static union fds_control ctl;
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl };

	m.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n);
	ctl.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS,
				      .cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n) };
	memcpy(CMSG_DATA(&ctl.align), fds, sizeof(int) * (size_t)n);
	CHECK(sendmsg(sock, &m, 0) == 1);
}
