/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzzer is one file with LLVMFuzzerTestOneInput(). libFuzzer drives it with inputs of its
 * own (make fuzz); run_corpus.c drives it with the files of corpus/NAME as a plain test.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A claim about the code under test; an input that breaks it is a finding. */
#define FUZZ_CHECK(cond) ((cond) ? (void)0 : __builtin_trap())
