/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "sys/process/close_but.h"

enum { DETACH_MS = 6000 };

static void __attribute__((noreturn)) child(const struct tree *t, const char *slot, int fd)
{
	int keep[] = { fd, t->keel_fd };
	char word;
	int err;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (close_but(keep, (int)ARRAY_LEN(keep)) < 0 || fchdir(t->keel_fd) < 0 ||
	    io_read_exact(fd, &word, 1) < 0)
		_exit(1);
	err = umount2(slot, MNT_DETACH) < 0 ? errno : 0;
	(void)send(fd, &err, sizeof err, MSG_NOSIGNAL);
	_exit(0);
}

int detach_prepare(const struct tree *t, const char *slot)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		child(t, slot, pair[1]);
	(void)close(pair[1]);
	if (pid < 0) {
		int err = errno;

		(void)close(pair[0]);
		return -err;
	}
	return pair[0];
}

static bool is_detached(const struct tree *t, const char *slot)
{
	struct stat keel, st;

	return fstat(t->keel_fd, &keel) == 0 && fstatat(t->keel_fd, slot, &st, 0) == 0 &&
	       keel.st_dev == st.st_dev;
}

/* 1: the child has not answered. If it died, we do its work. */
static int take_answer(const char *slot, int fd)
{
	int err;
	ssize_t n = recv(fd, &err, sizeof err, MSG_DONTWAIT);

	if (n == (ssize_t)sizeof err)
		return -err;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 1;
	return umount2(slot, MNT_DETACH) < 0 ? -errno : 0;
}

int detach_run(const struct tree *t, const char *slot, int fd, int self)
{
	auto_close int mounts = openat(self, "mountinfo", O_RDONLY | O_CLOEXEC);
	uint64_t end = clock_mono_ns() + DETACH_MS * NS_PER_MS;

	if (mounts < 0)
		return -errno;
	(void)send(fd, "g", 1, MSG_NOSIGNAL);
	for (uint64_t now = clock_mono_ns(); now < end; now = clock_mono_ns()) {
		struct pollfd p[] = { { .fd = mounts, .events = POLLPRI },
				      { .fd = fd, .events = POLLIN } };
		int r;

		if (poll(p, 2, (int)((end - now) / NS_PER_MS) + 1) < 0 && errno != EINTR)
			return -errno;
		if (is_detached(t, slot))
			return 0;
		r = p[1].revents ? take_answer(slot, fd) : 1;
		if (r <= 0)
			return r;
	}
	return -ETIMEDOUT;
}
