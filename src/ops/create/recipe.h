/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe of a sandbox: the fields of MSG_C_BUILD that are not specific to it. */
#pragma once

#include "image/template.h"
#include "ops/create/creation.h"

/* Writes the recipe and the top layer of n for this plan. May open the catalog. */
int recipe_write(struct creation *n, struct create_plan *p, struct err *e);
/* Adds the template's own mounts. Returns 0 or -errno. */
int recipe_put_template(struct buf *b, const struct template *t);
