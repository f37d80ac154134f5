/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/files/voltree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/str.h"
#include "sys/files/btrfs.h"
#include "sys/files/rmtree.h"

enum { LEVELS = 2 };

static void dir_free(DIR *d)
{
	(void)closedir(d);
}
DEFINE_AUTO_PTR(DIR, dir_free)

/* name is one component. In an ordinary directory, remove only the subvolumes. */
static int remove_volumes(int dirfd, const char *name, int levels)
{
	auto_done(dir_free) DIR *d = NULL;
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;

	if (fd < 0 || !btrfs_is(fd)) {
		fd_close(&fd);
		return 0;
	}
	if (btrfs_is_subvolume(fd)) {
		fd_close(&fd);
		return btrfs_delete(dirfd, name);
	}
	d = levels > 0 ? fdopendir(fd) : NULL;
	if (!d) {
		fd_close(&fd);
		return 0;
	}
	for (struct dirent *x = readdir(d); x && r == 0; x = readdir(d))
		if (x->d_type == DT_DIR && strcmp(x->d_name, ".") != 0 &&
		    strcmp(x->d_name, "..") != 0)
			r = remove_volumes(fd, x->d_name, levels - 1);
	return r;
}

int voltree_remove(int dirfd, const char *name)
{
	const char *slash = strrchr(name, '/');
	auto_close int parent = FD_NONE;
	char path[LIMIT_PATH];
	int r;

	if (slash) {
		if (!str_copy(path, sizeof path, (struct str){ name, (size_t)(slash - name) }))
			return -ENAMETOOLONG;
		parent = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (parent < 0)
			return errno == ENOENT ? 0 : -errno;
		dirfd = parent;
		name = slash + 1;
	}
	r = remove_volumes(dirfd, name, LEVELS);
	return r < 0 && r != -ENOENT ? r : rmtree_at(dirfd, name);
}
