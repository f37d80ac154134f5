/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/attrs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"

static const char *const overlay_prefix[] = { "trusted.overlay.", "user.overlay." };

/* Extended attributes have no calls that take O_PATH descriptors; their /proc names work. */
static void proc_name(int fd, char out[32])
{
	(void)snprintf(out, 32, "/proc/self/fd/%d", fd);
}

static bool is_overlay(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(overlay_prefix); i++)
		if (strncmp(name, overlay_prefix[i], strlen(overlay_prefix[i])) == 0)
			return true;
	return false;
}

static bool is_wanted(const char *name, int flags)
{
	const char *dot = strrchr(name, '.');

	if (!is_overlay(name))
		return true;
	return (flags & ATTRS_OPAQUE) && strcmp(dot, ".opaque") == 0;
}

static int copy_one(const char *from, const char *to, const char *name, char *value)
{
	ssize_t n = getxattr(from, name, value, LIMIT_XATTRS);

	if (n < 0)
		return errno == ENODATA ? 0 : -errno;
	return setxattr(to, name, value, (size_t)n, 0) < 0 ? -errno : 0;
}

static int copy_xattrs(int from_fd, int to_fd, int flags)
{
	char from[32], to[32];
	auto_free char *names = NULL, *value = NULL;
	ssize_t n;

	proc_name(from_fd, from);
	proc_name(to_fd, to);
	n = listxattr(from, NULL, 0);
	if (n <= 0)
		return n == 0 || errno == ENOTSUP ? 0 : -errno;
	names = malloc(LIMIT_XATTRS + 1);
	value = malloc(LIMIT_XATTRS);
	if (!names || !value)
		return -ENOMEM;
	n = listxattr(from, names, LIMIT_XATTRS);
	if (n < 0)
		return -errno;
	for (const char *at = names; at < names + n; at += strlen(at) + 1) {
		int r = is_wanted(at, flags) ? copy_one(from, to, at, value) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

int attrs_copy(int from, int to, int flags)
{
	char name[32];
	struct stat a, b;
	int r;

	proc_name(to, name);
	if (fstat(from, &a) < 0 || fstat(to, &b) < 0)
		return -errno;
	if ((a.st_uid != b.st_uid || a.st_gid != b.st_gid) &&
	    fchownat(to, "", a.st_uid, a.st_gid, AT_EMPTY_PATH) < 0)
		return -errno;
	/* After the owner, whose change takes away some bits. A link has no mode. */
	if (!S_ISLNK(a.st_mode) && chmod(name, a.st_mode & 07777) < 0)
		return -errno;
	/* Neither a link nor a special file has those that users may set; the rest is root's. */
	r = S_ISLNK(a.st_mode) ? 0 : copy_xattrs(from, to, flags);
	if (r < 0)
		return r;
	return utimensat(to, "", (struct timespec[]){ a.st_atim, a.st_mtim }, AT_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

bool attrs_is_opaque(int fd)
{
	char path[32], full[64], c;

	proc_name(fd, path);
	for (size_t i = 0; i < ARRAY_LEN(overlay_prefix); i++) {
		(void)snprintf(full, sizeof full, "%sopaque", overlay_prefix[i]);
		/* "x" says something else, about whiteouts. */
		if (getxattr(path, full, &c, 1) == 1)
			return c == 'y';
	}
	return false;
}

int attrs_set_opaque(int fd, bool privileged)
{
	char path[32], full[64];

	proc_name(fd, path);
	(void)snprintf(full, sizeof full, "%sopaque", overlay_prefix[privileged ? 0 : 1]);
	return setxattr(path, full, "y", 1, 0) < 0 ? -errno : 0;
}
