/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command line says beside an error. Operations name no command and no option: their
 * errors have a code, which has a hint here, and a field, which has an option here.
 */
#pragma once

#include "base/err.h"

/* The option of a field ("dirs[0]" is --dir), or NULL. */
const char *hint_option(const char *field);
/* What to do about it, in out; empty where nothing is known. An error's own hint goes first. */
void hint_text(const struct err *e, char *out, size_t size);
/* The message with the option that it is about. */
void hint_message(const struct err *e, char *out, size_t size);
