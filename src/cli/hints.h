/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints that the command line adds to errors. Operations name no command and no option. Their
 * errors have a code, which maps to a hint here, and a field, which maps to an option here.
 */
#pragma once

#include "base/err.h"

/* The option of a field ("dirs[0]" is --dir), or NULL. */
const char *hint_option(const char *field);
/* Writes advice to out; empty if there is none. An error's own hint takes precedence. */
void hint_text(const struct err *e, char *out, size_t size);
/* The message, with the option that it concerns. */
void hint_message(const struct err *e, char *out, size_t size);
