/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a request's body, each with its type and range. A wrong one is INVALID and named. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

/* Absent and null leave *ret as it is. */
int field_text(const json_t *o, const char *key, const char **ret, struct err *e);
int field_bool(const json_t *o, const char *key, bool *ret, struct err *e);
/* A whole number from `least` to `most`. */
int field_number(const json_t *o, const char *key, int64_t least, int64_t most, int64_t *ret,
		 struct err *e);

/* "K=V" of each member of an object of texts; owned. */
struct text_pairs {
	char **items;
	int n;
};
/* LIMIT of `most` members. */
int field_pairs(const json_t *o, const char *key, int most, struct text_pairs *ret, struct err *e);
void text_pairs_done(struct text_pairs *p);
DEFINE_AUTO(struct text_pairs, text_pairs_done)
