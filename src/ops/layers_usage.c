/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "ops/layers_free.h"
#include "store/snapshots.h"

/* Sizes count down to this depth: a sandbox can make a tree of any depth. */
enum { DEPTH_MAX = 64, NAME_BYTES = 512 };

/* each: added per name, in addition to its blocks. */
static uint64_t usage(int parent, const char *name, uint64_t each, int depth)
{
	auto_done(dir_free) DIR *d = depth < DEPTH_MAX ? dir_open_at(parent, name) : NULL;
	uint64_t sum = 0;

	for (struct dirent *de = d ? readdir(d) : NULL; de; de = readdir(d)) {
		struct stat st;

		if (dir_is_dots(de->d_name) ||
		    fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		sum += each;
		if (S_ISDIR(st.st_mode))
			sum += (uint64_t)st.st_blocks * 512 +
			       usage(dirfd(d), de->d_name, each, depth + 1);
		else
			sum += (uint64_t)st.st_blocks * 512 / (st.st_nlink ? st.st_nlink : 1);
	}
	return sum;
}

uint64_t layers_disk_usage(int parent, const char *name)
{
	return usage(parent, name, 0, 0);
}

uint64_t layers_copy_cost(int layer)
{
	return usage(layer, ".", NAME_BYTES, 0);
}
