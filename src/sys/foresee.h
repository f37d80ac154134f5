/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command will need is found ahead, by name only, while there is nothing else to do: the
 * sandbox's file systems then know where it is, and need not ask their layers while somebody waits.
 * Nothing is opened or read, and what the template does not have is not missed. Only where nothing
 * has run yet.
 */
#pragma once

#include "base/str.h"

/* Paths from the sandbox's root. */
void foresee(int root_fd, const char *const *names, size_t n);
/* What nearly every command needs. */
void foresee_usual(int root_fd);
/* A program, as it will be looked for where the path is the usual one. */
void foresee_program(int root_fd, struct str name);
