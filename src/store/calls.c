/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of calls. The trace is authoritative; the rows follow it. `indexed` in the sandbox's
 * row is the offset after the last line read. It moves in the same transaction as the rows, so each
 * line counts once, even if several processes read or a reader is interrupted. Lines of other kinds
 * and invalid lines are skipped: the verifier checks traces.
 */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/db.h"
#include "store/trace_files.h"

enum {
	CHUNK = 64 * 1024,
	BATCH = 4 << 20, /* bytes of trace per transaction, because others wait for it */
	PAGE_ROWS = 64,	 /* call rows held while the caller reads them */
};

static void json_done(json_t *j)
{
	json_decref(j);
}
DEFINE_AUTO_PTR(json_t, json_done)

/* RFC 3339 as in the trace; 0 for anything else. */
static uint64_t parse_time(const char *text)
{
	unsigned y, mo, d, h, mi, s, us;
	struct tm tm = { 0 };
	time_t t;

	if (!text ||
	    sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u.%6uZ", &y, &mo, &d, &h, &mi, &s, &us) != 7)
		return 0;
	tm.tm_year = (int)y - 1900;
	tm.tm_mon = (int)mo - 1;
	tm.tm_mday = (int)d;
	tm.tm_hour = (int)h;
	tm.tm_min = (int)mi;
	tm.tm_sec = (int)s;
	t = timegm(&tm);
	return t < 0 ? 0 : (uint64_t)t * NS_PER_S + us * NS_PER_US;
}

static const char *get_text(const json_t *ev, const char *key)
{
	const char *t = json_string_value(json_object_get(ev, key));

	return t ? t : "";
}

/* -1 if the number is missing or negative. */
static int64_t get_num(const json_t *ev, const char *key)
{
	const json_t *v = json_object_get(ev, key);
	json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;

	return n < 0 ? -1 : n;
}

/* ["k=v", ...] as {"k":"v", ...}; NULL if there is none. */
static json_t *labels_object(const json_t *labels)
{
	json_t *object = NULL;
	const json_t *item;
	size_t i;

	json_array_foreach(labels, i, item)
	{
		const char *text = json_string_value(item), *eq = text ? strchr(text, '=') : NULL;
		char key[LIMIT_LABEL + 1];

		if (!eq || !str_copy(key, sizeof key, (struct str){ text, (size_t)(eq - text) }))
			continue;
		if (!object)
			object = json_object();
		/* Cutting at '=' never splits a character, so the key is UTF-8 too. */
		(void)json_object_set_new(object, key, json_string(eq + 1));
	}
	return object;
}

static int on_start(struct catalog *c, const char *id, int64_t call, const json_t *ev,
		    struct err *e)
{
	auto_done(json_done) json_t *object = labels_object(json_object_get(ev, "labels"));
	const json_t *args = json_object_get(ev, "argv");
	auto_free char *argv = json_is_array(args) ? json_dumps(args, JSON_COMPACT) : strdup("[]");
	auto_free char *labels = object ? json_dumps(object, JSON_COMPACT) : NULL;

	if (!argv || (object && !labels))
		return err_sys(e, ENOMEM, "cannot index the calls of '%s'", id);
	return db_do(c, e,
		     "INSERT INTO calls(sandbox, call, call_id, argv, labels, start_ns)"
		     " VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(sandbox, call) DO UPDATE"
		     " SET call_id = ?3, argv = ?4, labels = ?5, start_ns = ?6",
		     "tittti", id, call, get_text(ev, "call_id"), argv, labels,
		     (int64_t)parse_time(get_text(ev, "time")));
}

static int set_end(struct catalog *c, const char *id, int64_t call, const json_t *ev, int status,
		   const char *reason, struct err *e)
{
	int64_t duration = get_num(ev, "duration_us"), out = get_num(ev, "out_bytes"),
		err = get_num(ev, "err_bytes");

	return db_do(
		c, e,
		"INSERT INTO calls(sandbox, call, status, reason, duration_us, out_bytes, err_bytes)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(sandbox, call) DO UPDATE"
		" SET status = ?3, reason = ?4, duration_us = ?5, out_bytes = ?6, err_bytes = ?7",
		"tiitiii", id, call, (int64_t)status, reason, duration < 0 ? 0 : duration,
		out < 0 ? (int64_t)0 : out, err < 0 ? (int64_t)0 : err);
}

static int on_exit_of(struct catalog *c, const char *id, int64_t call, const json_t *ev,
		      struct err *e)
{
	int64_t code = get_num(ev, "code"), sig = get_num(ev, "signal");
	const char *reason = get_text(ev, "reason");
	int status = sig > 0 ? (int)(sig & 0x7f) : (int)((code < 0 ? 0 : code) & 0xff) << 8;

	if (!reason[0])
		reason = sig > 0 ? "signal" : "exit";
	return set_end(c, id, call, ev, status, reason, e);
}

/* A command that could not start gets the status that a shell would give. */
static int on_failed(struct catalog *c, const char *id, int64_t call, const json_t *ev,
		     struct err *e)
{
	int64_t code = get_num(ev, "code");

	return set_end(c, id, call, ev, (int)((code <= 0 ? 127 : code) & 0xff) << 8, "failed", e);
}

static int take_line(struct catalog *c, const char *id, struct str line, struct err *e)
{
	auto_done(json_done) json_t *ev = NULL;
	const char *kind;
	int64_t call;

	/* Most lines are about processes and files; parsing them would cost more than the rest. */
	if (line.n > LIMIT_EVENT || !memmem(line.p, line.n, "\"call.", 6))
		return 0;
	ev = json_loadb(line.p, line.n, 0, NULL);
	kind = get_text(ev, "kind");
	call = get_num(ev, "call");
	if (call < 1 || call > UINT32_MAX)
		return 0;
	if (strcmp(kind, "call.start") == 0)
		return on_start(c, id, call, ev, e);
	if (strcmp(kind, "call.exit") == 0)
		return on_exit_of(c, id, call, ev, e);
	if (strcmp(kind, "call.failed") == 0)
		return on_failed(c, id, call, ev, e);
	return 0;
}

struct reader {
	int fd; /* of the segment, or FD_NONE */
	int state_fd;
	uint64_t start;	   /* of the segment; offsets are those of the whole trace */
	struct buf text;   /* from `at` on */
	int64_t at;	   /* offset of the first byte not yet read */
	bool in_long_line; /* the start of this long line was dropped */
};

static void reader_done(struct reader *r)
{
	fd_close(&r->fd);
	buf_done(&r->text);
}
DEFINE_AUTO(struct reader, reader_done)

/* Process the complete lines of r->text. */
static int take_lines(struct catalog *c, const char *id, struct reader *r, struct err *e)
{
	size_t done = 0;

	for (;;) {
		const char *from = r->text.data + done;
		const char *end =
			r->text.len > done ? memchr(from, '\n', r->text.len - done) : NULL;
		struct str line = { from, end ? (size_t)(end - from) : 0 };

		if (!end)
			break;
		if (!r->in_long_line && take_line(c, id, line, e) < 0)
			return -1;
		r->in_long_line = false;
		done += line.n + 1;
	}
	buf_shift(&r->text, done);
	r->at += (int64_t)done;
	/* A line above LIMIT_EVENT cannot be an event. */
	if (r->text.len > LIMIT_EVENT) {
		r->at += (int64_t)r->text.len;
		buf_clear(&r->text);
		r->in_long_line = true;
	}
	return 0;
}

/* A segment ends with a complete line, so r->text is empty. */
static bool next_segment(const char *id, struct reader *r)
{
	int fd = r->text.len || (uint64_t)r->at == r->start
			 ? -ENOENT
			 : trace_file_open(r->state_fd, id, (uint64_t)r->at);

	if (fd < 0)
		return false;
	fd_close(&r->fd);
	r->fd = fd;
	r->start = (uint64_t)r->at;
	return true;
}

/*
 * Opens the trace at the next offset. 1, or 0 if there is no trace. Skips segments that were
 * deleted meanwhile.
 */
static int open_at(const char *id, struct reader *r, struct err *e)
{
	r->fd = trace_file_find(r->state_fd, id, (uint64_t)r->at, &r->start);
	if (r->fd == -ENOENT)
		return 0;
	if (r->fd < 0)
		return err_sys(e, -r->fd, "cannot open the trace of '%s'", id);
	if ((uint64_t)r->at < r->start)
		r->at = (int64_t)r->start;
	return 1;
}

/* Read up to BATCH bytes. 1: the end of the file was reached. */
static int take_batch(struct catalog *c, const char *id, struct reader *r, struct err *e)
{
	for (size_t got = 0; got < BATCH || r->in_long_line;) {
		ssize_t n;

		if (buf_reserve(&r->text, CHUNK) < 0)
			return err_sys(e, ENOMEM, "cannot index the calls of '%s'", id);
		n = pread(r->fd, r->text.data + r->text.len, CHUNK,
			  r->at + (off_t)r->text.len - (off_t)r->start);
		if (n < 0)
			return err_sys(e, errno, "cannot read the trace of '%s'", id);
		if (n == 0 && next_segment(id, r))
			continue;
		if (n == 0)
			return 1;
		buf_grew(&r->text, (size_t)n);
		got += (size_t)n;
		if (take_lines(c, id, r, e) < 0)
			return -1;
	}
	return 0;
}

/* 1: found. 0: no such row. */
static int get_indexed(struct catalog *c, const char *id, int64_t *ret, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int r;

	if (db_query(c, &q, e, "SELECT indexed FROM sandboxes WHERE id = ?1", "t", id) < 0)
		return -1;
	r = db_step(c, q, e);
	if (r > 0)
		*ret = sqlite3_column_int64(q, 0);
	return r;
}

/* One transaction. 1: there is nothing more. */
static int index_batch(struct catalog *c, const struct state *s, const char *id, struct err *e)
{
	auto_done(reader_done) struct reader r = { .fd = FD_NONE,
						   .state_fd = s->fd,
						   .text = BUF_INIT(LIMIT_EVENT + 2 * CHUNK) };
	/* Read it again, now that no other process can move it. */
	int found = get_indexed(c, id, &r.at, e), end = 1;

	if (found > 0)
		found = open_at(id, &r, e);
	if (found > 0)
		end = take_batch(c, id, &r, e);

	if (found < 0 || end < 0)
		return -1;
	if (found > 0 && !r.in_long_line &&
	    db_do(c, e, "UPDATE sandboxes SET indexed = ?2 WHERE id = ?1", "ti", id, r.at) < 0)
		return -1;
	return end;
}

static int index_from(struct catalog *c, const struct state *s, const char *id, struct err *e)
{
	int end = 0;

	while (end == 0) {
		if (db_begin(c, false, e) < 0)
			return -1;
		end = index_batch(c, s, id, e);
		if (db_end(c, end < 0 ? -1 : 0, e) < 0)
			return -1;
	}
	return 0;
}

/* Whether the trace has more than was read. 1, 0 or -1. */
static int has_more(const struct state *s, const char *id, int64_t at, struct err *e)
{
	auto_close int fd = FD_NONE;
	uint64_t start = 0;
	struct stat st;

	fd = trace_file_last(s->fd, id, &start);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, fd < 0 ? -fd : errno, "cannot open the trace of '%s'", id);
	return start + (uint64_t)st.st_size > (uint64_t)at;
}

