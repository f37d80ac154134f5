/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "store/snapshots.h"

/* Depth to which sizes are counted: a sandbox may have made a tree as deep as it liked. */
enum { DEPTH_MAX = 64 };

static void dir_free(DIR *d)
{
	(void)closedir(d);
}
DEFINE_AUTO_PTR(DIR, dir_free)

static DIR *open_dir(int parent, const char *name)
{
	auto_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d)
		fd = FD_NONE;
	return d;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static uint64_t usage(int parent, const char *name, int depth)
{
	auto_done(dir_free) DIR *d = depth < DEPTH_MAX ? open_dir(parent, name) : NULL;
	uint64_t sum = 0;

	for (struct dirent *de = d ? readdir(d) : NULL; de; de = readdir(d)) {
		struct stat st;

		if (is_dots(de->d_name) ||
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
