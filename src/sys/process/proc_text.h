/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in /proc: lines, and values after a key at the start of a line. */
#pragma once

#include "base/str.h"

/* Take the next line, without its newline, from *text. False at the end. */
bool proc_line(struct str *text, struct str *ret);
/* The value after `key` ("CapEff:") and blanks; empty if there is no such line. */
struct str proc_value(struct str text, const char *key);
