/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

int tree_open(int dirfd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
	};
	long fd;

	/* EAGAIN: a rename elsewhere made the kernel unsure about "..", although there is none. */
	do {
		fd = syscall(SYS_openat2, dirfd, path[0] ? path : ".", &how, sizeof how);
	} while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	return fd < 0 ? -errno : (int)fd;
}
