/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay-warden: `cay` starts it with the creator's socket on descriptor 3, the sandbox's lock on
 * descriptor 4 and the lock of its uid slot on 5. It takes no arguments; everything comes as
 * frames.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/process/normal.h"
#include "sys/process/raw.h"
#include "warden/warden.h"

enum { CREATOR_FD = 3, LOCK_FD = 4, SLOT_FD = 5 };

/* The parent leaves all signals blocked, and some may have been ignored before. */
static void default_signals(void)
{
	sigset_t none;

	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Leave the creator's terminal: no signals from it, no output to it. */
static int detach(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (dup2(null, i) < 0)
			return -errno;
	if (null > 2)
		(void)close(null);
	(void)setsid();
	(void)umask(022);
	return raw_close_range(SLOT_FD + 1, ~0u) < 0 ? -errno : 0;
}

/*
 * What a sandbox is must not depend on the process that asked for it. If this fails, sandboxes for
 * an owner inherit what we could not change, and pools get none (build_parse).
 */
static void become_normal(struct warden *w)
{
	struct normal n;

	w->not_normal = normal_plan(&n);
	if (w->not_normal == 0)
		w->not_normal = normal_enter(&n);
}

/*
 * Every process of the sandbox takes one of our descriptors, and every call four: raise our limit
 * to the maximum. Programs inside get the limit that we started with. If raising fails, continue.
 */
static void raise_files(struct warden *w)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur == l.rlim_max)
		return;
	w->spec.files = l.rlim_cur;
	l.rlim_cur = l.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &l) < 0)
		w->spec.files = 0;
}

/* SIGTERM, for example at shutdown: end the sandbox in the same way as for a client. */
static void on_signal(struct loop_io *io, uint32_t events)
{
	struct warden *w = container_of(io, struct warden, signal_io);
	struct signalfd_siginfo si;

	(void)events;
	/* Consume the signal, or it would end us when it is unblocked again (warden_leave). */
	if (read(io->fd, &si, sizeof si) != (ssize_t)sizeof si)
		return;
	if (sandbox_may_move(w->state, SANDBOX_ENDING))
		who_set(&w->ended_by, (int)si.ssi_pid, si.ssi_uid);
	warden_end(w, END_TOLD, "its warden was told to end");
}

static int watch_signals(struct warden *w)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : loop_add(&w->loop, &w->signal_io, fd, EPOLLIN, on_signal);
}

static bool is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

int main(int argc, char **argv)
{
	struct warden *w;

	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		printf("cay-warden %s\n", CAY_VERSION);
		return 0;
	}
	if (argc > 1 || !is_socket(CREATOR_FD)) {
		fprintf(stderr, "cay-warden: started by cay, not by hand; see cay-warden(8)\n");
		return 2;
	}
	default_signals();
	w = warden_new(driver_find("ns"));
	if (!w)
		return 1;
	w->lock_fd = LOCK_FD;
	become_normal(w);
	raise_files(w);
	if (detach() < 0 || fcntl(CREATOR_FD, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(LOCK_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(SLOT_FD, F_SETFD, FD_CLOEXEC) < 0)
		return 1;
	if (warden_open(w) < 0 || watch_signals(w) < 0 || client_adopt(w, CREATOR_FD, true) < 0)
		return 1;
	/* The build request is not here yet, but much of the place is known. */
	if (w->driver->prefetch)
		w->driver->prefetch();
	(void)loop_run(&w->loop);
	warden_leave(w);
}
