/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call/call_stdio_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/limits.h"

enum { BIG = 20 << 20 };

static char *text_of(int fd)
{
	static char text[256];
	ssize_t n = pread(fd, text, sizeof text - 1, 0);

	CHECK(n >= 0);
	text[n] = '\0';
	return text;
}

static int status_to_send;
static const char *reason_to_send;

static void exits(void)
{
	expect(MSG_C_EXEC);
	expect(MSG_C_STDIN_EOF);
	add_exit(status_to_send, reason_to_send);
	flush_out();
	linger();
}

static void exit_codes_are_those_of_a_shell(void)
{
	static const struct {
		int status, code;
		const char *reason;
	} rows[] = {
		{ 0, 0, "exit" },      { 7 << 8, 7, "exit" }, { 255 << 8, 255, "exit" },
		{ 9, 137, "signal" },  { 15, 143, "killed" }, { 6 | 0x80, 134, "signal" },
		{ 9, 124, "timeout" }, { 0, 124, "timeout" }, { 9, 137, "oom" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		status_to_send = rows[i].status;
		reason_to_send = rows[i].reason;
		CHECK(run(exits) == 0 && e.kind == ERR_NONE);
		CHECK(res.code == rows[i].code && res.status == rows[i].status);
		CHECK(res.call == 7 && res.duration_us == 1234 && !failed_exec);
		CHECK_STR(res.reason, rows[i].reason);
	}
}

static void fails_in_exec(void)
{
	expect(MSG_C_EXEC);
	add_error("not_found", ENOENT, STAGE_EXEC);
	flush_out();
	linger();
}

static void fails_in_setup(void)
{
	expect(MSG_C_EXEC);
	add_error("limit", 0, STAGE_SETUP);
	flush_out();
	linger();
}

static void an_error_is_told_as_it_is(void)
{
	CHECK(run(fails_in_exec) == -1 && failed_exec);
	CHECK(e.kind == ERR_NOT_FOUND && e.sys == ENOENT);
	CHECK_STR(e.msg, "why");
	CHECK_STR(e.hint, "what next");
	CHECK(run(fails_in_setup) == -1 && !failed_exec && e.kind == ERR_LIMIT);
}

static void hangs_up(void)
{
	expect(MSG_C_EXEC);
	add_data(MSG_C_STDOUT, STR("last words"));
	flush_out();
}

static void talks_nonsense(void)
{
	expect(MSG_C_EXEC);
	CHECK(write(sock, "\377\377\377\377\377\377\377\377\377\377\377\377", 12) == 12);
	linger();
}

static void a_connection_that_ends_early_is_an_error(void)
{
	s.out_fd = memfd_create("out", MFD_CLOEXEC);
	CHECK(run(hangs_up) == -1 && e.kind == ERR_UNAVAILABLE);
	CHECK_STR(text_of(s.out_fd), "last words");
	CHECK(run(talks_nonsense) == -1 && e.kind == ERR_FAILED);
	CHECK_STR(e.code, "warden.protocol");
}

static void answers_and_hangs_up(void)
{
	add_data(MSG_C_STDOUT, STR("all of it"));
	add_exit(3 << 8, "exit");
	flush_out();
}

static void an_exit_right_before_the_end_of_the_connection_counts(void)
{
	siginfo_t si;

	s.out_fd = memfd_create("out", MFD_CLOEXEC);
	start(answers_and_hangs_up);
	CHECK(waitid(P_PID, (id_t)warden, &si, WEXITED | WNOWAIT) == 0);
	CHECK(finish() == 0 && res.code == 3);
	CHECK_STR(text_of(s.out_fd), "all of it");
}

static void exits_then_fails(void)
{
	expect(MSG_C_EXEC);
	add_exit(0, "exit");
	add_error("failed", 0, STAGE_SETUP);
	add_exit(9, "killed");
	add_data(MSG_C_STDOUT, STR("too late"));
	flush_out();
	linger();
}

static void fails_then_exits(void)
{
	expect(MSG_C_EXEC);
	add_error("denied_by_policy", 0, STAGE_SETUP);
	add_exit(0, "exit");
	flush_out();
	linger();
}

static void the_first_answer_counts(void)
{
	s.out_fd = memfd_create("out", MFD_CLOEXEC);
	CHECK(run(exits_then_fails) == 0 && e.kind == ERR_NONE && res.code == 0);
	CHECK_STR(res.reason, "exit");
	CHECK_STR(text_of(s.out_fd), "");
	CHECK(run(fails_then_exits) == -1 && e.kind == ERR_DENIED);
}

static void speaks_on_both(void)
{
	expect(MSG_C_EXEC);
	add_number(MSG_C_STARTED, TAG_CALL, 5);
	add_data(MSG_C_STDOUT, STR("out 1 "));
	add_data(MSG_C_STDERR, STR("err 1 "));
	add_data(MSG_C_STDOUT, STR("out 2"));
	add_data(MSG_C_STDERR, STR("err 2"));
	add_data(200, STR("from the future"));
	add_exit(0, "exit");
	flush_out();
	linger();
}

static void output_goes_where_it_belongs(void)
{
	s.out_fd = memfd_create("out", MFD_CLOEXEC);
	s.err_fd = memfd_create("err", MFD_CLOEXEC);
	CHECK(run(speaks_on_both) == 0);
	CHECK_STR(text_of(s.out_fd), "out 1 out 2");
	CHECK_STR(text_of(s.err_fd), "err 1 err 2");
}

/* --- stdin --- */

static size_t take_stdin(size_t most)
{
	size_t n = 0;

	while (n < most) {
		struct frame f = { 0 };

		CHECK(next(&f) && f.type == MSG_C_STDIN && f.body.n > 0);
		CHECK(f.body.n <= LIMIT_FRAME_DATA);
		n += f.body.n;
	}
	return n;
}

static bool is_silent(void)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	return in.len == taken && poll(&p, 1, 50) == 0;
}

