/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one fuzzer over random inputs that are the same each time: TAP, one line per seed. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

enum { SEEDS = 20, INPUTS = 500, LENGTH = 2048 };

static uint32_t next(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

static void run_seed(uint32_t seed)
{
	uint8_t data[LENGTH];

	for (int i = 0; i < INPUTS; i++) {
		size_t n = next(&seed) % sizeof data;

		for (size_t at = 0; at < n; at++)
			data[at] = (uint8_t)(next(&seed) >> 7);
		(void)LLVMFuzzerTestOneInput(data, n);
	}
}

int main(void)
{
	int failed = 0;

	printf("1..%d\n", SEEDS);
	for (uint32_t seed = 1; seed <= SEEDS; seed++) {
		int st = 1;
		pid_t pid;

		(void)fflush(stdout);
		pid = fork();
		if (pid == 0) {
			(void)alarm(60);
			run_seed(seed * 2654435761u);
			exit(0);
		}
		if (pid > 0 && waitpid(pid, &st, 0) == pid && st == 0)
			printf("ok %u - seed %u\n", seed, seed);
		else
			printf("not ok %u - seed %u: wait status %d\n", seed, seed, st);
		failed += st != 0;
	}
	return failed != 0;
}
