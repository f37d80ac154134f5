/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that keeps its connection, compared with running commands without a sandbox.
 *
 *   exec_client latency CALLS SANDBOX-DIR... -- CMD [ARG]...
 *   exec_client flight CALLS DEPTH SANDBOX-DIR... -- CMD [ARG]...
 *
 * latency: one call at a time, in turns: fork+exec+wait, posix_spawn+wait, a call in each sandbox.
 * flight: DEPTH calls at a time, in alternating blocks: fork+exec and each sandbox. Prints lines
 * "TARGET NANOSECONDS": for a call, or for a block divided by its calls. TARGET is fork, spawn, or
 * a number from 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"
#include "wire/frame.h"
#include "wire/proto.h"

enum { SANDBOXES = 8, CHUNK = 64 * 1024, BLOCK = 200 };

struct sandbox {
	int fd;
	struct buf in;
};

static char **command;
static int quiet_fd;
static struct sandbox sandboxes[SANDBOXES];
static int nsandboxes;

static void __attribute__((noreturn)) die(const char *what, int err)
{
	fprintf(stderr, "exec_client: %s: %s\n", what, strerror(err));
	exit(1);
}

static void must(int r, const char *what)
{
	if (r < 0)
		die(what, -r);
}

static pid_t start_forked(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork", errno);
	if (pid > 0)
		return pid;
	for (int i = 0; i < 3; i++)
		(void)dup2(quiet_fd, i);
	(void)execve(command[0], command, environ);
	_exit(127);
}

static pid_t start_spawned(void)
{
	static posix_spawn_file_actions_t fa;
	static int made;
	pid_t pid;
	int r = made ? 0 : posix_spawn_file_actions_init(&fa);

	for (int i = 0; i < 3 && !made && r == 0; i++)
		r = posix_spawn_file_actions_adddup2(&fa, quiet_fd, i);
	made = 1;
	if (r == 0)
		r = posix_spawn(&pid, command[0], &fa, NULL, command, environ);
	if (r != 0)
		die(command[0], r);
	return pid;
}

static void wait_one(void)
{
	int status;

	if (wait(&status) < 0)
		die("wait", errno);
	if (status != 0)
		die(command[0], ECHILD);
}

static void send_call(struct sandbox *s, uint32_t chan)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);
	size_t at = 0;

	must(frame_begin(&b, MSG_C_EXEC, chan, &at), "build a request");
	for (char **arg = command; *arg; arg++)
		must(field_put_c(&b, TAG_ARG, *arg), "build a request");
	must(frame_end(&b, at, 0), "build a request");
	must(frame_put(&b, MSG_C_STDIN_EOF, chan, STR_NONE), "build a request");
	must(io_write_all(s->fd, b.data, b.len), "send");
}

static uint64_t status_of(struct str body)
{
	struct field f;
	uint64_t v = 1;

	while (field_next(&body, &f) > 0)
		if (f.tag == TAG_STATUS)
			must(field_u64(f, &v), "status");
	return v;
}

/* The channel of the next call that ends. */
static uint32_t await_exit(struct sandbox *s)
{
	for (;;) {
		struct frame f;
		int64_t used = frame_parse(buf_str(&s->in), &f);
		ssize_t n;

		if (used < 0 || (used > 0 && f.type == MSG_C_ERROR))
			die("the warden refused", EPROTO);
		if (used > 0) {
			uint32_t chan = f.type == MSG_C_EXIT ? f.chan : 0;

			if (chan && status_of(f.body) != 0)
				die(command[0], ECHILD);
			buf_shift(&s->in, (size_t)used);
			if (chan)
				return chan;
			continue;
		}
		must(buf_reserve(&s->in, CHUNK), "read");
		n = read(s->fd, s->in.data + s->in.len, CHUNK);
		if (n <= 0)
			die("read", n < 0 ? errno : ENOTCONN);
		buf_grew(&s->in, (size_t)n);
	}
}

/* The socket's path may be too long for an address: connect from inside the directory. */
static void connect_to(struct sandbox *s, const char *dir)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "sock" };
	auto_done(buf_done) struct buf b = BUF_INIT(256);
	size_t at = 0;

	*s = (struct sandbox){ socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
			       BUF_INIT(4 * CHUNK + LIMIT_FRAME_BODY) };
	if (chdir(dir) < 0 || connect(s->fd, (struct sockaddr *)&addr, sizeof addr) < 0)
		die(dir, errno);
	must(frame_begin(&b, MSG_C_HELLO, 0, &at), "say hello");
	must(field_put_u64(&b, TAG_VERSION, PROTO_CLIENT_VERSION), "say hello");
	must(frame_end(&b, at, 0), "say hello");
	must(io_write_all(s->fd, b.data, b.len), "say hello");
}

static void print_since(const char *name, uint64_t start, int calls)
{
	printf("%s %llu\n", name, (unsigned long long)(clock_mono_ns() - start) / (unsigned)calls);
}

static void print_sandbox(int i, uint64_t start, int calls)
{
	char name[12];

	(void)snprintf(name, sizeof name, "%d", i);
	print_since(name, start, calls);
}

static void latency(int calls)
{
	for (int n = 0; n < calls; n++) {
		uint64_t start = clock_mono_ns();

		(void)start_forked();
		wait_one();
		print_since("fork", start, 1);
		start = clock_mono_ns();
		(void)start_spawned();
		wait_one();
		print_since("spawn", start, 1);
		for (int i = 0; i < nsandboxes; i++) {
			start = clock_mono_ns();
			send_call(&sandboxes[i], 1);
			(void)await_exit(&sandboxes[i]);
			print_sandbox(i, start, 1);
		}
	}
}

static void block_forked(int calls, int depth)
{
	uint64_t start = clock_mono_ns();
	int started = 0;

	for (int ended = 0; ended < calls; ended++) {
		while (started < calls && started - ended < depth) {
			(void)start_forked();
			started++;
		}
		wait_one();
	}
	print_since("fork", start, calls);
}

static void block_sandbox(int i, int calls, int depth)
{
	struct sandbox *s = &sandboxes[i];
	uint64_t start = clock_mono_ns();
	int started = 0;

	for (; started < calls && started < depth; started++)
		send_call(s, (uint32_t)started + 1);
	for (int ended = 0; ended < calls; ended++) {
		uint32_t chan = await_exit(s);

		if (started++ < calls)
			send_call(s, chan);
	}
	print_sandbox(i, start, calls);
}

static void flight(int calls, int depth)
{
	for (int done = 0; done < calls; done += BLOCK) {
		block_forked(BLOCK, depth);
		for (int i = 0; i < nsandboxes; i++)
			block_sandbox(i, BLOCK, depth);
	}
}

int main(int argc, char **argv)
{
	int wide = argc > 1 && strcmp(argv[1], "flight") == 0, at = 3 + wide;
	int calls = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0,
	    depth = wide && argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1;

	for (; at < argc && strcmp(argv[at], "--") != 0 && nsandboxes < SANDBOXES; at++)
		connect_to(&sandboxes[nsandboxes++], argv[at]);
	if (calls < 1 || depth < 1 || at + 1 >= argc) {
		fprintf(stderr, "usage: exec_client latency CALLS | flight CALLS DEPTH   "
				"SANDBOX-DIR... -- CMD [ARG]...\n");
		return 2;
	}
	command = argv + at + 1;
	quiet_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (quiet_fd < 0)
		die("/dev/null", errno);
	if (wide)
		flight(calls, depth);
	else
		latency(calls);
	return 0;
}
