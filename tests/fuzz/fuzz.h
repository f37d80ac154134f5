/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzzer is one file with LLVMFuzzerTestOneInput(). libFuzzer drives it with inputs of its
 * own (make fuzz); run_corpus.c drives it with the files of corpus/NAME as a plain test.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A claim about the code under test; an input that breaks it is a finding. */
#define FUZZ_CHECK(cond) ((cond) ? (void)0 : __builtin_trap())

/* The input in memory of its own size, so that a read past its end is seen by ASan. */
static inline char *exact_copy(const uint8_t *data, size_t size)
{
	char *p = malloc(size ? size : 1);

	FUZZ_CHECK(p != NULL);
	if (size)
		memcpy(p, data, size);
	return p;
}
