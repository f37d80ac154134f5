/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

int random_bytes(void *p, size_t n)
{
	char *at = p;

	while (n > 0) {
		ssize_t got = getrandom(at, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}
