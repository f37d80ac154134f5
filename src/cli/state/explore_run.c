/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/state/explore.h"

enum { LINE = 64 * 1024 };

static int spawn(char **argv, int out_fd, const sigset_t *mask, pid_t *ret)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	int r;

	if (posix_spawn_file_actions_init(&fa) != 0)
		return -ENOMEM;
	(void)posix_spawnattr_init(&attr); /* cannot fail */
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	(void)posix_spawnattr_setsigmask(&attr, mask);
	(void)posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&fa, out_fd, STDOUT_FILENO);
	(void)posix_spawn_file_actions_adddup2(&fa, out_fd, STDERR_FILENO);
	r = -posix_spawn(ret, "/proc/self/exe", &fa, &attr, argv, environ);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&fa);
	return r;
}

static int start(struct branch *b, const struct explore_opts *o)
{
	char env[40], time[40];
	char **argv = calloc((size_t)o->argc + 12, sizeof *argv);
	int pair[2], n = 0, r;

	if (!argv)
		return -ENOMEM;
	(void)snprintf(env, sizeof env, "CAY_FORK=%d", b->number);
	(void)snprintf(time, sizeof time, "%llums", (unsigned long long)o->timeout_ms);
	argv[n++] = "cay";
	argv[n++] = "exec";
	argv[n++] = "--env";
	argv[n++] = env;
	if (o->timeout_ms) {
		argv[n++] = "--timeout";
		argv[n++] = time;
	}
	argv[n++] = b->id;
	argv[n++] = "--";
	memcpy(argv + n, o->argv, (size_t)o->argc * sizeof *argv);
	b->start_ns = clock_mono_ns(); /* it may have ended before we come to run again */
	r = pipe2(pair, O_CLOEXEC) < 0 ? -errno : 0;
	if (r == 0) {
		r = spawn(argv, pair[1], o->mask, &b->pid);
		(void)close(pair[1]);
		b->out_fd = pair[0];
	}
	free(argv);
	return r;
}

static void print_line(const struct branch *b, const struct explore_opts *o, const char *p,
		       size_t n)
{
	if (o->quiet)
		return;
	printf("[%d] ", b->number);
	(void)fwrite(p, 1, n, stdout);
	putchar('\n');
}

/* Whole lines, so that those of several commands do not mix; a very long one in pieces. */
static void take(struct branch *b, const struct explore_opts *o, const char *p, size_t n)
{
	while (n) {
		const char *nl = memchr(p, '\n', n);
		size_t part = nl ? (size_t)(nl - p) : n;

		if (buf_add(&b->line, p, part) < 0 || nl) {
			print_line(b, o, b->line.data ? b->line.data : "", b->line.len);
			buf_clear(&b->line);
		}
		part += nl != NULL;
		p += part;
		n -= part;
	}
	(void)fflush(stdout);
}

static void finish(struct branch *b, const struct explore_opts *o)
{
	int status = 0;

	if (b->line.len)
		take(b, o, "\n", 1);
	while (waitpid(b->pid, &status, 0) < 0 && errno == EINTR)
		;
	b->ended = true;
	b->duration_us = (clock_mono_ns() - b->start_ns) / NS_PER_US;
	b->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	b->pid = 0;
	fd_close(&b->out_fd);
	if (!o->quiet && b->code < 0)
		fprintf(stderr, "cay: fork %d (%s) was stopped\n", b->number, b->id);
	else if (!o->quiet)
		fprintf(stderr, "cay: fork %d (%s) ended with %d\n", b->number, b->id, b->code);
}

/* The commands end with the cays that run them. */
static void stop(struct branch *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (b[i].pid > 0)
			(void)kill(b[i].pid, SIGKILL);
}

/* Take in what one of them says. True when it has ended. */
static bool hear(struct branch *b, const struct explore_opts *o, char mem[LINE])
{
	ssize_t got = read(b->out_fd, mem, LINE);

	if (got > 0)
		take(b, o, mem, (size_t)got);
	else
		finish(b, o);
	return got <= 0;
}

static void hear_signal(struct branch *b, unsigned n, const struct explore_opts *o,
			struct explored *ret)
{
	struct signalfd_siginfo si;

	if (read(o->sig_fd, &si, sizeof si) != sizeof si)
		return;
	ret->signal = (int)si.ssi_signo;
	stop(b, n);
}

static int wait_all(struct branch *b, unsigned n, const struct explore_opts *o,
		    struct explored *ret)
{
	auto_free struct pollfd *fds = calloc(n + 1, sizeof *fds);
	auto_free char *mem = malloc(LINE);
	unsigned left = n;

	if (!fds || !mem)
		return -ENOMEM;
	while (left) {
		for (unsigned i = 0; i < n; i++)
			fds[i] = (struct pollfd){ .fd = b[i].out_fd, .events = POLLIN };
		fds[n] = (struct pollfd){ .fd = o->sig_fd, .events = POLLIN };
		if (poll(fds, n + 1, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[n].revents)
			hear_signal(b, n, o, ret);
		for (unsigned i = 0; i < n; i++) {
			if (!fds[i].revents || b[i].ended || !hear(&b[i], o, mem))
				continue;
			left--;
			if (b[i].code == 0 && ret->winner < 0) {
				ret->winner = (int)i;
				if (o->first_success)
					stop(b, n);
			}
		}
	}
	return 0;
}

int explore_run(struct branch *b, unsigned n, const struct explore_opts *o, struct explored *ret,
		struct err *e)
{
	int r = 0;

	*ret = (struct explored){ .winner = -1 };
	for (unsigned i = 0; i < n; i++) {
		b[i].out_fd = FD_NONE;
		b[i].line = (struct buf)BUF_INIT(LINE);
	}
	for (unsigned i = 0; i < n && r == 0; i++)
		r = start(&b[i], o);
	if (r == 0)
		r = wait_all(b, n, o, ret);
	if (r < 0)
		stop(b, n);
	for (unsigned i = 0; i < n; i++) {
		if (b[i].pid > 0)
			finish(&b[i], o);
		buf_done(&b[i].line);
	}
	return r < 0 ? err_sys(e, -r, "run the command") : 0;
}
