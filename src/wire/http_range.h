/* SPDX-License-Identifier: Apache-2.0 */
/* The Range header (RFC 9110 14): one range of bytes. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

/*
 * value: of Range. size: of the file. Returns:
 * - 1: send *ret_n bytes from *ret_from, status 206
 * - 0: send everything, status 200; also for other units, several ranges and malformed values
 * - -ERANGE: status 416
 */
int http_range_parse(struct str value, uint64_t size, uint64_t *ret_from, uint64_t *ret_n);
/* Append "bytes FROM-TO/SIZE"; with n 0: "bytes *" "/SIZE" for 416. */
int http_range_put(struct buf *b, uint64_t from, uint64_t n, uint64_t size);
