/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files of the pool: its names, and the mount. */
#pragma once

#include "store/state.h"

#define POOL_DIR    "pool"
#define POOL_IMAGE  "pool.img"
#define POOL_NEW    "pool.img.new" /* while it is being made */
#define POOL_MARK   ".cay-pool"
#define POOL_LAYERS "layers"

/* The image onto its directory, unless it is there. */
int pool_mount(const struct state *s, struct err *e);
