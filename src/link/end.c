/* SPDX-License-Identifier: Apache-2.0 */
/* End a sandbox, whether or not its warden answers. */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "link/wait.h"
#include "sys/process/raw.h"

enum { DEATH_MS = 5000 };

/* Wait for the sandbox's lock: the warden holds it until its process is gone. */
static int await_death(struct waiter *w, const struct state *s, const char *id, struct err *e)
{
	uint64_t end = clock_mono_ns() + DEATH_MS * NS_PER_MS;

	while (state_is_alive(s, id))
		if (clock_mono_ns() > end || wait_pause(w, NS_PER_MS) < 0)
			return err_set(e, ERR_TIMEOUT, "the warden of sandbox '%s' does not end",
				       id);
	return 0;
}

/*
 * A pidfd of the process that listens on the other end. Before Linux 6.5 the kernel gives only the
 * pid, and another process may get that pid before we open it. So check the lock after opening: if
 * the warden still holds it, the warden was alive all the time and the pid is its own.
 */
static int open_peer(const struct state *s, const char *id, int sock)
{
	enum { PEERPIDFD = 77 }; /* SO_PEERPIDFD, missing in old headers */
	struct ucred peer = { 0 };
	socklen_t n = sizeof(int);
	int pidfd = FD_NONE;

	if (getsockopt(sock, SOL_SOCKET, PEERPIDFD, &pidfd, &n) == 0)
		return pidfd;
	n = sizeof peer;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.pid <= 0)
		return FD_NONE;
	pidfd = raw_pidfd_open(peer.pid);
	if (pidfd >= 0 && !state_is_alive(s, id))
		fd_close(&pidfd);
	return pidfd;
}

/* Every process in the sandbox ends with the warden. */
static void kill_warden(const struct state *s, const char *id)
{
	auto_close int sock = FD_NONE, pidfd = FD_NONE;
	struct err ignored = { 0 };

	if (link_socket(s, id, &sock, &ignored) == 0)
		pidfd = open_peer(s, id, sock);
	if (pidfd >= 0)
		(void)raw_pidfd_signal(pidfd, SIGKILL);
}

/* The warden has answered and closed the connection: it is about to end. */
static bool has_left(const struct link *l, const struct err *why)
{
	return link_version(l) && strcmp(why->code, "sandbox.gone") == 0;
}

int link_end_sandbox(struct waiter *w, const struct state *s, const char *id, struct err *e)
{
	auto_done(link_free) struct link *l = NULL;

	if (link_connect(w, s, id, &l, e) < 0)
		return -1;
	/* The warden may answer, be gone already, or never answer: it has too many clients, or
	 * speaks another version. In each case it has ended when its lock is free. */
	if (link_destroy(l, w, false, e) < 0 && !has_left(l, e) && state_is_alive(s, id))
		kill_warden(s, id);
	return await_death(w, s, id, e);
}
