/* SPDX-License-Identifier: Apache-2.0 */
/* Checks which host paths may be shown inside a sandbox, and where. */
#pragma once

#include "ops/create/create_check.h"

/* Fills ret only on success; the caller frees path and dest. */
int mount_check(const struct state *s, const struct mount_spec *spec, bool ro,
		struct plan_mount *ret, struct err *e);
