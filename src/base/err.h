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

/*
 * Front ends use code, field and about. The message itself names no command and no option: the
 * command line finds its hint by the code (cli/hints.c), and an HTTP front end has its own text.
 * hint is for errors that have no code yet.
 */
struct err {
	enum err_kind kind;
	int sys;	/* errno, or 0 */
	char code[32];	/* stable, for programs: "sandbox.busy"; or empty */
	char field[32]; /* the wrong field of the spec: "dirs[0].path"; or empty */
	char about[80]; /* what a hint may show, such as an id; or empty */
	char msg[480];	/* what happened, to what */
	char hint[240]; /* what to do about it, or empty */
};

#define ERR_FMT(a, b) __attribute__((format(printf, a, b), cold))
/* All return -1, so that the failing path is one `return`. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) ERR_FMT(3, 4);
int err_sys(struct err *e, int errnum, const char *fmt, ...) ERR_FMT(3, 4);
/* Put context in front of the current message. */
int err_ctx(struct err *e, const char *fmt, ...) ERR_FMT(2, 3);
/* Give the current error a code. `about` is what its hint may show (NULL: nothing). */
int err_code(struct err *e, const char *code, const char *about);
/* Name the spec field that is wrong. */
int err_field(struct err *e, const char *fmt, ...) ERR_FMT(2, 3);
/* Say what to do next. */
int err_hint(struct err *e, const char *fmt, ...) ERR_FMT(2, 3);

const char *err_name(enum err_kind kind);
int err_http(enum err_kind kind);
int err_exit(enum err_kind kind);
/* The kind with this name, or ERR_FAILED for an unknown name. */
enum err_kind err_kind_of(const char *name);
