/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people write them: exact, no exponents, no signs. All return 0 or -1. */
#pragma once

#include <stdint.h>

/* Bytes: 512M, 2G, 1.5G, 64K, 1T; a bare number is bytes; more than 0. */
int size_parse(const char *text, uint64_t *ret_bytes);
/* 1 or more. */
int count_parse(const char *text, uint64_t *ret);
/* Thousandths: 2, 0.5, 1.25; more than 0. */
int number_parse(const char *text, uint64_t *ret_milli);
