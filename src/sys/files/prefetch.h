/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetch paths that a command will need: look them up, without opening them, while nothing else
 * is waiting. The sandbox's overlay then caches the result and need not search its layers later.
 * Missing paths are ignored. Only before anything has run inside.
 */
#pragma once

#include "base/str.h"

/* Paths relative to the sandbox's root. */
void prefetch(int root_fd, const char *const *names, size_t n);
/* Paths that nearly every command needs. */
void prefetch_usual(int root_fd);
/* A program, searched in the usual PATH. */
void prefetch_program(int root_fd, struct str name);
