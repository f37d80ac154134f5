/* SPDX-License-Identifier: Apache-2.0 */
/* One file operation inside a sandbox: a call with the rights of its user. */
#pragma once

#include "api/e2b/file.h"
#include "api/v1/v1.h"

struct v1_file {
	struct v1 *v;
	struct box_call call;
	char path[LIMIT_PATH], user[64];
	struct file_complaint complaint;
	struct buf out; /* of a small command */
	bool too_long;
	size_t held; /* passed on, and not taken by the client yet */
	bool begun, body_over;
	uint64_t from, n; /* of a range; n 0: all */
	enum call_op op;
	void (*done)(struct v1_file *f);
};

/* Takes path and user from the query. NULL: refused. */
struct v1_file *v1_file_new(struct v1 *v);
/* Answer with the status that fits what the operation complained about. */
void v1_file_refuse(struct v1_file *f, int code, const struct err *why);
/*
 * Run a script with the path as $2 and `other` as $3 (file_scripts.c); then done() with its output
 * in f->out, unless it was refused.
 */
void v1_file_run(struct v1_file *f, struct box *b, const char *script, const char *other,
		 void (*done)(struct v1_file *f));
static inline struct v1_file *v1_file_of(struct link_call *c)
{
	return container_of(container_of(c, struct box_call, call), struct v1_file, call);
}

/* Exit codes of the scripts. */
enum { FILE_NO_SUCH = 44, FILE_EXISTS = 17, FILE_WRONG_TYPE = 20 };
extern const char file_stat_script[];
