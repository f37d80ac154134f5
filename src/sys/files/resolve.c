/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/files/resolve.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sys/process/raw.h"

enum { RETRIES = 128 };

/* A concurrent rename anywhere makes the kernel return EAGAIN: retry. */
static int open_retrying(int dirfd, const char *path, const struct raw_open_how *how)
{
	for (int i = 0;; i++) {
		int fd = raw_openat2(dirfd, path, how);

		if (fd >= 0)
			return fd;
		if ((errno != EAGAIN && errno != EINTR) || i == RETRIES)
			return -errno;
	}
}

int resolve_open(int root_fd, const char *path, int flags)
{
	struct raw_open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RAW_RESOLVE_IN_ROOT | RAW_RESOLVE_NO_MAGICLINKS,
	};

	return open_retrying(root_fd, path, &how);
}

int resolve_beneath(int dir_fd, const char *path, int flags, mode_t mode)
{
	struct raw_open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve =
			RAW_RESOLVE_BENEATH | RAW_RESOLVE_NO_SYMLINKS | RAW_RESOLVE_NO_MAGICLINKS,
	};

	return open_retrying(dir_fd, path, &how);
}

/* Open the directory `name` below parent; make it if missing. */
static int open_or_make(int root_fd, int parent, const char *so_far, const char *name, mode_t mode,
			uid_t uid, gid_t gid)
{
	int fd = resolve_open(root_fd, so_far, O_PATH | O_DIRECTORY);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(parent, name, mode) < 0)
		return -errno;
	if (fchownat(parent, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return resolve_beneath(parent, name, O_PATH | O_DIRECTORY, 0);
}

int resolve_mkdirs(int root_fd, const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	char so_far[LIMIT_PATH], *save = NULL, *name;
	char copy[LIMIT_PATH];
	size_t at = 0;
	auto_close int dir = resolve_open(root_fd, "/", O_PATH | O_DIRECTORY);

	if (dir < 0)
		return dir;
	if (strlen(path) >= sizeof copy - 1)
		return -ENAMETOOLONG;
	memcpy(copy, path, strlen(path) + 1);
	for (name = strtok_r(copy, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		size_t n = strlen(name);
		int next;

		so_far[at++] = '/';
		memcpy(so_far + at, name, n + 1);
		at += n;
		next = open_or_make(root_fd, dir, so_far, name, mode, uid, gid);
		if (next < 0)
			return next;
		fd_close(&dir);
		dir = next;
	}
	return TAKE_FD(dir);
}

int resolve_mkfile(int root_fd, const char *path, uid_t uid, gid_t gid)
{
	char parent[LIMIT_PATH];
	const char *slash = strrchr(path, '/');
	auto_close int dir = FD_NONE;
	int fd = resolve_open(root_fd, path, O_PATH);

	if (fd != -ENOENT)
		return fd;
	if (!slash || (size_t)(slash - path) >= sizeof parent - 1)
		return -EINVAL;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	dir = resolve_mkdirs(root_fd, parent[0] ? parent : "/", 0755, uid, gid);
	if (dir < 0)
		return dir;
	fd = resolve_beneath(dir, slash + 1, O_CREAT | O_EXCL | O_WRONLY, 0644);
	if (fd < 0)
		return fd;
	(void)close(fd);
	if (fchownat(dir, slash + 1, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return resolve_beneath(dir, slash + 1, O_PATH, 0);
}
