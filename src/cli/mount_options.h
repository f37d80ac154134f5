/* SPDX-License-Identifier: Apache-2.0 */
/* --dir and --ro: what is shown of the host inside a sandbox. */
#pragma once

#include "cli/sandbox_options.h"

/*
 * One PATH[:DEST], where "\:" in either stands for a colon. ret is filled only on success;
 * the caller frees path and dest.
 */
int mount_resolve(const char *text, bool ro, const struct state *s, struct sandbox_mount *ret,
		  struct err *e);
