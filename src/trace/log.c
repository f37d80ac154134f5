/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/trace_name.h"

enum {
	KEEP_LINE = 4 * 1024, /* memory that an idle trace keeps */
	KEEP_BATCH = 16 * 1024,
	SEGMENT_LEAST = 2 * LIMIT_EVENT,
};

int trace_create(struct trace *t, int dirfd, const char *name, const char *sandbox, struct err *e)
{
	struct trace new = {
		.fd = FD_NONE,
		.line = BUF_INIT(LIMIT_EVENT),
		.batch = BUF_INIT(LIMIT_TRACE_BATCH),
	};

	if (!str_copy(new.sandbox, sizeof new.sandbox, str_of(sandbox)))
		return err_set(e, ERR_INVALID, "sandbox id '%s' is too long", sandbox);
	new.fd = openat(dirfd, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (new.fd < 0)
		return err_sys(e, errno, "cannot create the trace '%s'", name);
	*t = new;
	return 0;
}

void trace_done(struct trace *t)
{
	if (t->line.max == 0)
		return;
	fd_close(&t->fd);
	buf_done(&t->line);
	buf_done(&t->batch);
}

void trace_limit(struct trace *t, int dirfd, uint64_t bytes)
{
	t->dirfd = dirfd;
	t->segment_max = bytes / LIMIT_TRACE_SEGMENTS;
	if (bytes && t->segment_max < SEGMENT_LEAST)
		t->segment_max = SEGMENT_LEAST;
}

/* Record that the oldest segment is dropped, and only then remove it. */
static void drop_oldest(struct trace *t)
{
	struct trace_segment s = t->old[0];
	char hash[SHA256_HEX], name[TRACE_NAME];

	t->nold--;
	memmove(t->old, t->old + 1, t->nold * sizeof *t->old);
	sha256_hex(s.head, hash);
	(void)trace_begin(t, "trace.drop", 0, 0);
	trace_num(t, "up_to", (int64_t)s.seq);
	trace_text(t, "hash", str_of(hash));
	trace_text(t, "what", STR("older events, so that the trace stays within its size"));
	/* Keep a segment whose removal was not recorded: a verifier would suspect somebody else. */
	if (trace_end(t) < 0 || trace_flush(t) < 0)
		return;
	trace_name(name, "trace", s.start);
	(void)unlinkat(t->dirfd, name, 0);
}

/* Continue in a new file. If it cannot be created, continue in this one. */
static void rotate(struct trace *t)
{
	char name[TRACE_NAME];
	int fd;

	if (trace_flush(t) < 0)
		return;
	trace_name(name, "trace", t->offset);
	fd = openat(t->dirfd, name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	t->old[t->nold] = (struct trace_segment){ .start = t->start, .seq = t->seq };
	memcpy(t->old[t->nold++].head, t->head, sizeof t->head);
	fd_close(&t->fd);
	t->fd = fd;
	t->start = t->offset;
	if (t->nold == LIMIT_TRACE_SEGMENTS)
		drop_oldest(t);
}

/*
 * Report events lost to a full disk at the place where they are missing. Wait until the disk
 * accepts events again; otherwise each lost event would leave its own gap.
 */
static void admit_loss(struct trace *t)
{
	uint64_t lost = t->lost;

	if (trace_flush(t) < 0)
		return;
	t->lost = 0;
	(void)trace_begin(t, "trace.gap", 0, 0);
	trace_num(t, "count", (int64_t)lost);
	trace_text(t, "what", STR("events that could not be written"));
	if (trace_end(t) < 0)
		t->lost = lost;
}

uint64_t trace_begin(struct trace *t, const char *kind, uint32_t call, uint64_t parent)
{
	char time[CLOCK_TEXT_SIZE];

	if (t->segment_max && t->offset + t->batch.len - t->start >= t->segment_max)
		rotate(t);
	if (t->lost > 0)
		admit_loss(t);
	buf_clear(&t->line);
	clock_text(clock_real_ns(), time);
	json_init(&t->json, &t->line);
	json_obj(&t->json);
	json_put_u64(&t->json, "seq", ++t->seq);
	json_put_c(&t->json, "time", time);
	json_put_c(&t->json, "sandbox", t->sandbox);
	if (call)
		json_put_u64(&t->json, "call", call);
	if (parent)
		json_put_u64(&t->json, "parent", parent);
	json_put_c(&t->json, "kind", kind);
	return t->seq;
}

void trace_text(struct trace *t, const char *key, struct str value)
{
	json_put_str(&t->json, key, value);
}

void trace_num(struct trace *t, const char *key, int64_t value)
{
	json_put_i64(&t->json, key, value);
}

void trace_bool(struct trace *t, const char *key, bool value)
{
	json_put_bool(&t->json, key, value);
}

void trace_array(struct trace *t, const char *key)
{
	json_put_arr(&t->json, key);
}

void trace_item(struct trace *t, struct str value)
{
	json_str(&t->json, value);
}

void trace_item_num(struct trace *t, int64_t value)
{
	json_i64(&t->json, value);
}

void trace_array_end(struct trace *t)
{
	json_end(&t->json);
}

static int close_line(struct trace *t)
{
	static const uint8_t zeros[SHA256_SIZE];
	char prev[SHA256_HEX];

	sha256_hex(t->seq == 1 ? zeros : t->head, prev);
	json_put_c(&t->json, "prev", prev);
	json_end(&t->json);
	return json_done(&t->json);
}

/* Add the whole line to the batch or nothing; write a full batch first. */
static int add_to_batch(struct trace *t)
{
	size_t n = t->line.len;
	int r;

	if (t->batch.max - t->batch.len < n + 1) {
		r = trace_flush(t);
		if (t->batch.max - t->batch.len < n + 1)
			return r;
	}
	r = buf_reserve(&t->batch, n + 1);
	if (r < 0)
		return r;
	memcpy(t->batch.data + t->batch.len, t->line.data, n);
	t->batch.data[t->batch.len + n] = '\n';
	buf_grew(&t->batch, n + 1);
	return 0;
}

int trace_end(struct trace *t)
{
	int r = close_line(t);

	if (r == 0)
		r = add_to_batch(t);
	t->lost += r < 0 && r != -E2BIG;
	if (r == 0)
		sha256(t->line.data, t->line.len, t->head);
	else
		t->seq--;
	buf_clear(&t->line);
	buf_trim(&t->line, KEEP_LINE);
	return r;
}

int trace_flush(struct trace *t)
{
	size_t done = 0;
	int r = 0;

	while (done < t->batch.len) {
		ssize_t w = write(t->fd, t->batch.data + done, t->batch.len - done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			r = w < 0 ? -errno : -EIO;
			break;
		}
		done += (size_t)w;
	}
	t->offset += done;
	buf_shift(&t->batch, done);
	buf_trim(&t->batch, KEEP_BATCH);
	return r;
}
