/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* A sealed copy of a program in memory: a process that runs it cannot change it. fd or -errno. */
int memfd_program(const char *path, const char *name);
/* Zeroed memory of exactly this size, for others to map. fd or -errno. */
int memfd_shared(const char *name, size_t size);
