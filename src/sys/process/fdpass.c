/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/process/fdpass.h"

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
 * The kernel counts descriptors in flight per user, and another process may have used them up.
 * Retry for a bounded time.
 */
static bool may_pass_soon(int r, int *waited_ms)
{
	if (r != -ETOOMANYREFS || *waited_ms >= PATIENCE_MS)
		return false;
	(void)poll(NULL, 0, NAP_MS);
	*waited_ms += NAP_MS;
	return true;
}

static int send_once(int sock, const void *msg, size_t size, const int *fds, int nfds, int flags)
{
	union control ctl = { .bytes = { 0 } };
	struct iovec iov = { (void *)msg, size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
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
		n = sendmsg(sock, &m, flags | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EIO;
}

int fdpass_send(int sock, const void *msg, size_t size, const int *fds, int nfds)
{
	int r, waited_ms = 0;

	do {
		r = send_once(sock, msg, size, fds, nfds, 0);
	} while (may_pass_soon(r, &waited_ms));
	return r;
}

int fdpass_try(int sock, const void *msg, size_t size, const int *fds, int nfds)
{
	return send_once(sock, msg, size, fds, nfds, MSG_DONTWAIT);
}

/* The sender's pid as the kernel reports it; 0 if it is missing. */
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
	union fds_control ctl;
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
