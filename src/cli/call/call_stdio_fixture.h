/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a call against a fake warden of version 2: a process that follows a script. */
#pragma once

#include "cli/call/call_stdio.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/limits.h"
#include "t.h"
#include "wire/frame.h"
#include "wire/proto.h"

enum { CHAN = 1 };

static int sock; /* the warden's end */
static pid_t warden;
static int warden_fd; /* the client's end */
static unsigned version = 2;
static struct call_stdio s = { .in_fd = FD_NONE, .out_fd = FD_NONE, .err_fd = FD_NONE };
static struct call_spec spec;
static struct call_outcome outcome = CALL_OUTCOME_INIT;
static struct call_result res; /* result of the call */
static bool failed_exec;
static struct err e;

/* Forks a process that ends with the test at the latest. */
static pid_t helper(void)
{
	pid_t test = getpid(), pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == test);
	return pid;
}

/* --- the warden's side --- */

static struct buf in = BUF_INIT(4 << 20), out = BUF_INIT(4 << 20);
static size_t taken;

/* The next frame; false at the end. */
static bool next(struct frame *f)
{
	buf_shift(&in, taken);
	taken = 0;
	for (;;) {
		int64_t n = frame_parse(buf_str(&in), f);
		ssize_t got;

		CHECK(n >= 0);
		if (n > 0) {
			taken = (size_t)n;
			return true;
		}
		CHECK(buf_reserve(&in, 65536) == 0);
		got = read(sock, in.data + in.len, 65536);
		if (got <= 0)
			return false;
		buf_grew(&in, (size_t)got);
	}
}

static void expect(uint8_t type)
{
	struct frame f = { 0 };

	CHECK(next(&f) && f.type == type && f.chan == CHAN);
}

static void expect_signal(uint64_t want)
{
	struct frame f = { 0 };
	struct field field;
	uint64_t sig = 0;

	do
		CHECK(next(&f));
	while (f.type == MSG_C_STDIN_EOF);
	CHECK(f.type == MSG_C_SIGNAL && field_next(&f.body, &field) == 1);
	CHECK(field.tag == TAG_SIGNAL && field_u64(field, &sig) == 0 && sig == want);
}

static void add_number(uint8_t type, uint16_t tag, uint64_t v)
{
	size_t at = 0;

	CHECK(frame_begin(&out, type, CHAN, &at) == 0 && field_put_u64(&out, tag, v) == 0);
	CHECK(frame_end(&out, at, 0) == 0);
}

static void add_exit(int status, const char *reason)
{
	size_t at = 0;

	CHECK(frame_begin(&out, MSG_C_EXIT, CHAN, &at) == 0);
	CHECK(field_put_u64(&out, TAG_CALL, 7) == 0);
	CHECK(field_put_u64(&out, TAG_STATUS, (uint64_t)status) == 0);
	CHECK(field_put_u64(&out, TAG_DURATION_US, 1234) == 0);
	CHECK(field_put_c(&out, TAG_REASON, reason) == 0 && frame_end(&out, at, 0) == 0);
}

static void add_error(const char *kind, uint64_t sys, uint64_t stage)
{
	size_t at = 0;

	CHECK(frame_begin(&out, MSG_C_ERROR, CHAN, &at) == 0);
	CHECK(field_put_c(&out, TAG_KIND, kind) == 0 && field_put_c(&out, TAG_TEXT, "why") == 0);
	CHECK(field_put_c(&out, TAG_HINT, "what next") == 0);
	CHECK(field_put_u64(&out, TAG_ERRNO, sys) == 0);
	CHECK(field_put_u64(&out, TAG_STAGE, stage) == 0 && frame_end(&out, at, 0) == 0);
}

static void add_data(uint8_t type, struct str data)
{
	CHECK(frame_put(&out, type, CHAN, data) == 0);
}

static void flush_out(void)
{
	CHECK(io_write_all(sock, out.data, out.len) == 0);
	buf_clear(&out);
}

/* Wait until the client hangs up, so that our exit does not cut anything short. */
static void linger(void)
{
	struct frame f;

	while (next(&f))
		;
}

/* --- the client's side --- */

static void start(void (*script)(void))
{
	static const char *const argv[] = { "command", NULL };
	int sv[2];

	spec.argv = argv;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0);
	warden = helper();
	if (warden == 0) {
		CHECK(close(sv[0]) == 0);
		sock = sv[1];
		script();
		_exit(0);
	}
	CHECK(close(sv[1]) == 0);
	warden_fd = sv[0];
}

static int finish(void)
{
	const struct link_given given = { .fd = warden_fd, .version = version };
	struct loop loop;
	int k, st;

	e = (struct err){ 0 };
	buf_clear(&outcome.denied);
	CHECK(loop_init(&loop) == 0);
	CHECK(link_adopt(&loop, given, "abc", NULL, NULL, &s.link, &e) == 0);
	k = call_stdio_run(&s, &spec, &outcome, &e);
	res = outcome.result;
	failed_exec = strcmp(e.code, "exec.failed") == 0;
	link_free(s.link);
	loop_done(&loop);
	CHECK(waitpid(warden, &st, 0) == warden);
	if (st != 0)
		t_fail_str(__FILE__, __LINE__, e.msg, "a warden that played its part");
	return k;
}

static int run(void (*script)(void))
{
	start(script);
	return finish();
}
