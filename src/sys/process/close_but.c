/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/process/close_but.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/process/raw.h"

static int by_number(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

int close_but(int *keep, int n)
{
	unsigned from = STDERR_FILENO + 1;

	qsort(keep, (size_t)n, sizeof *keep, by_number);
	for (int i = 0; i < n; i++) {
		if (keep[i] < (int)from)
			continue;
		if (keep[i] > (int)from && raw_close_range(from, (unsigned)keep[i] - 1) < 0)
			return -errno;
		from = (unsigned)keep[i] + 1;
	}
	return raw_close_range(from, ~0u) < 0 ? -errno : 0;
}
