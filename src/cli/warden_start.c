/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/warden_start.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "wire/proto.h"

/* Where it finds what it is given. */
enum { WARDEN_SOCKET = 3, WARDEN_LOCK, WARDEN_SLOT };

/* Our companions lie beside us in a build directory, and in libexec where installed. */
int warden_find(char *out, size_t size, char *program, struct err *e)
{
	static const char *const places[] = { "cay-warden", "../libexec/cay/cay-warden" };
	ssize_t n = readlink("/proc/self/exe", program, LIMIT_PATH - 1);
	char *slash;

	if (n < 0)
		return err_sys(e, errno, "find our own program");
	program[n] = '\0';
	slash = strrchr(program, '/');
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		(void)snprintf(out, size, "%.*s/%s", (int)(slash - program), program, places[i]);
		if (access(out, X_OK) == 0)
			return 0;
	}
	(void)err_set(e, ERR_FAILED, "cay-warden is missing beside '%s'", program);
	return err_hint(e, "install all of cay, or build it with: make");
}

/* What a new warden starts with. */
struct warden_birth {
	char path[LIMIT_PATH + 32];
	char state[sizeof((struct state *)0)->dir + 16], id[ID_SIZE + 32];
	char program[LIMIT_PATH + 32], keep[64];
	char *envp[5]; /* what `cay settle` needs, which the warden becomes where we are gone */
	int from[3];   /* socket, lock and slot */
	int gone_fd;   /* its end: it uses our memory no more */
	int failed;    /* errno */
	char stack[8192] __attribute__((aligned(16)));
};

/*
 * In our memory, while we go on: it touches nothing but this birth, which stays as it is until it
 * is gone, and descriptors of its own. (errno, which is ours, it sets only where it fails.)
 */
static int become_warden(void *arg)
{
	char *argv[] = { "cay-warden", NULL };
	struct warden_birth *b = arg;

	for (int i = 0; i < (int)ARRAY_LEN(b->from); i++)
		if (dup2(b->from[i], WARDEN_SOCKET + i) < 0) {
			b->failed = errno;
			return 1;
		}
	(void)execve(b->path, argv, b->envp);
	b->failed = errno;
	return 1;
}

/*
 * As posix_spawn(3) does it, without its 130 system calls for signals: the warden puts right
 * itself what it inherits, and until then all are blocked. Nor is its exec waited for, which takes
 * a third of a millisecond: who wants to know how it went asks warden_started().
 */
static pid_t bear(struct warden_birth *b)
{
	sigset_t all, before;
	pid_t pid;
	int err;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone(become_warden, b->stack + sizeof b->stack, CLONE_VM | SIGCHLD, b);
	err = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid < 0 ? -err : pid;
}

/* dup2 onto its own number would leave CLOEXEC on: keep the sources above the targets. */
static int above(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, WARDEN_SLOT + 1);

	return moved < 0 ? -errno : moved;
}

static int spawn(struct newborn *n, int sock, int gone, struct err *e)
{
	auto_close int sock2 = above(sock), lock2 = above(n->lock_fd);
	auto_close int slot2 = above(n->slot_fd >= 0 ? n->slot_fd : n->lock_fd);
	auto_close int gone2 = above(gone); /* or it would be closed by another's arrival */
	struct warden_birth *b = n->birth;
	pid_t pid;

	if (sock2 < 0 || lock2 < 0 || slot2 < 0 || gone2 < 0)
		return err_sys(e, EMFILE, "start the warden");
	b->from[0] = sock2;
	b->from[1] = lock2;
	b->from[2] = slot2;
	pid = bear(b);
	if (pid < 0)
		return err_sys(e, -pid, "start '%s'", b->path);
	n->warden_pid = pid;
	return 0;
}

static struct warden_birth *birth_new(const struct newborn *n, const char *warden)
{
	struct warden_birth *b = calloc(1, sizeof *b);
	const char *ended = getenv("CAY_KEEP_ENDED");

	if (!b)
		return NULL;
	b->gone_fd = FD_NONE;
	(void)snprintf(b->path, sizeof b->path, "%s", warden);
	(void)snprintf(b->state, sizeof b->state, "CAY_STATE=%s", n->state.dir);
	(void)snprintf(b->id, sizeof b->id, WARDEN_ENV_ID "=%s", n->row.id);
	(void)snprintf(b->program, sizeof b->program, WARDEN_ENV_PROGRAM "=%s", n->program);
	b->envp[0] = b->state;
	b->envp[1] = b->id;
	b->envp[2] = b->program;
	if (ended &&
	    snprintf(b->keep, sizeof b->keep, "CAY_KEEP_ENDED=%s", ended) < (int)sizeof b->keep)
		b->envp[3] = b->keep;
	return b;
}

int warden_start(struct newborn *n, const char *warden, struct err *e)
{
	int pair[2], gone[2], r;

	n->birth = birth_new(n, warden);
	if (!n->birth)
		return err_sys(e, ENOMEM, "start the warden");
	if (pipe2(gone, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	n->birth->gone_fd = gone[0];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		(void)close(gone[1]);
		return err_sys(e, errno, "make a socket pair");
	}
	r = spawn(n, pair[1], gone[1], e);
	(void)close(gone[1]);
	(void)close(pair[1]);
	n->warden_fd = pair[0];
	return r;
}

static void await_gone(int fd)
{
	char c;

	while (read(fd, &c, 1) < 0 && errno == EINTR)
		;
}

int warden_started(struct newborn *n, struct err *e)
{
	struct warden_birth *b = TAKE_PTR(n->birth);
	int r = 0;

	if (!b)
		return 0;
	if (b->gone_fd >= 0)
		await_gone(b->gone_fd);
	if (b->failed)
		r = err_sys(e, b->failed, "start '%s'", b->path);
	fd_close(&b->gone_fd);
	free(b);
	return r;
}
