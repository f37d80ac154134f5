/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The home of the sandbox's user: what useradd would copy from /etc/skel, and a place of the user's
 * own for programs (`pip install --user`, `npm install -g`), which init puts into PATH.
 */
#pragma once

#include "base/err.h"

/* layer: has etc and home/user already. */
int host_home_make(int layer, struct err *e);
