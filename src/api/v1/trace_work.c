/* SPDX-License-Identifier: Apache-2.0 */
/* One round of a trace, in a worker. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "api/answer.h"
#include "api/v1/trace_round.h"
#include "api/v1/work.h"
#include "base/io.h"
#include "ops/trace_open.h"
#include "store/trace_files.h"
#include "trace/filter.h"
#include "wire/sse_write.h"

enum { ROUND = 4 << 20, BATCH = 256 * 1024 };

struct copying {
	struct trace_found file;
	struct trace_lines lines;
	struct trace_filter filter;
	struct trace_round at;
	uint64_t pos;	  /* offset of the next line */
	uint64_t since;	  /* only events with a higher number */
	bool events, raw; /* events: as server-sent events; raw: lines need no parsing */
	bool ended;	  /* sandbox.end was seen */
	int fd;
	uint64_t bytes;
	struct buf b;
};

static void copying_done(struct copying *c)
{
	trace_lines_done(&c->lines);
	trace_filter_done(&c->filter);
	trace_open_done(&c->file);
	fd_close(&c->fd);
	buf_done(&c->b);
}
DEFINE_AUTO(struct copying, copying_done)

static int flush(struct copying *c)
{
	int r = io_write_all(c->fd, c->b.data, c->b.len);

	c->bytes += c->b.len;
	buf_clear(&c->b);
	return r;
}

static int emit(struct copying *c, struct str line, uint64_t seq)
{
	char id[24];
	int r;

	(void)snprintf(id, sizeof id, "%" PRIu64, seq);
	if (c->events) {
		r = sse_put(&c->b, STR("event"), str_of(id), line);
	} else {
		r = buf_add_str(&c->b, line);
		if (r == 0)
			r = buf_add_c(&c->b, "\n");
	}
	if (c->at.left != UINT64_MAX)
		c->at.left--;
	return r == 0 && c->b.len > BATCH ? flush(c) : r;
}

/* 0, or -errno. */
static int take_line(struct copying *c, struct str line, struct err *e)
{
	auto_done(trace_event_done) struct trace_event ev = { 0 };
	bool seen = c->pos < c->at.at; /* in an earlier round */
	int r;

	if (c->raw)
		return emit(c, line, 0);
	if (trace_event_parse(line, &ev, e) < 0)
		return -EBADMSG;
	c->ended |= str_is(ev.kind, "sandbox.end");
	r = trace_filter_check(&c->filter, &ev);
	return r <= 0 || seen || ev.seq <= c->since ? (r < 0 ? r : 0) : emit(c, line, ev.seq);
}

static int copy_lines(struct copying *c, struct err *e)
{
	struct str line;
	int r = 1;

	while (c->at.left && c->bytes + c->b.len < ROUND &&
	       (r = trace_lines_next(&c->lines, &line)) > 0) {
		size_t n = line.n + 1;

		r = take_line(c, line, e);
		if (r < 0)
			return e->kind ? -1 : err_sys(e, -r, "copy the trace");
		c->pos += n;
		r = 1;
	}
	if (r < 0)
		return err_sys(e, -r, "read the trace of '%s'", c->file.id);
	c->at.state = c->at.left == 0 ? TRACE_END : r ? TRACE_MORE : TRACE_WAIT;
	r = flush(c);
	return r < 0 ? err_sys(e, -r, "copy the trace") : 0;
}

/* Go on where the last round ended. A filter by the caller's id must see every event. */
static int seek(struct copying *c, const char *call, struct err *e)
{
	bool by_id = call && call[strspn(call, "0123456789")];
	uint64_t start;
	int fd;

	c->pos = c->file.start;
	if (by_id || c->at.at <= c->pos)
		return 0;
	fd = trace_file_find(c->file.cay->state.fd, c->file.id, c->at.at, &start);
	if (fd < 0)
		return err_sys(e, -fd, "read the trace of '%s'", c->file.id);
	fd_close(&c->file.fd);
	c->file.fd = fd;
	c->file.start = start;
	c->pos = start < c->at.at ? c->at.at : start;
	return lseek(fd, (off_t)(c->pos - start), SEEK_SET) < 0
		       ? err_sys(e, errno, "read the trace of '%s'", c->file.id)
		       : 0;
}

