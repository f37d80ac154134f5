/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host gives, found out by trying it. A probe_X() fills one struct of plain facts and
 * leaves nothing behind; deciding what the facts mean is left to others (cli/doctor_*).
 * An outcome is 0 (it works), -errno (why it does not) or PROBE_UNTRIED.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum {
	PROBE_UNTRIED = 1,
	PROBE_TEXT_MAX = 4 << 20,
	PROBE_TIMEOUT_MS = 5000, /* against hanging; a busy host must not look like a bad one */
};

/*
 * Run fn in a child, which may then enter namespaces, install filters or hang. *result travels
 * there and back, and is what the child made of it until then where it is killed for taking
 * longer (-ETIMEDOUT) or dies (-EIO).
 */
int probe_in_child(void (*fn)(void *result, const void *arg), void *result, size_t size,
		   const void *arg, int timeout_ms);

/* In a child: a user namespace in which the caller's ids are `inside`. 0 or -errno. */
int probe_enter_userns(unsigned inside);

/* The number in a small file; -1 where there is none. */
long probe_number(const char *path);
/* A small file without the newline at its end; empty where it cannot be read. */
void probe_text(const char *path, char *out, size_t size);
/* Append the file; false where it cannot be read. */
bool probe_file(const char *path, struct buf *b);
/* The next line of *rest, which is shortened by it; false at the end. */
bool probe_line(struct str *rest, struct str *ret);
/* The part of *rest before the next c, which is dropped; all of it where there is no c. */
struct str probe_until(struct str *rest, char c);
/* Whether `word` stands in text, between any of the bytes of `sep` or its ends. */
bool probe_has_word(struct str text, const char *sep, const char *word);
