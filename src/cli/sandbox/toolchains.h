/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --toolchains: what the caller has installed in the own home, shown read-only in the home inside,
 * with PATH for it. Of ~/.cargo only the programs: the rest can hold tokens of a registry.
 */
#pragma once

#include "base/err.h"
#include "cli/sandbox/sandbox_options.h"

enum { TOOLCHAIN_MOUNTS = 5, TOOLCHAIN_ENV = 4 };

/*
 * Add mounts and variables to s, which has room for these and for the texts of both. has_path: the
 * caller has set PATH. home: the caller's, or NULL.
 */
int toolchains_add(struct sandbox_spec *s, const char *home, bool has_path, struct err *e);
