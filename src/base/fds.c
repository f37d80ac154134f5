/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fds.h"

#include <string.h>
#include <unistd.h>

int fds_take(const struct msghdr *m, int *fds, int room)
{
	int came = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR((struct msghdr *)m, h)) {
		size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
			if (came++ < room)
				fds[came - 1] = fd;
			else
				(void)close(fd);
		}
	}
	return came;
}
