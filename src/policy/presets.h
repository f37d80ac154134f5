/* SPDX-License-Identifier: Apache-2.0 */
/* What embed.py writes; for presets.c. */
#pragma once

#include "policy/compile.h"

/* Terminated by a row without a name. */
extern const struct policy_preset policy_presets[];
