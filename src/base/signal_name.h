/* SPDX-License-Identifier: Apache-2.0 */
/* Signal names. Only one of our two C libraries has them. */
#pragma once

#include <stdint.h>

/* "KILL", "TERM", ...; NULL for an unknown number or a real-time signal. */
const char *signal_name(int64_t sig);
