/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe what this host supports by trying it. Each probe_X() fills one struct of plain facts and
 * leaves nothing behind; cli/doctor_* interprets the facts. An outcome is 0 (it works), -errno (why
 * it does not) or PROBE_UNTRIED.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum {
	PROBE_UNTRIED = 1,
	PROBE_TEXT_MAX = 4 << 20,
	PROBE_TIMEOUT_MS = 5000, /* against hangs; long enough for a busy host */
};

/*
 * Run fn in a child, which may enter namespaces, install filters or hang. *result is copied to the
 * child and back. If the child takes too long (-ETIMEDOUT) or dies (-EIO), *result holds what the
 * child wrote so far.
 */
int probe_in_child(void (*fn)(void *result, const void *arg), void *result, size_t size,
		   const void *arg, int timeout_ms);

/* In a child: enter a user namespace that maps the caller's ids to `inside`. 0 or -errno. */
int probe_enter_userns(unsigned inside);

/* The number in a small file; -1 if there is none. */
long probe_number(const char *path);
/* A small file without its final newline; empty if it cannot be read. */
void probe_text(const char *path, char *out, size_t size);
/* Append the file; false if it cannot be read. */
bool probe_file(const char *path, struct buf *b);
/* Take the next line from *rest; false at the end. */
bool probe_line(struct str *rest, struct str *ret);
/* Cut *rest at the next c and drop the c; take all of it if there is no c. */
struct str probe_until(struct str *rest, char c);
/* True if text contains `word`, delimited by bytes of `sep` or the ends of text. */
bool probe_has_word(struct str text, const char *sep, const char *word);
