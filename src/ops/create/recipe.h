/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox is built of, as the fields of MSG_C_BUILD that are not its own alone. */
#pragma once

#include "image/template.h"
#include "ops/create/creation.h"

/* The recipe of n, and its top, for this plan; may open the catalog. */
int recipe_write(struct creation *n, struct create_plan *p, struct err *e);
/* The template's own mounts. 0 or -errno. */
int recipe_put_template(struct buf *b, const struct template *t);
