/* SPDX-License-Identifier: Apache-2.0 */
/* /var of the base layer: empty except for what dpkg and apt need to know what is installed. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* layer: root of the layer, without var. */
int host_var_make(int layer, struct buf *report, struct err *e);
