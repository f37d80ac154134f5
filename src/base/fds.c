/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fds.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { STACK = 16 * 1024, DRAIN_MOST = 4096 };

/* A child that holds descriptors until we have closed ours. It uses a stack in our own memory. */
struct holder {
	pid_t pid;
	uint32_t done;
};

static int hold_until_done(void *arg)
{
	struct holder *h = arg;

	while (!__atomic_load_n(&h->done, __ATOMIC_ACQUIRE))
		(void)syscall(SYS_futex, &h->done, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	_exit(0);
}

/*
 * Without an exit signal, so that nothing else notices the child. One stack is enough for one
 * thread.
 */
static void holder_start(struct holder *h)
{
	static char stack[STACK] __attribute__((aligned(16)));
	sigset_t all, old;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all,
			  &old); /* our signal handlers must not run in the child */
	h->pid = clone(hold_until_done, stack + sizeof stack, CLONE_VM, h);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
}

static void holder_end(struct holder *h)
{
	if (h->pid < 0)
		return;
	__atomic_store_n(&h->done, 1, __ATOMIC_RELEASE);
	(void)syscall(SYS_futex, &h->done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	while (waitpid(h->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

static bool is_socket(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

/*
 * An exiting process never lingers (inet_release in the kernel): so a child closes the sockets
 * last.
 */
static void close_sockets(int *fds, int n)
{
	static const struct linger off = { 0 };
	struct holder h = { .pid = -1 };

	/*
	 * If no child can be started, clearing SO_LINGER is all we can do; a sender with a copy
	 * could set it again.
	 */
	for (int i = 0; i < n; i++)
		(void)setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &off, sizeof off);
	holder_start(&h);
	for (int i = 0; i < n; i++)
		fd_close(&fds[i]);
	holder_end(&h);
}

void fds_discard(int *fds, int n)
{
	int saved = errno;
	bool sockets = false;

	for (int i = 0; i < n; i++)
		sockets |= is_socket(fds[i]);
	if (sockets)
		close_sockets(fds, n);
	for (int i = 0; i < n; i++)
		fd_close(&fds[i]);
	errno = saved;
}

void fds_close_sent(int *fd)
{
	int domain = AF_UNSPEC;
	socklen_t n = sizeof domain;

	if (getsockopt(*fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
	    (domain == AF_INET || domain == AF_INET6))
		fds_discard(fd, 1);
	else
		fd_close(fd);
}

int fds_take(const struct msghdr *m, int *fds, int room)
{
	int came = 0, rest[FDS_MOST], nrest = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR((struct msghdr *)m, h)) {
		size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
			if (came++ < room)
				fds[came - 1] = fd;
			else if (nrest < FDS_MOST)
				rest[nrest++] = fd;
		}
	}
	fds_discard(rest, nrest);
	return came;
}

/* True if there was a message. */
static bool drop_message(int sock)
{
	union fds_control ctl;
	char bytes[4096];
	struct iovec iov = { bytes, sizeof bytes };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl };
	ssize_t n;

	m.msg_controllen = sizeof ctl;
	n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EINTR;
	(void)fds_take(&m, NULL, 0);
	return n > 0 || m.msg_controllen > 0;
}

void fds_close_socket(int *sock)
{
	int saved = errno;

	if (*sock >= 0) {
		(void)shutdown(*sock, SHUT_RD); /* nothing more can arrive */
		for (int i = 0; i < DRAIN_MOST && drop_message(*sock); i++)
			;
	}
	fd_close(sock);
	errno = saved;
}
