/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a sandbox, whether its warden answers or not. */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "link/wait.h"
#include "sys/process/raw.h"

enum { DEATH_MS = 5000 };

/* The warden holds the sandbox's lock until it is really gone. */
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
 * A pidfd of the process that listens on the other end. Before Linux 6.5 the kernel tells only its
 * pid, which may be another process's by the time that it is opened: so the lock must be held after
 * that, by which the warden was alive all the time and had its pid.
 */
static int open_peer(const struct state *s, const char *id, int sock)
{
	enum { PEERPIDFD = 77 }; /* SO_PEERPIDFD, which old headers lack */
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

/* What was in its sandbox ends with it. */
static void kill_warden(const struct state *s, const char *id)
{
	auto_close int sock = FD_NONE, pidfd = FD_NONE;
	struct err ignored = { 0 };

	if (link_socket(s, id, &sock, &ignored) == 0)
		pidfd = open_peer(s, id, sock);
	if (pidfd >= 0)
		(void)raw_pidfd_signal(pidfd, SIGKILL);
}

/* It has answered, and left: it is about to end. */
static bool has_left(const struct link *l, const struct err *why)
{
	return link_version(l) && strcmp(why->code, "sandbox.gone") == 0;
}

int link_end_sandbox(struct waiter *w, const struct state *s, const char *id, struct err *e)
{
	auto_done(link_free) struct link *l = NULL;

	if (link_connect(w, s, id, &l, e) < 0)
		return -1;
	/* It answers, or it is gone, or it never will, as where it has no room for one more client,
	 * or speaks another version: in each case it has ended when its lock is free. */
	if (link_destroy(l, w, false, e) < 0 && !has_left(l, e) && state_is_alive(s, id))
		kill_warden(s, id);
	return await_death(w, s, id, e);
}