/* By descriptor: its name changes when the sandbox ends. */
static int watch_file(const struct copying *c)
{
	int in = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[40];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", c->file.fd);
	if (in >= 0 && inotify_add_watch(in, path, IN_MODIFY | IN_ATTRIB) < 0)
		fd_close(&in);
	return in;
}

static int open_trace(struct job_run *r, struct v1_ask *a, struct trace_found *ret, struct err *e)
{
	int k = v1_find_sandbox(r, a, a->in.id, &a->row, e);

	/* Ended sandboxes have no owner any more: only the host's user sees their traces. */
	if (k < 0 && (a->in.owner || e->kind != ERR_NOT_FOUND))
		return -1;
	*e = (struct err){ 0 };
	return op_trace_open(r->cay, k < 0 ? a->in.id : a->row.id, ret, e);
}

static int reply(struct job_run *r, struct copying *c, int *watch, struct err *e)
{
	char next[TRACE_ROUND_TEXT];
	struct api_answer answer = { .status = 200 };

	trace_round_write(&c->at, next);
	answer.next = str_of(next);
	if (lseek(c->fd, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "copy the trace");
	if (api_answer_put(r->out, &answer) < 0)
		return err_sys(e, ENOMEM, "answer");
	r->fds[r->nfds++] = TAKE_FD(c->fd);
	if (*watch >= 0)
		r->fds[r->nfds++] = TAKE_FD(*watch);
	return 0;
}

static int copy_round(struct job_run *r, struct copying *c, const struct v1_ask *a, struct err *e)
{
	const char *call = v1_text(a->in.query, "call"), *kind = v1_text(a->in.query, "kind");
	bool follow = v1_is(a->in.query, "follow"), alive;
	auto_close int watch = FD_NONE;
	uint64_t start;

	if (trace_filter_init(&c->filter, kind, call, e) < 0 || seek(c, call, e) < 0 ||
	    v1_tmp(r, &c->fd, e) < 0)
		return -1;
	c->since = v1_number(a->in.query, "since");
	c->events = v1_is(a->more, "events");
	c->raw = !follow && !c->events && !c->since && trace_filter_passes_all(&c->filter);
	start = c->file.start;
	if (follow)
		watch = watch_file(c);
	/* A killed warden writes no end, so look before the last read: it then misses nothing. */
	alive = trace_open_is_alive(&c->file);
	trace_open_lines(&c->file, &c->lines);
	if (copy_lines(c, e) < 0)
		return -1;
	c->at.at = c->pos;
	if (c->at.state == TRACE_WAIT && (!follow || c->ended || !alive))
		c->at.state = TRACE_END;
	if (c->at.state != TRACE_WAIT || start != c->file.start)
		fd_close(&watch);
	return reply(r, c, &watch, e);
}

int v1_job_trace(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(copying_done) struct copying c = { .file.fd = FD_NONE,
						     .fd = FD_NONE,
						     .b = BUF_INIT(2 * BATCH) };
	const char *from;

	if (v1_ask_read(r, &a, e) < 0)
		return -1;
	from = v1_text(a.more, "round");
	if (!from || trace_round_read(from, &c.at) < 0)
		return err_set(e, ERR_INVALID, "the request is malformed");
	return open_trace(r, &a, &c.file, e) < 0 ? -1 : copy_round(r, &c, &a, e);
}

int v1_job_trace_verify(struct job_run *r, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_done(trace_open_done) struct trace_found f = { .fd = FD_NONE };
	auto_done(trace_lines_done) struct trace_lines lines = { 0 };
	struct trace_summary sum = { 0 };
	struct json j;

	if (v1_ask_read(r, &a, e) < 0 || open_trace(r, &a, &f, e) < 0)
		return -1;
	trace_open_lines(&f, &lines);
	if (trace_verify_lines(&lines, f.id, f.has_head ? &f.head : NULL, &sum, e) < 0) {
		(void)err_ctx(e, "trace of '%s'", f.id);
		return err_code(e, "trace.broken", NULL);
	}
	json_init(&j, &b);
	json_trace_verified(&j, &f, &sum);
	return v1_reply(r, 200, &j, &b, e);
}
