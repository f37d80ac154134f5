/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/safe.h"
#include "trace/read.h"

struct verifier {
	struct trace_lines *lines;
	const struct trace_head *head; /* or NULL */
	char first_prev[SHA256_HEX];   /* of the first event, if it is not event 1 */
	bool drop_seen; /* a trace.drop event says that the earlier events were dropped */
	struct trace_summary so_far;
	struct err *e;
};

static int fail(struct verifier *v, uint64_t line, const char *what)
{
	return err_set(v->e, ERR_FAILED, "line %" PRIu64 ": %s", line, what);
}

/* The next complete line. 1, 0 at the end, -1. */
static int next_line(struct verifier *v, struct str *ret)
{
	int r = trace_lines_next(v->lines, ret);

	if (r == -E2BIG)
		return err_set(v->e, ERR_FAILED, "line %" PRIu64 ": longer than %d bytes",
			       v->lines->line + 1, LIMIT_EVENT);
	if (r < 0)
		return err_sys(v->e, -r, "cannot read the trace");
	return r;
}

static void hash_line(struct str line, char hex[SHA256_HEX])
{
	uint8_t hash[SHA256_SIZE];

	sha256(line.p, line.n, hash);
	sha256_hex(hash, hex);
}

/* Parse the event in the next line, if there is one. True and *ret. */
static bool peek(struct verifier *v, struct trace_event *ret)
{
	struct err ignored;
	struct str line;

	return trace_lines_next(v->lines, &line) == 1 &&
	       trace_event_parse(line, ret, &ignored) == 0;
}

/* The later line that holds event `seq`. Reads the rest of the file. */
static uint64_t find_later(struct verifier *v, uint64_t seq)
{
	for (;;) {
		auto_done(trace_event_done) struct trace_event ev = { 0 };
		struct err ignored;
		struct str line;

		if (trace_lines_next(v->lines, &line) != 1)
			return 0;
		if (trace_event_parse(line, &ev, &ignored) == 0 && ev.seq == seq)
			return v->lines->line;
	}
}

/* The sequence number is unexpected: lines are missing, repeated or reordered. */
static int wrong_seq(struct verifier *v, uint64_t seq)
{
	uint64_t want = v->so_far.head.seq + 1, at = v->lines->line, later;
	const char *many = seq - want > 1 ? "s" : "";
	char upto[40] = "";

	if (seq < want)
		return err_set(v->e, ERR_FAILED,
			       "line %" PRIu64 ": event %" PRIu64 " stands where event %" PRIu64
			       " belongs: the line was repeated or put in",
			       at, seq, want);
	later = find_later(v, want);
	if (later)
		return err_set(v->e, ERR_FAILED,
			       "line %" PRIu64 ": event %" PRIu64 " stands where event %" PRIu64
			       " belongs, which is at line %" PRIu64 ": lines were reordered",
			       at, seq, want, later);
	if (seq - want > 1)
		(void)snprintf(upto, sizeof upto, " to %" PRIu64, seq - 1);
	return err_set(v->e, ERR_FAILED,
		       "line %" PRIu64 ": event %" PRIu64 " stands where event %" PRIu64
		       " belongs: event%s %" PRIu64 "%s %s removed",
		       at, seq, want, many, want, upto, *many ? "were" : "was");
}

/*
 * The number is right, but the hash of the previous line is wrong. If the next line confirms this
 * one, this line is unchanged, so the previous line was changed.
 */
static int wrong_prev(struct verifier *v, struct str line, uint64_t seq)
{
	auto_done(trace_event_done) struct trace_event next = { 0 };
	uint64_t at = v->lines->line;
	char own[SHA256_HEX];
	const char *why = "the line before it, or this line itself, was changed";

	hash_line(line, own);
	if (v->head && v->head->seq == seq) {
		if (strcmp(v->head->hash, own) == 0)
			why = "the line before it was changed or removed";
	} else if (peek(v, &next)) {
		if (str_is(next.prev, own))
			why = "the line before it was changed or removed";
		else if (next.seq == seq + 1)
			why = "this line was changed";
	}
	if (seq == 1)
		return err_set(v->e, ERR_FAILED,
			       "line %" PRIu64 ": event 1 does not begin a chain: its 'prev' is "
			       "not zero",
			       at);
	return err_set(v->e, ERR_FAILED,
		       "line %" PRIu64 ": event %" PRIu64 " does not follow event %" PRIu64 ": %s",
		       at, seq, seq - 1, why);
}

static int wrong_sandbox(struct verifier *v, struct str id)
{
	auto_done(buf_done) struct buf safe = BUF_INIT(256);

	(void)text_safe_cut(&safe, id, 64);
	return err_set(v->e, ERR_FAILED,
		       "line %" PRIu64 ": an event of sandbox '%s' in the trace of '%s'",
		       v->lines->line, safe.data ? safe.data : "", v->so_far.sandbox);
}

