/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include "base/io.h"
#include "base/limits.h"
#include "t.h"

enum { PIECE = 50000, PIECES = 20 };

static struct loop l;
static struct sink s;
static int emptied;
static unsigned sent, seen;

static void on_emptied(struct sink *sink)
{
	CHECK(sink == &s && s.rest.len == 0);
	emptied++;
	loop_stop(&l);
}

static void begin(int fd)
{
	(void)signal(SIGPIPE, SIG_IGN);
	CHECK(loop_init(&l) == 0);
	CHECK(sink_init(&s, &l, fd, on_emptied) == 0);
}

static char pattern(unsigned at)
{
	return (char)(at * 2654435761u >> 24);
}

static int put(size_t n)
{
	static char bytes[LIMIT_CONN_OUT];

	for (size_t i = 0; i < n; i++)
		bytes[i] = pattern(sent + (unsigned)i);
	sent += (unsigned)n;
	return sink_write(&s, (struct str){ bytes, n });
}

/* Read what is available and check that it continues where it stopped. */
static void take(int fd)
{
	static char bytes[65536];
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (poll(&p, 1, 0) == 1) {
		ssize_t n = read(fd, bytes, sizeof bytes);

		if (n <= 0)
			return;
		for (ssize_t i = 0; i < n; i++)
			CHECK(bytes[i] == pattern(seen++));
	}
}

/* Write more than the descriptor accepts; then its reader reads again. */
static void stall_and_go_on(int in, int out)
{
	int flags = fcntl(out, F_GETFL);

	begin(out);
	for (int i = 0; i < PIECES; i++) {
		CHECK(put(PIECE) == 0);
		if (i == PIECES / 2)
			take(in); /* there is room now, but earlier bytes come first */
	}
	CHECK(s.rest.len > PIECE && emptied == 0);
	while (!emptied) {
		take(in);
		if (s.rest.len)
			s.io.fn(&s.io, EPOLLOUT);
	}
	take(in);
	CHECK(seen == sent && sent == PIECE * PIECES && emptied == 1);
	CHECK(put(10) == 0 && s.rest.len == 0);
	take(in);
	CHECK(seen == sent);
	CHECK(fcntl(out, F_GETFL) == flags && !(flags & O_NONBLOCK));
	sink_done(&s);
	CHECK(fcntl(out, F_GETFD) >= 0);
	loop_done(&l);
}

static void a_stalled_pipe_keeps_the_rest_in_order(void)
{
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	stall_and_go_on(p[0], p[1]);
}

static void a_stalled_socket_keeps_the_rest_in_order(void)
{
	int p[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) == 0);
	stall_and_go_on(p[0], p[1]);
}

static void a_stalled_terminal_keeps_the_rest_in_order(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	struct termios raw;
	char name[64];

	CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	CHECK(ptsname_r(master, name, sizeof name) == 0);
	slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(slave >= 0 && tcgetattr(slave, &raw) == 0);
	cfmakeraw(&raw);
	CHECK(tcsetattr(slave, TCSANOW, &raw) == 0);
	stall_and_go_on(master, slave);
}

static pid_t slow_reader(int p[2])
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid > 0) {
		CHECK(close(p[0]) == 0);
		return pid;
	}
	CHECK(close(p[1]) == 0);
	fd_close(&s.fd);
	for (;;) {
		struct pollfd ready = { .fd = p[0], .events = POLLIN };

		CHECK(poll(&ready, 1, -1) == 1);
		if (!(ready.revents & POLLIN))
			_exit(seen != PIECE * PIECES);
		take(p[0]);
	}
}

static void the_loop_writes_the_rest_while_a_reader_takes_it(void)
{
	int p[2], st;
	pid_t pid;

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	begin(p[1]);
	pid = slow_reader(p);
	for (int i = 0; i < PIECES; i++)
		CHECK(put(PIECE) == 0);
	if (s.rest.len)
		CHECK(loop_run(&l) == 0);
	CHECK(s.rest.len == 0);
	sink_done(&s);
	CHECK(close(p[1]) == 0 && waitpid(pid, &st, 0) == pid && st == 0);
}

