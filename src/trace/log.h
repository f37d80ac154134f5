/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writing side of a trace: an append-only file of JSON Lines, one event each, chained
 * by hash. Every line carries `prev`, the SHA-256 of the line before it (without its
 * newline; 64 zeros in the first), so that a changed, removed or reordered line is found
 * and named.
 *
 *   {"seq":7,"time":"2026-01-02T03:04:05.000006Z","sandbox":"k3x9…","call":2,"parent":5,
 *    "kind":"process.exec", …fields…, "prev":"9f86d0…"}
 *
 * Events are built in order (begin, fields, end), gathered in memory and written by
 * trace_flush(), which the owner calls before anything that depends on them is acknowledged
 * and at the latest once per turn of its loop. A field can fail only for lack of memory or
 * because the line passes LIMIT_EVENT; that is remembered and reported by trace_end(),
 * which then drops the event.
 *
 * Where the disk takes no more, events are gathered up to LIMIT_TRACE_BATCH; those that come
 * then are lost, counted, and admitted by a trace.gap event before the next one that fits.
 *
 * Text that is not valid UTF-8 is written as {"b64":"…"} instead of a string: nothing that
 * a sandbox says is lost, and nothing of it can break the line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "wire/json_write.h"

struct trace {
	int fd;
	uint64_t seq;		   /* of the last event begun */
	uint8_t head[SHA256_SIZE]; /* hash of the last event ended */
	uint64_t lost;		   /* events dropped since the last trace.gap */
	char sandbox[32];
	struct buf line, batch;
	struct json json; /* of the line that is being built */
};

/* Create `name` below dirfd (it must not exist) for the sandbox. */
int trace_create(struct trace *t, int dirfd, const char *name, const char *sandbox, struct err *e);
/* What was not flushed is lost. Legal on a zeroed trace. */
void trace_done(struct trace *t);

/* call 0: of the sandbox itself. parent 0: none. The number of the event. */
uint64_t trace_begin(struct trace *t, const char *kind, uint32_t call, uint64_t parent);
void trace_text(struct trace *t, const char *key, struct str value);
void trace_num(struct trace *t, const char *key, int64_t value);
void trace_bool(struct trace *t, const char *key, bool value);
void trace_array(struct trace *t, const char *key);
void trace_item(struct trace *t, struct str value);
void trace_item_num(struct trace *t, int64_t value);
void trace_array_end(struct trace *t);
/*
 * 0; or the event is dropped and its sequence number used again: -E2BIG (too long; the caller
 * may try a shorter one), -ENOMEM, or the -errno for which a full batch could not be written.
 */
int trace_end(struct trace *t);

/* Write what has been gathered. 0 or -errno; on failure the rest stays for a retry. */
int trace_flush(struct trace *t);