/* The first event sets the sandbox if the caller did not. */
static bool same_sandbox(struct verifier *v, struct str id)
{
	if (v->so_far.sandbox[0] != '\0')
		return str_is(id, v->so_far.sandbox);
	return id.n > 0 && str_copy(v->so_far.sandbox, sizeof v->so_far.sandbox, id);
}

/* The first line may belong to a later segment. Then the trace must say so (note_drop). */
static void begin_late(struct verifier *v, const struct trace_event *ev)
{
	struct trace_head *last = &v->so_far.head;

	if (v->lines->line != 1 || ev->seq == 1)
		return;
	v->so_far.dropped = last->seq = ev->seq - 1;
	(void)str_copy(v->first_prev, sizeof v->first_prev, ev->prev);
	(void)str_copy(last->hash, sizeof last->hash, ev->prev);
}

static void note_drop(struct verifier *v, const struct trace_event *ev)
{
	const char *hash = json_string_value(json_object_get(ev->json, "hash"));
	json_int_t up_to = json_integer_value(json_object_get(ev->json, "up_to"));

	if (str_is(ev->kind, "trace.drop") && up_to > 0 && (uint64_t)up_to == v->so_far.dropped &&
	    hash && strcmp(hash, v->first_prev) == 0)
		v->drop_seen = true;
}

static int check_line(struct verifier *v, struct str line)
{
	auto_done(trace_event_done) struct trace_event ev = { 0 };
	struct trace_head *last = &v->so_far.head;
	struct err why;

	if (trace_event_parse(line, &ev, &why) < 0)
		return fail(v, v->lines->line, why.msg);
	if (!same_sandbox(v, ev.sandbox))
		return wrong_sandbox(v, ev.sandbox);
	begin_late(v, &ev);
	note_drop(v, &ev);
	if (ev.seq != last->seq + 1)
		return wrong_seq(v, ev.seq);
	if (!str_is(ev.prev, last->hash))
		return wrong_prev(v, line, ev.seq);
	hash_line(line, last->hash);
	last->seq = ev.seq;
	if (v->head && ev.seq == v->head->seq && strcmp(last->hash, v->head->hash) != 0)
		return err_set(v->e, ERR_FAILED,
			       "line %" PRIu64 ": event %" PRIu64 " is not the one that the "
			       "sandbox wrote: it was changed, or the trace was written anew",
			       v->lines->line, ev.seq);
	return 0;
}

/* The beginning is missing, and no trace.drop event says why. */
static int not_dropped(struct verifier *v)
{
	uint64_t n = v->so_far.dropped;
	char which[64] = " 1 was";

	if (n > 1)
		(void)snprintf(which, sizeof which, "s 1 to %" PRIu64 " were", n);
	return err_set(v->e, ERR_FAILED,
		       "line 1: event %" PRIu64 " stands where event 1 belongs: event%s removed",
		       n + 1, which);
}

static int check_end(struct verifier *v)
{
	uint64_t seq = v->so_far.head.seq;
	size_t rest = trace_lines_rest(v->lines);

	if (v->so_far.dropped && !v->drop_seen)
		return not_dropped(v);
	if (rest > 0 && !(v->head && seq >= v->head->seq))
		return err_set(v->e, ERR_FAILED,
			       "line %" PRIu64
			       ": cut off after %zu bytes, in the middle of an event",
			       v->lines->line + 1, rest);
	if (v->head && seq < v->head->seq)
		return err_set(v->e, ERR_FAILED,
			       "line %" PRIu64 ": the trace ends at event %" PRIu64
			       ", but its sandbox has written %" PRIu64 ": the end was cut off",
			       v->lines->line, seq, v->head->seq);
	return 0;
}

static int verify_lines(struct verifier *v)
{
	struct str line;
	int r;

	while ((r = next_line(v, &line)) > 0)
		if (check_line(v, line) < 0)
			return -1;
	return r < 0 ? -1 : check_end(v);
}

int trace_verify_lines(struct trace_lines *lines, const char *sandbox,
		       const struct trace_head *head, struct trace_summary *ret, struct err *e)
{
	struct verifier v = { .lines = lines, .head = head, .e = e };

	if (sandbox && !str_copy(v.so_far.sandbox, sizeof v.so_far.sandbox, str_of(sandbox)))
		return err_set(e, ERR_INVALID, "sandbox id '%s' is too long", sandbox);
	memset(v.so_far.head.hash, '0', SHA256_HEX - 1);
	if (verify_lines(&v) < 0)
		return -1;
	*ret = v.so_far;
	return 0;
}

int trace_verify(int fd, const char *sandbox, const struct trace_head *head,
		 struct trace_summary *ret, struct err *e)
{
	auto_done(trace_lines_done) struct trace_lines lines = { 0 };

	trace_lines_init(&lines, fd);
	return trace_verify_lines(&lines, sandbox, head, ret, e);
}
