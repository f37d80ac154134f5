/* SPDX-License-Identifier: Apache-2.0 */
/* cay serve --restart: the running server is replaced by the program that is on disk now. */
#pragma once

#include "base/err.h"

/* socket: NULL for the one in the state directory. Waits until the new program serves. */
int serve_restart(const char *state_dir, const char *socket, struct err *e);
