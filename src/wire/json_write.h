/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Append JSON to a buffer. The writer adds commas and colons. It remembers the first failure, and
 * json_done() returns it:
 *
 *	json_init(&j, &b);
 *	json_obj(&j);
 *	json_put_c(&j, "name", "web");
 *	json_put_arr(&j, "calls");
 *	json_u64(&j, 1);
 *	json_end(&j);
 *	json_end(&j);
 *	r = json_done(&j);		{"name":"web","calls":[1]}
 *
 * The text is one compact line and safe on a terminal: C0, C1 and DEL are escaped. A string that is
 * not valid UTF-8 becomes {"b64":"…"}, so no byte is lost. Keys come from our own code and must be
 * valid UTF-8. No name clashes with jansson, which some files also include.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum { JSON_DEPTH = 32 };

struct json {
	struct buf *out; /* borrowed */
	int err; /* the first failure: -ENOMEM, -E2BIG, or -EINVAL for calls in a wrong order */
	int depth;
	uint32_t arrays; /* bit per open level: it is an array */
	uint32_t filled; /* bit per open level: it has a value, so the next one needs a comma */
	bool keyed;	 /* a key waits for its value */
};

void json_init(struct json *j, struct buf *out);
/* 0 if everything was written and closed; else the first failure. -EINVAL if a level is open. */
int json_done(const struct json *j);

void json_obj(struct json *j);
void json_arr(struct json *j);
/* Closes the innermost object or array. */
void json_end(struct json *j);
void json_key(struct json *j, const char *key);

/* Values: an element of an array, the value of a key, or the one value at the top. */
void json_str(struct json *j, struct str value);
void json_c(struct json *j, const char *value); /* NULL: null */
void json_i64(struct json *j, int64_t value);
void json_u64(struct json *j, uint64_t value);
void json_bool(struct json *j, bool value);
void json_nil(struct json *j);
/* Text that is already JSON, from a trusted source. */
void json_raw(struct json *j, struct str text);

/* A key with its value. */
void json_put_obj(struct json *j, const char *key);
void json_put_arr(struct json *j, const char *key);
void json_put_str(struct json *j, const char *key, struct str value);
void json_put_c(struct json *j, const char *key, const char *value);
void json_put_i64(struct json *j, const char *key, int64_t value);
void json_put_u64(struct json *j, const char *key, uint64_t value);
void json_put_bool(struct json *j, const char *key, bool value);
void json_put_nil(struct json *j, const char *key);
void json_put_raw(struct json *j, const char *key, struct str text);
/* Empty text is null, too. */
void json_put_text(struct json *j, const char *key, const char *value);
/* Microseconds as milliseconds with a fraction. */
void json_put_ms(struct json *j, const char *key, uint64_t us);
