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

	/*
	 * EAGAIN: a rename elsewhere made the kernel uncertain about "..", although there is none.
	 * Retry.
	 */
	do {
		fd = syscall(SYS_openat2, dirfd, path[0] ? path : ".", &how, sizeof how);
	} while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	return fd < 0 ? -errno : (int)fd;
}

int tree_check_size(const struct tree_counts *n, uint64_t more, uint64_t max, struct err *e)
{
	if (!max || (more <= max && n->bytes <= max - more))
		return 0;
	return err_set(e, ERR_LIMIT, "the copy is larger than --max-size, %llu bytes",
		       (unsigned long long)max);
}
