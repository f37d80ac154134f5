/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay trace: shows, follows, filters and verifies the trace of a sandbox. Lines go from the file to
 * the output one at a time, so a trace may have any size.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/limits.h"
#include "base/sha256.h"
#include "cli/cmd.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/trace_open.h"
#include "trace/filter.h"
#include "trace/text.h"
#include "trace/verify.h"
#include "wire/json_write.h"

enum {
	OUT_MAX =
		8 * LIMIT_EVENT, /* one printed event: escapes take at most four times the space */
	ALIVE_MS = 1000, /* while following: how often to check that the sandbox still runs */
};

static const char *opt_call, *opt_kind;
static bool opt_follow, opt_verify;

/* One run of the command. */
struct show {
	struct cmd_ctx *ctx;
	struct cay cay;
	struct trace_found file;
	struct trace_lines lines;
	struct trace_filter filter;
	struct trace_text text;
	struct buf out;
	bool raw;   /* lines need no parsing */
	bool ended; /* sandbox.end was seen */
	struct err *e;
};

static void show_done(struct show *s)
{
	trace_lines_done(&s->lines);
	trace_filter_done(&s->filter);
	buf_done(&s->out);
	trace_open_done(&s->file);
	cli_done(&s->cay);
}
DEFINE_AUTO(struct show, show_done)

static int out_failed(struct err *e)
{
	return err_sys(e, errno ? errno : EIO, "cannot write to standard output");
}

/* Prints the line unchanged with --json, else formatted. */
static int print_event(struct show *s, struct str line, const struct trace_event *ev)
{
	FILE *to = s->ctx->json ? out_json_stream(stdout) : stdout;
	int r;

	buf_clear(&s->out);
	if (s->ctx->json) {
		r = buf_add_str(&s->out, line);
		if (r == 0)
			r = buf_add_c(&s->out, "\n");
	} else {
		r = trace_text_event(&s->text, ev, &s->out);
	}
	if (r < 0)
		return err_sys(s->e, -r, "cannot show an event");
	return fwrite(s->out.data, 1, s->out.len, to) == s->out.len ? 0 : out_failed(s->e);
}

static int show_line(struct show *s, struct str line)
{
	auto_done(trace_event_done) struct trace_event ev = { 0 };
	int r;

	if (s->raw)
		return print_event(s, line, NULL);
	if (!opt_follow && trace_filter_skips(&s->filter, line))
		return 0;
	if (trace_event_parse(line, &ev, s->e) < 0) {
		err_ctx(s->e, "line %llu of the trace", (unsigned long long)s->lines.line);
		return err_hint(s->e, "to find what is wrong: cay trace verify %s", s->file.id);
	}
	s->ended |= str_is(ev.kind, "sandbox.end");
	r = trace_filter_check(&s->filter, &ev);
	if (r < 0)
		return err_sys(s->e, -r, "cannot filter");
	return r == 0 ? 0 : print_event(s, line, &ev);
}

/* Shows everything written so far. */
static int show_lines(struct show *s)
{
	struct str line;
	int r;

	while ((r = trace_lines_next(&s->lines, &line)) > 0)
		if (show_line(s, line) < 0)
			return -1;
	if (r == -E2BIG)
		return err_set(s->e, ERR_FAILED, "line %llu of the trace is longer than %d bytes",
			       (unsigned long long)s->lines.line + 1, LIMIT_EVENT);
	if (r < 0)
		return err_sys(s->e, -r, "cannot read the trace of '%s'", s->file.id);
	return fflush(s->ctx->json ? out_json_stream(stdout) : stdout) == 0 ? 0 : out_failed(s->e);
}

/* Watches the file by descriptor: its name changes when the sandbox ends. */
static int watch_file(struct show *s, int *ret_fd)
{
	auto_close int in = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[40];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", s->file.fd);
	if (in < 0 || inotify_add_watch(in, path, IN_MODIFY | IN_ATTRIB) < 0)
		return err_sys(s->e, errno, "cannot follow the trace of '%s'", s->file.id);
	*ret_fd = TAKE_FD(in);
	return 0;
}

/* Waits for a change, at most one second. */
static int await_change(struct show *s, int in)
{
	struct pollfd p = { .fd = in, .events = POLLIN };
	char events[4096];

	if (poll(&p, 1, ALIVE_MS) < 0 && errno != EINTR)
		return err_sys(s->e, errno, "cannot follow the trace of '%s'", s->file.id);
	while (read(in, events, sizeof events) > 0)
		;
	return 0;
}

/*
 * Follows until the sandbox ends. A killed warden writes no end event. So check that the sandbox is
 * alive before each read: the last read then misses nothing. SIGINT ends this process by default.
 */
static int follow(struct show *s)
{
	auto_close int in = FD_NONE;
	uint64_t watched = UINT64_MAX;

	for (;;) {
		/* From time to time the trace continues in a new file. */
		if (watched != s->file.start) {
			fd_close(&in);
			watched = s->file.start;
			if (watch_file(s, &in) < 0)
				return -1;
		}
		bool alive = trace_open_is_alive(&s->file);

		if (show_lines(s) < 0)
			return -1;
		if (s->ended || !alive)
			return 0;
		if (await_change(s, in) < 0)
			return -1;
	}
}