static void gives_little_credit(void)
{
	expect(MSG_C_EXEC);
	CHECK(take_stdin(LIMIT_STDIN_WINDOW) == LIMIT_STDIN_WINDOW && is_silent());
	for (int i = 0; i < 3; i++) {
		add_number(MSG_C_CREDIT, TAG_BYTES, 1000);
		flush_out();
		CHECK(take_stdin(1000) == 1000 && is_silent());
	}
	add_exit(0, "exit");
	flush_out();
	linger();
}

static pid_t feed(int p[2], size_t bytes);

static void stdin_from_a_pipe_keeps_to_its_credit(void)
{
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	(void)feed(p, BIG);
	s.in_fd = p[0];
	CHECK(run(gives_little_credit) == 0);
}

static void stdin_from_a_file_keeps_to_its_credit(void)
{
	char path[] = "/tmp/cay-call.XXXXXX";

	s.in_fd = mkstemp(path);
	CHECK(s.in_fd >= 0 && unlink(path) == 0 && ftruncate(s.in_fd, BIG) == 0);
	CHECK(run(gives_little_credit) == 0);
	CHECK(lseek(s.in_fd, 0, SEEK_CUR) == LIMIT_STDIN_WINDOW + 3000);
}

static void wants_five_bytes_and_the_end(void)
{
	expect(MSG_C_EXEC);
	CHECK(take_stdin(5) == 5);
	expect(MSG_C_STDIN_EOF);
	add_exit(0, "exit");
	flush_out();
	linger();
}

static void stdin_ends_with_its_end(void)
{
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0 && write(p[1], "hello", 5) == 5 && close(p[1]) == 0);
	s.in_fd = p[0];
	CHECK(run(wants_five_bytes_and_the_end) == 0);
}

/* --- much of it --- */

static char pattern(size_t at)
{
	return (char)((unsigned)at * 2654435761u >> 24);
}

/* A process that writes the pattern into the pipe. */
static pid_t feed(int p[2], size_t bytes)
{
	static char chunk[30011];
	pid_t pid = helper();

	if (pid > 0) {
		CHECK(close(p[1]) == 0);
		return pid;
	}
	(void)close(p[0]);
	for (size_t at = 0; at < bytes;) {
		size_t n = bytes - at < sizeof chunk ? bytes - at : sizeof chunk;

		for (size_t i = 0; i < n; i++)
			chunk[i] = pattern(at + i);
		if (io_write_all(p[1], chunk, n) < 0)
			_exit(1);
		at += n;
	}
	_exit(0);
}

/* Forks a reader that checks the whole pattern. It starts once `go` is readable or closed. */
static pid_t drain(int p[2], int go, size_t bytes)
{
	static char chunk[65536];
	size_t at = 0;
	pid_t pid = helper();
	char c;

	if (pid > 0) {
		CHECK(close(p[0]) == 0);
		return pid;
	}
	(void)close(p[1]);
	CHECK(go < 0 || read(go, &c, 1) >= 0);
	for (;;) {
		ssize_t n = read(p[0], chunk, sizeof chunk);

		if (n <= 0)
			_exit(at != bytes);
		for (ssize_t i = 0; i < n; i++)
			CHECK(chunk[i] == pattern(at++));
	}
}

