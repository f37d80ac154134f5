/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two files of storage: its names, and the mount. */
#pragma once

#include "store/state.h"

#define STORAGE_DIR    "storage"
#define STORAGE_IMAGE  "storage.img"
#define STORAGE_NEW    "storage.img.new" /* while it is made */
#define STORAGE_MARK   ".cay-storage"
#define STORAGE_LAYERS "layers"

/* Mount the image on its directory, unless it is mounted. */
int storage_mount(const struct state *s, struct err *e);
