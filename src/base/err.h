/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One error value, owned by the caller, never allocated.
 *
 * base/, wire/, sys/ and loop/ return 0 or -errno. Everything above takes a trailing
 * `struct err *` and returns 0 or -1; on -1 the error is filled, on 0 untouched.
 * Each kind is one row: name, HTTP status, CLI exit code. Nothing else maps them.
 */
#pragma once

#include <stddef.h>

#define ERR_KINDS(X) \
	X(NONE, "none", 200, 0) \
	X(FAILED, "failed", 500, 1) \
	X(INVALID, "invalid", 400, 2) \
	X(CONFLICT, "conflict", 409, 1) \
	X(LIMIT, "limit", 429, 1) \
	X(UNAVAILABLE, "unreachable", 503, 3) \
	X(NOT_ALLOWED, "not_allowed", 403, 4) \
	X(NOT_FOUND, "not_found", 404, 5) \
	X(DENIED, "denied_by_policy", 403, 6) \
	X(TIMEOUT, "timeout", 504, 1) \
	X(SYS, "system", 500, 1)

enum err_kind {
#define X(id, name, http, code) ERR_##id,
	ERR_KINDS(X)
#undef X
		ERR_KIND_COUNT
};

struct err {
	enum err_kind kind;
	int sys;	/* errno, or 0 */
	char msg[480];	/* what happened, to what */
	char hint[240]; /* what to do about it, or empty */
};

#define ERR_FMT(a, b) __attribute__((format(printf, a, b), cold))
/* All return -1, so that the failing path is one `return`. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) ERR_FMT(3, 4);
int err_sys(struct err *e, int errnum, const char *fmt, ...) ERR_FMT(3, 4);
/* Put context before the message that is there. */
int err_ctx(struct err *e, const char *fmt, ...) ERR_FMT(2, 3);
/* Say what to do next. */
int err_hint(struct err *e, const char *fmt, ...) ERR_FMT(2, 3);

const char *err_name(enum err_kind kind);
int err_http(enum err_kind kind);
int err_exit(enum err_kind kind);
/* The kind of a name, or ERR_FAILED for one that is not known. */
enum err_kind err_kind_of(const char *name);
