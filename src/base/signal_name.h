/* SPDX-License-Identifier: Apache-2.0 */
/* Names of signals, which only one of our two C libraries knows. */
#pragma once

#include <stdint.h>

/* KILL, TERM, ...; NULL where the number is none, or of a real-time signal, which has no name. */
const char *signal_name(int64_t sig);