int catalog_index_calls(struct catalog *c, const struct state *s, const char *id, struct err *e)
{
	int64_t at = 0;
	int r = get_indexed(c, id, &at, e);

	if (r <= 0)
		return r < 0 ? -1 : err_set(e, ERR_NOT_FOUND, "no sandbox '%s'", id);
	r = has_more(s, id, at, e);
	return r > 0 ? index_from(c, s, id, e) : r;
}

int db_lose_calls(struct catalog *c, const char *id, struct err *e)
{
	return db_do(c, e,
		     "UPDATE calls SET reason = 'lost', duration_us = 0, status = ?2"
		     " WHERE sandbox = ?1 AND duration_us < 0",
		     "ti", id, (int64_t)SIGKILL);
}

static void call_row_done(struct call_row *row)
{
	free(row->argv);
	free(row->labels);
}

static int read_call(sqlite3_stmt *q, struct call_row *row, struct err *e)
{
	row->call = (uint32_t)sqlite3_column_int64(q, 0);
	db_text(q, 1, row->call_id, sizeof row->call_id);
	row->start_ns = (uint64_t)sqlite3_column_int64(q, 4);
	row->duration_us = sqlite3_column_int64(q, 5);
	row->status = sqlite3_column_int(q, 6);
	db_text(q, 7, row->reason, sizeof row->reason);
	row->out_bytes = (uint64_t)sqlite3_column_int64(q, 8);
	row->err_bytes = (uint64_t)sqlite3_column_int64(q, 9);
	if (db_text_dup(q, 2, &row->argv, e) < 0)
		return -1;
	return db_text_dup(q, 3, &row->labels, e);
}

