/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host/serve_restart.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/str.h"

enum { WAIT_S = 30, LOOK_MS = 50, ANSWER_MOST = 4096 };

static int connect_server(const char *path, struct err *e)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!str_copy(a.sun_path, sizeof a.sun_path, str_of(path)))
		return err_set(e, ERR_INVALID, "the path of the socket is too long: '%s'", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
		return err_set(e, ERR_UNAVAILABLE, "no server runs at '%s'", path);
	return TAKE_FD(fd);
}

/* How often the server was restarted; -1 if it does not say. */
static int64_t generation_of(const char *path)
{
	static const char ask[] =
		"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	static const char name[] = "\"generation\":";
	auto_done(buf_done) struct buf b = BUF_INIT(ANSWER_MOST);
	struct err ignored = { 0 };
	auto_close int fd = connect_server(path, &ignored);
	const char *at;

	if (fd < 0 || io_write_all(fd, ask, sizeof ask - 1) < 0 || io_read_all(fd, &b) < 0 ||
	    buf_add(&b, "", 1) < 0)
		return -1;
	at = strstr(b.data, name);
	return at ? (int64_t)strtoull(at + sizeof name - 1, NULL, 10) : -1;
}

/* The process that listens is the supervisor: it has had this pid from the beginning. */
static int signal_server(const char *path, struct err *e)
{
	auto_close int fd = connect_server(path, e), pidfd = FD_NONE;
	struct ucred who;
	socklen_t n = sizeof who;

	if (fd < 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
		return err_sys(e, errno, "find the server of '%s'", path);
	pidfd = who.pid > 1 ? (int)syscall(SYS_pidfd_open, who.pid, 0) : FD_NONE;
	if (pidfd < 0)
		return err_set(e, ERR_UNAVAILABLE, "cannot find the server of '%s'", path);
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGUSR2, NULL, 0) < 0)
		return err_sys(e, errno, "signal the server, process %d", (int)who.pid);
	return 0;
}

int serve_restart(const char *state_dir, const char *socket, struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
	uint64_t until = clock_mono_ns() + WAIT_S * NS_PER_S;
	char path[PATH_MAX];
	int64_t before;

	(void)snprintf(path, sizeof path, "%s/cay.sock", state_dir);
	if (!socket)
		socket = path;
	before = generation_of(socket);
	if (signal_server(socket, e) < 0)
		return -1;
	while (clock_mono_ns() < until) {
		int64_t now = generation_of(socket);

		if (now > before && now > 0)
			return 0;
		(void)nanosleep(&pause, NULL);
	}
	(void)err_set(e, ERR_FAILED, "the server at '%s' was not restarted within %d s", socket,
		      WAIT_S);
	return err_hint(e, "the server's own messages say why; the old program goes on");
}