static void a_flush_waits_for_all_of_it(void)
{
	int p[2], st;
	pid_t pid;

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	begin(p[1]);
	for (int i = 0; i < PIECES; i++)
		CHECK(put(PIECE) == 0);
	CHECK(s.rest.len > 0);
	pid = slow_reader(p);
	CHECK(sink_flush(&s) == 0 && s.rest.len == 0);
	sink_done(&s);
	CHECK(close(p[1]) == 0 && waitpid(pid, &st, 0) == pid && st == 0);
}

static void a_file_is_written_at_its_place(void)
{
	char path[] = "/tmp/cay-sink.XXXXXX", text[32] = "";
	int fd = mkstemp(path);

	CHECK(fd >= 0 && unlink(path) == 0 && write(fd, "head ", 5) == 5);
	begin(fd);
	CHECK(s.fd == fd && sink_write(&s, STR("middle")) == 0 && s.rest.len == 0);
	CHECK(write(fd, " tail", 5) == 5);
	CHECK(pread(fd, text, sizeof text - 1, 0) == 16);
	CHECK_STR(text, "head middle tail");
	sink_done(&s);
}

static void a_reader_that_is_gone_is_an_error_for_ever(void)
{
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	begin(p[1]);
	CHECK(close(p[0]) == 0);
	CHECK(put(1) == -EPIPE && put(1) == -EPIPE && s.broken && s.rest.len == 0);
	CHECK(sink_flush(&s) == 0);
}

static void a_socket_that_is_gone_is_an_error_and_no_signal(void)
{
	int p[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) == 0);
	begin(p[1]);
	(void)signal(SIGPIPE, SIG_DFL);
	CHECK(close(p[0]) == 0 && put(1) == -EPIPE);
}

static void a_reader_that_goes_while_something_waits_drops_it(void)
{
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	begin(p[1]);
	CHECK(put(500000) == 0 && s.rest.len > 0 && close(p[0]) == 0);
	CHECK(loop_run(&l) == 0);
	CHECK(emptied == 1 && s.broken && s.rest.len == 0 && put(1) == -EPIPE);
}

static void a_flush_to_nobody_ends(void)
{
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	begin(p[1]);
	CHECK(put(500000) == 0 && s.rest.len > 0 && close(p[0]) == 0);
	CHECK(sink_flush(&s) == -EPIPE);
}

static void what_waits_has_a_ceiling(void)
{
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	begin(p[1]);
	CHECK(put(LIMIT_CONN_OUT) == 0);
	CHECK(put(LIMIT_CONN_OUT) == -E2BIG);
	CHECK(s.rest.len <= LIMIT_CONN_OUT);
}

static void without_a_descriptor_everything_is_dropped(void)
{
	begin(FD_NONE);
	CHECK(put(LIMIT_CONN_OUT) == 0 && s.rest.len == 0 && sink_flush(&s) == 0);
	sink_done(&s);
	CHECK(sink_init(&s, &l, 9999, on_emptied) == -EBADF);
}

T_MAIN(T(a_stalled_pipe_keeps_the_rest_in_order), T(a_stalled_socket_keeps_the_rest_in_order),
       T(a_stalled_terminal_keeps_the_rest_in_order),
       T(the_loop_writes_the_rest_while_a_reader_takes_it), T(a_flush_waits_for_all_of_it),
       T(a_file_is_written_at_its_place), T(a_reader_that_is_gone_is_an_error_for_ever),
       T(a_socket_that_is_gone_is_an_error_and_no_signal),
       T(a_reader_that_goes_while_something_waits_drops_it), T(a_flush_to_nobody_ends),
       T(what_waits_has_a_ceiling), T(without_a_descriptor_everything_is_dropped))
