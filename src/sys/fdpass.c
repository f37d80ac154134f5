/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/fdpass.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fds.h"

union control {
	char bytes[CMSG_SPACE(sizeof(int) * FDPASS_FDS)];
	struct cmsghdr align;
};

enum { PATIENCE_MS = 2000, NAP_MS = 5 };

/*
 * Descriptors under way are counted per user, and who has too many of them may be another: only
 * while it does, and not for ever.
 */
static bool may_pass_soon(int *waited_ms)
{
	if (errno != ETOOMANYREFS || *waited_ms >= PATIENCE_MS)
		return false;
	(void)poll(NULL, 0, NAP_MS);
	*waited_ms += NAP_MS;
	return true;
}

int fdpass_send(int sock, const void *msg, size_t size, const int *fds, int nfds)
{
	union control ctl = { .bytes = { 0 } };
	struct iovec iov = { (void *)msg, size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	int waited_ms = 0;
	ssize_t n;

	if (nfds > FDPASS_FDS)
		return -EMSGSIZE;
	if (nfds > 0) {
		size_t bytes = sizeof(int) * (size_t)nfds;

		m.msg_control = &ctl;
		m.msg_controllen = (socklen_t)CMSG_SPACE(bytes);
		ctl.align = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = (socklen_t)CMSG_LEN(bytes),
		};
		memcpy(CMSG_DATA(&ctl.align), fds, bytes);
	}
	do {
		n = sendmsg(sock, &m, MSG_NOSIGNAL);
	} while (n < 0 && (errno == EINTR || may_pass_soon(&waited_ms)));
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EIO;
}

/* The kernel's word for who sent it; 0 where there is none. */
static pid_t sender_of(struct msghdr *m)
{
	struct ucred who = { 0 };

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS &&
		    c->cmsg_len == CMSG_LEN(sizeof who))
			memcpy(&who, CMSG_DATA(c), sizeof who);
	return who.pid;
}

int fdpass_recv_from(int sock, void *msg, size_t size, int *fds, int max_fds, int *ret_nfds,
		     pid_t *ret_pid)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * FDPASS_FDS) + CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} ctl;
	struct iovec iov = { msg, size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl };
	ssize_t n;
	int came;

	m.msg_controllen = sizeof ctl;
	do {
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	came = fds_take(&m, fds, max_fds);
	*ret_nfds = came < max_fds ? came : max_fds;
	*ret_pid = n > 0 ? sender_of(&m) : 0;
	return (size_t)n == size ? 0 : -EPIPE;
}

int fdpass_recv(int sock, void *msg, size_t size, int *fds, int max_fds, int *ret_nfds)
{
	pid_t ignored;

	return fdpass_recv_from(sock, msg, size, fds, max_fds, ret_nfds, &ignored);
}

int fdpass_ask_sender(int sock)
{
	static const int on = 1;

	return setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ? -errno : 0;
}

int fdpass_recv_sender(int sock, pid_t *ret_pid)
{
	char byte;
	int n, r = fdpass_recv_from(sock, &byte, 1, NULL, 0, &n, ret_pid);

	return r == 0 && *ret_pid == 0 ? -EBADMSG : r;
}
