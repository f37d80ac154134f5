/* SPDX-License-Identifier: Apache-2.0 */
/* The output of embed.py; for presets.c. */
#pragma once

#include "policy/compile.h"

/* A row without a name ends the table. */
extern const struct policy_preset policy_presets[];
