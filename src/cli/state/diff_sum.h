/* SPDX-License-Identifier: Apache-2.0 */
/* How much two sandboxes or snapshots differ. */
#pragma once

#include "cli/state/diff_print.h"
#include "ops/diff_view.h"

int diff_sum(const struct diff_view *old, const struct diff_view *new, struct diff_totals *ret,
	     struct err *e);
/* Host names, /etc/hosts and machine ids differ in every sandbox: we wrote them. */
bool diff_is_identity(const char *dest, const struct diff_entry *en);
