/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA256 (RFC 2104), and comparison of secrets. */
#pragma once

#include <stdbool.h>

#include "base/sha256.h"
#include "base/str.h"

void hmac_sha256(struct str key, struct str text, uint8_t out[SHA256_SIZE]);
/* Constant time: does not reveal where they differ. */
bool secret_eq(struct str a, struct str b);
