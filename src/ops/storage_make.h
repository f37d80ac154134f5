/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes storage: store/storage.h. All functions need root. */
#pragma once

#include "store/storage.h"

/* CONFLICT if it already exists. */
int storage_make_image(const struct state *s, uint64_t size, struct err *e);
int storage_take_dir(const struct state *s, const char *path, struct err *e);
/* CONFLICT if it holds sandboxes or layers. No error if there is none. */
int storage_unmake(const struct state *s, struct err *e);
