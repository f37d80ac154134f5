/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes from the kernel, good enough for keys. */
#pragma once

#include <stddef.h>

/* Fill p with n bytes. 0 or -errno. */
int random_bytes(void *p, size_t n) __attribute__((warn_unused_result));