/*
 * Up to PAGE_ROWS calls after `after`; returns their number. The caller owns them, also on failure.
 */
static int read_page(struct catalog *c, const char *id, uint32_t after, struct call_row *rows,
		     struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	int n = 0, r;

	if (db_query(c, &q, e,
		     "SELECT call, call_id, argv, labels, start_ns, duration_us, status, reason,"
		     " out_bytes, err_bytes FROM calls WHERE sandbox = ?1 AND call > ?2"
		     " ORDER BY call LIMIT ?3",
		     "tii", id, (int64_t)after, (int64_t)PAGE_ROWS) < 0)
		return -1;
	while ((r = db_step(c, q, e)) > 0 && n < PAGE_ROWS)
		if (read_call(q, &rows[n++], e) < 0)
			return -1;
	return r < 0 ? -1 : n;
}

int catalog_each_call(struct catalog *c, const char *id,
		      int (*fn)(void *ctx, const struct call_row *row), void *ctx, struct err *e)
{
	uint32_t last = 0;
	bool stop = false;
	int n = PAGE_ROWS;

	while (n == PAGE_ROWS && !stop) {
		struct call_row rows[PAGE_ROWS] = { 0 };

		n = read_page(c, id, last, rows, e);
		for (int i = 0; i < n && !stop; i++) {
			stop = fn(ctx, &rows[i]) != 0;
			last = rows[i].call;
		}
		for (int i = 0; i < PAGE_ROWS; i++)
			call_row_done(&rows[i]);
	}
	return n < 0 ? -1 : 0;
}
