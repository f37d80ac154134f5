/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox is built of, as the fields of MSG_C_BUILD that are not its own alone. */
#pragma once

#include "cli/newborn.h"
#include "image/template.h"

/* The recipe of n, and its top, for these options; may open the catalog. */
int recipe_write(struct newborn *n, const struct sandbox_opts *o, struct sandbox_plan *p,
		 struct err *e);
/* The template's own mounts. 0 or -errno. */
int recipe_put_template(struct buf *b, const struct template *t);
