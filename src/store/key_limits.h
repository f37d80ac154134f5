/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an API key may do and use. Pure: no I/O.
 *
 * Each limit has three sources, in this order: the key, `cay serve`, the built-in value. 0 means
 * that the source says nothing; KEY_LIMIT_NONE means that there is no limit.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum key_limit {
	/* of all sandboxes of the key together */
	KEY_SANDBOXES, /* alive */
	KEY_MEMORY,    /* bytes */
	KEY_CPU_MILLI,
	KEY_SNAPSHOTS,
	/* of the key's requests */
	KEY_RATE,  /* creations per minute */
	KEY_CALLS, /* requests and streams at once */
	/* of each sandbox: what it gets, and the most that it may ask for */
	KEY_BOX_MEMORY,
	KEY_BOX_CPU_MILLI,
	KEY_BOX_PIDS,
	KEY_BOX_DISK,
	KEY_LIMITS
};

#define KEY_LIMIT_NONE ((uint64_t)INT64_MAX)

/* What a request does. */
enum key_scope {
	SCOPE_READ = 1,	     /* list, info, metrics */
	SCOPE_CREATE = 2,    /* sandboxes, from templates and snapshots; forks */
	SCOPE_USE = 4,	     /* change, pause, end; run commands, use files */
	SCOPE_NETWORK = 8,   /* give sandboxes a network, change its policy */
	SCOPE_SNAPSHOT = 16, /* take and delete snapshots */
	SCOPE_ALL = 31,
};

struct key_limits {
	uint64_t of[KEY_LIMITS];
	unsigned scope; /* bits of key_scope; 0: not said */
};

/* How a limit is written: "sandboxes", "sandbox-memory". Also its option of the command line. */
const char *key_limit_name(enum key_limit which);
/* The built-in values, with every limit set. */
void key_limits_default(struct key_limits *ret);
/* Take over what `over` says. */
void key_limits_merge(struct key_limits *l, const struct key_limits *over);

/* "sandboxes=5 memory=1073741824 scope=read,use": only what is said. 0 or -errno. */
int key_limits_put(const struct key_limits *l, struct buf *out);
/* -EBADMSG for anything that key_limits_put() does not write. */
int key_limits_read(struct str text, struct key_limits *ret);
/* "read,create", "run" or "all" for all of them. -EINVAL. */
int key_scope_read(struct str text, unsigned *ret);
int key_scope_put(unsigned scope, struct buf *out);

/* What sandboxes take, or one sandbox would. */
struct key_use {
	uint64_t sandboxes, memory, cpu_milli, pids, disk; /* 0: without a limit */
};
/*
 * Whether one sandbox more fits beside those that exist. NOT_ALLOWED if the key may never have such
 * a sandbox, LIMIT if it has too many now; codes quota.*.
 */
int key_limits_admit(const struct key_limits *l, const struct key_use *now,
		     const struct key_use *more, struct err *e);
