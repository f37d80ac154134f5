/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole warden on the fake driver (src/warden/fixture.h), and an input that says what its
 * clients, its init, its driver and the clock do. Whatever they do, the warden ends when it is told
 * to, and leaves nothing behind: fx_end() checks that.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Who is hostile: the other side does what a good one would. */
enum fuzz_who { FUZZ_CLIENTS, FUZZ_INIT };

void fuzz_warden(enum fuzz_who who, const uint8_t *data, size_t size);