static int show_trace(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(show_done) struct show s = { .ctx = ctx, .e = e };

	s.file.fd = FD_NONE;
	s.out = (struct buf)BUF_INIT(OUT_MAX);
	if (trace_filter_init(&s.filter, opt_kind, opt_call, e) < 0 ||
	    cli_open_state(&s.cay, e) < 0 || op_trace_open(&s.cay, ctx->args[0], &s.file, e) < 0)
		return -1;
	if (s.file.note[0] && !ctx->quiet)
		(void)fprintf(stderr, "cay: %s\n", s.file.note);
	s.raw = ctx->json && !opt_follow && trace_filter_passes_all(&s.filter);
	trace_open_lines(&s.file, &s.lines);
	trace_text_init(&s.text, ctx->color_out);
	if ((opt_follow ? follow(&s) : show_lines(&s)) < 0)
		return -1;
	if (opt_call && !s.filter.call_seen)
		return err_set(e, ERR_NOT_FOUND, "call '%s' is not in the trace of '%s'", opt_call,
			       s.file.id);
	return 0;
}

static int print_summary(struct cmd_ctx *ctx, const struct trace_found *f,
			 const struct trace_summary *sum, struct err *e)
{
	auto_done(buf_done) struct buf out = BUF_INIT(4096);
	struct json j;

	if (ctx->quiet)
		return 0;
	if (!ctx->json) {
		(void)printf("ok: %llu events of sandbox %s, unbroken\nhead: %s\n",
			     (unsigned long long)(sum->head.seq - sum->dropped), f->id,
			     sum->head.hash);
		if (sum->dropped)
			(void)printf("events 1 to %llu were dropped to keep the trace within its "
				     "size; it says so itself\n",
				     (unsigned long long)sum->dropped);
		if (f->has_head)
			(void)printf("the running sandbox confirms event %llu\n",
				     (unsigned long long)f->head.seq);
		return fflush(stdout) == 0 ? 0 : out_failed(e);
	}
	json_init(&j, &out);
	json_trace_verified(&j, f, sum);
	if (json_done(&j) < 0)
		return err_sys(e, ENOMEM, "cannot write the result");
	return fprintf(out_json_stream(stdout), "%s\n", out.data) >= 0 ? 0 : out_failed(e);
}

static int verify_trace(struct cmd_ctx *ctx, const char *ref, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(trace_open_done) struct trace_found f = { .fd = FD_NONE };
	auto_done(trace_lines_done) struct trace_lines lines = { 0 };
	struct trace_summary sum = { 0 };

	if (opt_call || opt_kind || opt_follow)
		return err_set(e, ERR_INVALID, "verify takes no --call, --kind or --follow");
	if (cli_open_state(&c, e) < 0 || op_trace_open(&c, ref, &f, e) < 0)
		return -1;
	if (f.note[0])
		(void)fprintf(stderr, "cay: %s\n", f.note);
	trace_open_lines(&f, &lines);
	if (trace_verify_lines(&lines, f.id, f.has_head ? &f.head : NULL, &sum, e) < 0)
		return err_ctx(e, "trace of '%s'", f.id);
	return print_summary(ctx, &f, &sum, e);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	if (ctx->nargs == 2 && strcmp(ctx->args[0], "verify") == 0)
		return verify_trace(ctx, ctx->args[1], e);
	if (ctx->nargs != 1) {
		(void)err_set(e, ERR_INVALID,
			      ctx->nargs ? "trace takes one sandbox" : "missing a sandbox");
		return err_hint(e, "usage: cay trace SANDBOX, or cay trace verify SANDBOX");
	}
	return opt_verify ? verify_trace(ctx, ctx->args[0], e) : show_trace(ctx, e);
}

static struct opt opts[] = {
	{ "call", 'c', OPT_TEXT, "CALL",
	  "Only what this call did: its number, or the caller's own id", &opt_call },
	{ "kind", 'k', OPT_TEXT, "KIND", "Only this kind: process.exec, file, '*.exit', ...",
	  &opt_kind },
	{ "follow", 'f', OPT_FLAG, NULL, "Go on with new events until the sandbox ends",
	  &opt_follow },
	{ "verify", 0, OPT_FLAG, NULL, "Check the chain of hashes instead, as verify SANDBOX does",
	  &opt_verify },
	{ 0 },
};

const struct cmd cmd_trace = {
	.name = "trace",
	.synopsis = "[options] SANDBOX | verify SANDBOX",
	.summary = "Show what happened in a sandbox, call by call",
	.details =
		"Shows one line per event, oldest first, of a running sandbox or of one that has\n"
		"ended (cay ls --ended lists them). With --json the lines of the trace come byte for byte as they were written.\n"
		"\n"
		"A number given to --call is Cay's number of the call; anything else is the id that\n"
		"its caller gave. A file that several calls may have changed is shown with each.\n"
		"\n"
		"verify checks the chain of hashes and names the first line that was changed,\n"
		"removed or reordered, over all segments of a long trace. It says how many of the\n"
		"oldest events the sandbox dropped to keep the trace within its size. For a running sandbox it also asks the sandbox how its trace\n"
		"ends, and so finds an end that was cut off.",
	.examples = "cay trace web\n"
		    "cay trace web --call 17 --kind file\n"
		    "cay trace web --follow --json\n"
		    "cay trace verify web",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
