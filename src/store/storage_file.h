/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two files of storage: its names, and the mount. */
#pragma once

#include "store/state.h"

#define POOL_DIR    "pool"
#define POOL_IMAGE  "pool.img"
#define POOL_NEW    "pool.img.new" /* while it is made */
#define POOL_MARK   ".cay-pool"
#define POOL_LAYERS "layers"

/* Mount the image on its directory, unless it is mounted. */
int pool_mount(const struct state *s, struct err *e);
