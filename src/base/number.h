/* SPDX-License-Identifier: Apache-2.0 */
/* Parse numbers as people write them: exact, without exponent or sign. All return 0 or -1. */
#pragma once

#include <stdint.h>

/* Bytes: 512M, 2G, 1.5G, 64K, 1T. A number without unit is bytes. Must be above 0. */
int size_parse(const char *text, uint64_t *ret_bytes);
/* 1 or more. */
int count_parse(const char *text, uint64_t *ret);
/* Thousandths: 2, 0.5, 1.25. Must be above 0. */
int number_parse(const char *text, uint64_t *ret_milli);

enum { NUMBER_TEXT = 24 };
/* "64 MiB" */
const char *number_size(uint64_t bytes, char out[NUMBER_TEXT]);
/* 512B, 1.5K, 20M. */
const char *number_short(uint64_t bytes, char out[NUMBER_TEXT]);
