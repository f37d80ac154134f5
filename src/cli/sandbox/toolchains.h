/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --toolchains: shows toolchains from the caller's home read-only in the home inside, and adds them
 * to PATH. From ~/.cargo it shows only the programs: other files there may hold registry tokens.
 */
#pragma once

#include "base/err.h"
#include "cli/sandbox/sandbox_options.h"

enum { TOOLCHAIN_MOUNTS = 5, TOOLCHAIN_ENV = 4 };

/*
 * Adds mounts and variables to s, which must have room for these and their texts. has_path: the
 * caller has set PATH. home: the caller's home, or NULL.
 */
int toolchains_add(struct sandbox_spec *s, const char *home, bool has_path, struct err *e);
