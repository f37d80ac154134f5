/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that claims ready sandboxes, compared with fork+exec without a sandbox.
 *
 *   claim_client ROUNDS STATE-DIR KEY -- CMD [ARG]...
 *
 * In turns: fork+exec+wait of CMD; and find a ready sandbox in STATE-DIR/ready/KEY, claim it, and
 * run CMD in it to its end. Prints lines "fork NS" and "claim NS", and "yes NS" for the answer to a
 * claim without a command. Releases all claimed sandboxes at the end, at once.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/io.h"
#include "base/limits.h"
#include "wire/frame.h"
#include "wire/proto.h"

enum { CHUNK = 64 * 1024 };

static char **command;
static const char *kind;
static int quiet_fd, state_fd;

static void __attribute__((noreturn)) die(const char *what, int err)
{
	fprintf(stderr, "claim_client: %s: %s\n", what, strerror(err));
	exit(1);
}

static void must(int r, const char *what)
{
	if (r < 0)
		die(what, -r);
}

static void run_bare(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < 3; i++)
			(void)dup2(quiet_fd, i);
		(void)execve(command[0], command, environ);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
		die(command[0], errno);
}

static void find(char id[64])
{
	char path[LIMIT_PATH];
	struct dirent *de;
	DIR *d;

	(void)snprintf(path, sizeof path, "ready/%s", kind);
	d = dir_open_at(state_fd, path);
	while (d && (de = readdir(d)))
		if (de->d_name[0] != '.') {
			(void)snprintf(id, 64, "%.60s", de->d_name);
			(void)closedir(d);
			return;
		}
	die("nothing is ready", ENOENT);
}

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char id[64];

	find(id);
	(void)snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/sandboxes/%s/sock",
		       state_fd, id);
	if (connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0)
		die(id, errno);
	return fd;
}

static void put_claim(struct buf *b, bool and_run)
{
	size_t at = 0;

	must(frame_begin(b, MSG_C_HELLO, 0, &at), "build a request");
	must(field_put_u64(b, TAG_VERSION, PROTO_CLIENT_VERSION), "build a request");
	must(frame_end(b, at, 0), "build a request");
	must(frame_begin(b, MSG_C_CLAIM, 0, &at), "build a request");
	must(field_put_c(b, TAG_READY_DIR, kind), "build a request");
	must(field_put_c(b, TAG_USER, "1000"), "build a request");
	must(frame_end(b, at, 0), "build a request");
	if (!and_run)
		return;
	must(frame_begin(b, MSG_C_EXEC, 1, &at), "build a request");
	for (char **arg = command; *arg; arg++)
		must(field_put_c(b, TAG_ARG, *arg), "build a request");
	must(frame_end(b, at, 0), "build a request");
	must(frame_put(b, MSG_C_STDIN_EOF, 1, STR_NONE), "build a request");
}

static void await(int fd, uint8_t type)
{
	auto_done(buf_done) struct buf in = BUF_INIT(4 * CHUNK + LIMIT_FRAME_BODY);

	for (;;) {
		struct frame f;
		int64_t used = frame_parse(buf_str(&in), &f);
		ssize_t n;

		if (used < 0 || (used > 0 && f.type == MSG_C_ERROR))
			die("the warden refused", EPROTO);
		if (used > 0 && f.type == type)
			return;
		if (used > 0) {
			buf_shift(&in, (size_t)used);
			continue;
		}
		must(buf_reserve(&in, CHUNK), "read");
		n = read(fd, in.data + in.len, CHUNK);
		if (n <= 0)
			die("read", n < 0 ? errno : ENOTCONN);
		buf_grew(&in, (size_t)n);
	}
}

/*
 * Leave the connection open: closing it would end the sandbox, and that would slow down the next
 * round.
 */
static void claim(const char *name, bool and_run)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);
	uint64_t start = clock_mono_ns();
	int fd = dial();

	put_claim(&b, and_run);
	must(io_write_all(fd, b.data, b.len), "send");
	await(fd, and_run ? MSG_C_EXIT : MSG_C_READY);
	printf("%s %llu\n", name, (unsigned long long)(clock_mono_ns() - start));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;

	if (rounds < 1 || argc < 6 || strcmp(argv[4], "--") != 0) {
		fprintf(stderr, "usage: claim_client ROUNDS STATE-DIR KIND -- CMD [ARG]...\n");
		return 2;
	}
	state_fd = open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
	quiet_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (state_fd < 0 || quiet_fd < 0)
		die(argv[2], errno);
	kind = argv[3];
	command = argv + 5;
	for (int i = 0; i < rounds; i++) {
		uint64_t start = clock_mono_ns();

		run_bare();
		printf("fork %llu\n", (unsigned long long)(clock_mono_ns() - start));
		claim("claim", true);
		if (i % 4 == 0)
			claim("yes", false);
	}
	return 0;
}
