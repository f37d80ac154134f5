/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>

#include "base/dir.h"
#include "store/snapshots.h"

/* Depth to which sizes are counted: a sandbox may have made a tree as deep as it liked. */
enum { DEPTH_MAX = 64 };

static uint64_t usage(int parent, const char *name, int depth)
{
	auto_done(dir_free) DIR *d = depth < DEPTH_MAX ? dir_open_at(parent, name) : NULL;
	uint64_t sum = 0;

	for (struct dirent *de = d ? readdir(d) : NULL; de; de = readdir(d)) {
		struct stat st;

		if (dir_is_dots(de->d_name) ||
		    fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			sum += (uint64_t)st.st_blocks * 512 +
			       usage(dirfd(d), de->d_name, depth + 1);
		else
			sum += (uint64_t)st.st_blocks * 512 / (st.st_nlink ? st.st_nlink : 1);
	}
	return sum;
}

uint64_t layers_disk_usage(int parent, const char *name)
{
	return usage(parent, name, 0);
}
