/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of /proc: lines, and values that follow a key at the beginning of a line. */
#pragma once

#include "base/str.h"

/* The next line without its end, which *text is left behind. False: there is none. */
bool proc_line(struct str *text, struct str *ret);
/* What follows `key` ("CapEff:") and blanks; empty where there is no such line. */
struct str proc_value(struct str text, const char *key);