static void echoes(void)
{
	struct frame f = { 0 };

	expect(MSG_C_EXEC);
	while (next(&f) && f.type == MSG_C_STDIN) {
		add_data(MSG_C_STDOUT, f.body);
		add_number(MSG_C_CREDIT, TAG_BYTES, f.body.n);
		flush_out();
	}
	CHECK(f.type == MSG_C_STDIN_EOF);
	add_exit(0, "exit");
	flush_out();
	linger();
}

static void twenty_megabytes_go_both_ways(void)
{
	int from[2], to[2], st;
	pid_t writer, reader;

	CHECK(pipe2(from, O_CLOEXEC) == 0 && pipe2(to, O_CLOEXEC) == 0);
	writer = feed(from, BIG);
	reader = drain(to, FD_NONE, BIG);
	s.in_fd = from[0];
	s.out_fd = to[1];
	CHECK(run(echoes) == 0 && close(to[1]) == 0);
	CHECK(waitpid(writer, &st, 0) == writer && st == 0);
	CHECK(waitpid(reader, &st, 0) == reader && st == 0);
}

/* --- signals --- */

static int go_fd = FD_NONE;

static void wants_a_signal_while_output_stalls(void)
{
	static char data[LIMIT_FRAME_DATA];

	expect(MSG_C_EXEC);
	for (size_t i = 0; i < 2 * sizeof data; i++) {
		data[i % sizeof data] = pattern(i);
		if ((i + 1) % sizeof data == 0)
			add_data(MSG_C_STDOUT, (struct str){ data, sizeof data });
	}
	flush_out();
	(void)is_silent(); /* time for the output to fill the pipe */
	CHECK(kill(getppid(), SIGINT) == 0);
	expect_signal(SIGINT);
	CHECK(write(go_fd, "x", 1) == 1);
	add_exit(SIGINT, "signal");
	flush_out();
	linger();
}

static void a_signal_passes_though_the_reader_stalls(void)
{
	int to[2], go[2], st;
	pid_t reader;

	CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
	go_fd = go[1];
	reader = drain(to, go[0], 2 * (size_t)LIMIT_FRAME_DATA);
	s.out_fd = to[1];
	s.signals = true;
	CHECK(run(wants_a_signal_while_output_stalls) == 0 && res.code == 128 + SIGINT);
	CHECK(close(to[1]) == 0 && waitpid(reader, &st, 0) == reader && st == 0);
}

static void wants_sigpipe(void)
{
	expect(MSG_C_EXEC);
	add_data(MSG_C_STDOUT, STR("nobody reads this"));
	flush_out();
	expect_signal(SIGPIPE);
	add_exit(SIGPIPE, "signal");
	flush_out();
	linger();
}

static void a_reader_that_is_gone_becomes_sigpipe(void)
{
	int p[2];

	CHECK(pipe2(p, O_CLOEXEC) == 0 && close(p[0]) == 0);
	s.out_fd = p[1];
	CHECK(run(wants_sigpipe) == 0 && res.code == 141);
}

static void signals_are_as_before_afterwards(void)
{
	sigset_t before, after;

	CHECK(sigprocmask(SIG_BLOCK, NULL, &before) == 0);
	s.signals = true;
	reason_to_send = "exit";
	CHECK(run(exits) == 0);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &after) == 0);
	for (int sig = 1; sig < 32; sig++)
		CHECK(sigismember(&before, sig) == sigismember(&after, sig));
}

T_MAIN(T(exit_codes_are_those_of_a_shell), T(an_error_is_told_as_it_is),
       T(a_connection_that_ends_early_is_an_error),
       T(an_exit_right_before_the_end_of_the_connection_counts), T(the_first_answer_counts),
       T(output_goes_where_it_belongs), T(stdin_from_a_pipe_keeps_to_its_credit),
       T(stdin_from_a_file_keeps_to_its_credit), T(stdin_ends_with_its_end),
       T(twenty_megabytes_go_both_ways), T(a_signal_passes_though_the_reader_stalls),
       T(a_reader_that_is_gone_becomes_sigpipe), T(signals_are_as_before_afterwards))
