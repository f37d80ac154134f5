/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a trace: an append-only file of JSON Lines, one event per line, chained by hash. Every
 * line has `prev`, the SHA-256 of the line before it (without newline; 64 zeros in the first). So a
 * changed, removed or reordered line is detected and named.
 *
 *   {"seq":7,"time":"2026-01-02T03:04:05.000006Z","sandbox":"k3x9…","call":2,"parent":5,
 *    "kind":"process.exec", …fields…, "prev":"9f86d0…"}
 *
 * The owner builds events in order (begin, fields, end). They collect in memory until
 * trace_flush(). The owner flushes before it acknowledges anything that depends on them, and at
 * least once per turn of its loop. A field fails only if memory is short or the line exceeds
 * LIMIT_EVENT. Then trace_end() reports the failure and drops the event.
 *
 * If the disk is full, events collect up to LIMIT_TRACE_BATCH. Further events are lost and counted;
 * a trace.gap event reports them before the next event that fits.
 *
 * A trace with trace_limit() is written in segments (base/trace_name.h). The chain of hashes
 * continues across segments. If there are too many, the oldest is deleted. Before that, a
 * trace.drop event records its last event and hash, so that a verifier knows what is missing and
 * that nobody else removed it.
 *
 * Text that is not valid UTF-8 is written as {"b64":"…"}: no byte of a sandbox is lost, and none
 * can break the line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "wire/json_write.h"

struct trace_segment {
	uint64_t start;		   /* offset in the whole trace */
	uint64_t seq;		   /* its last event */
	uint8_t head[SHA256_SIZE]; /* hash of that */
};

struct trace {
	int fd;
	int dirfd;		/* borrowed, with trace_limit() */
	uint64_t start, offset; /* of the segment, and of the next byte that is written */
	uint64_t segment_max;	/* 0: one file without a limit */
	struct trace_segment old[LIMIT_TRACE_SEGMENTS]; /* complete ones, oldest first */
	unsigned nold;
	uint64_t seq;		   /* number of the last event begun */
	uint8_t head[SHA256_SIZE]; /* hash of the last event ended */
	uint64_t lost;		   /* events dropped since the last trace.gap */
	char sandbox[32];
	struct buf line, batch;
	struct json json; /* the line being built */
};

/* Create `name` below dirfd (it must not exist) for the sandbox. */
int trace_create(struct trace *t, int dirfd, const char *name, const char *sandbox, struct err *e);
/*
 * Keep the trace within about this many bytes (0: without a limit). It must have been created as
 * trace.jsonl below dirfd, which must outlive it.
 */
void trace_limit(struct trace *t, int dirfd, uint64_t bytes);
/* Drops what was not flushed. Allowed on a zeroed trace. */
void trace_done(struct trace *t);

/* call 0: the sandbox itself. parent 0: none. Returns the event's number. */
uint64_t trace_begin(struct trace *t, const char *kind, uint32_t call, uint64_t parent);
void trace_text(struct trace *t, const char *key, struct str value);
void trace_num(struct trace *t, const char *key, int64_t value);
void trace_bool(struct trace *t, const char *key, bool value);
void trace_array(struct trace *t, const char *key);
void trace_item(struct trace *t, struct str value);
void trace_item_num(struct trace *t, int64_t value);
void trace_array_end(struct trace *t);
/*
 * 0, or -errno if the event was dropped; its sequence number is then reused. -E2BIG: too long, the
 * caller may try a shorter one. -ENOMEM. Other: why a full batch could not be written.
 */
int trace_end(struct trace *t);

/* Write the collected events. 0 or -errno; on failure the rest stays for a retry. */
int trace_flush(struct trace *t);
