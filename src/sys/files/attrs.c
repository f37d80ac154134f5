/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/files/attrs.h"

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

/* The xattr calls do not accept O_PATH descriptors, but their names in /proc work. */
static void proc_name(int fd, char out[32])
{
	(void)snprintf(out, 32, "/proc/self/fd/%d", fd);
}

const char *attrs_overlay_prefix(bool privileged)
{
	return privileged ? "trusted.overlay." : "user.overlay.";
}

bool attrs_is_overlay(const char *name, bool privileged)
{
	static const char again[] = "overlay.";
	const char *prefix = attrs_overlay_prefix(privileged);
	size_t n = strlen(prefix);

	return strncmp(name, prefix, n) == 0 && strncmp(name + n, again, sizeof again - 1) != 0;
}

static int copy_one(const char *from, const char *to, const char *name, char *value)
{
	ssize_t n = getxattr(from, name, value, LIMIT_XATTRS);

	if (n < 0)
		return errno == ENODATA ? 0 : -errno;
	return setxattr(to, name, value, (size_t)n, 0) < 0 ? -errno : 0;
}

/* mine: returns true for the attributes to copy. */
static int copy_each(int from_fd, int to_fd, bool (*mine)(const char *name, bool privileged),
		     bool privileged)
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
		int r = mine(at, privileged) ? copy_one(from, to, at, value) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_no_mark(const char *name, bool privileged)
{
	return !attrs_is_overlay(name, privileged);
}

static bool may_set(const char *name, bool privileged)
{
	return privileged || strncmp(name, "user.", 5) == 0 ||
	       strncmp(name, "system.posix_acl_", 17) == 0;
}

int attrs_copy_all_xattrs(int from, int to, bool privileged)
{
	return copy_each(from, to, may_set, privileged);
}

int attrs_copy(int from, int to, bool privileged)
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
	/* After chown, which clears some mode bits. A link has no mode. */
	if (!S_ISLNK(a.st_mode) && chmod(name, a.st_mode & 07777) < 0)
		return -errno;
	/*
	 * Links and special files cannot have attributes that users may set; only root sets others.
	 */
	r = S_ISLNK(a.st_mode) ? 0 : copy_each(from, to, is_no_mark, privileged);
	if (r < 0)
		return r;
	return utimensat(to, "", (struct timespec[]){ a.st_atim, a.st_mtim }, AT_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

/*
 * Write the names of the file's own attributes to `out` (LIMIT_XATTRS bytes). Returns the size of
 * the names, or -errno.
 */
static ssize_t own_names(int fd, char *out, bool privileged)
{
	char path[32];
	ssize_t n, kept = 0;

	if (fd < 0)
		return 0;
	proc_name(fd, path);
	n = listxattr(path, out, LIMIT_XATTRS);
	if (n < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (ssize_t at = 0, len; at < n; at += len) {
		len = (ssize_t)strlen(out + at) + 1;
		if (attrs_is_overlay(out + at, privileged))
			continue;
		memmove(out + kept, out + at, (size_t)len);
		kept += len;
	}
	return kept;
}

/* True also if the list is too long. */
static bool has_own(int fd, bool privileged)
{
	char path[32], names[512];
	ssize_t n;

	if (fd < 0)
		return false;
	proc_name(fd, path);
	n = listxattr(path, names, sizeof names);
	if (n < 0)
		return errno != ENOTSUP;
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1)
		if (!attrs_is_overlay(names + at, privileged))
			return true;
	return false;
}

static bool same_value(int a, int b, const char *name, char *x, char *y)
{
	char path[32];
	ssize_t n, m;

	proc_name(a, path);
	n = getxattr(path, name, x, LIMIT_XATTRS);
	proc_name(b, path);
	m = getxattr(path, name, y, LIMIT_XATTRS);
	return n >= 0 && n == m && memcmp(x, y, (size_t)n) == 0;
}

/* Equal if the names take as many bytes and b has every attribute of a: then b has no others. */
bool attrs_same_xattrs(int a, int b, bool privileged)
{
	auto_free char *names = NULL, *x = NULL, *y = NULL;
	ssize_t n, m;
	bool same;

	/* Nearly all files have none. */
	if (!has_own(a, privileged) && !has_own(b, privileged))
		return true;
	names = malloc(LIMIT_XATTRS);
	x = malloc(LIMIT_XATTRS);
	y = malloc(LIMIT_XATTRS);
	if (!names || !x || !y)
		return false;
	n = own_names(b, names, privileged);
	m = own_names(a, names, privileged);
	same = n >= 0 && n == m;
	for (ssize_t at = 0; same && at < m; at += (ssize_t)strlen(names + at) + 1)
		same = same_value(a, b, names + at, x, y);
	return same;
}

/* "y" means opaque; "x" concerns whiteouts. */
bool attrs_is_opaque(int fd, bool privileged)
{
	char path[32], full[64], c;

	proc_name(fd, path);
	(void)snprintf(full, sizeof full, "%sopaque", attrs_overlay_prefix(privileged));
	return getxattr(path, full, &c, 1) == 1 && c == 'y';
}

int attrs_set_opaque(int fd, bool privileged)
{
	char path[32], full[64];

	proc_name(fd, path);
	(void)snprintf(full, sizeof full, "%sopaque", attrs_overlay_prefix(privileged));
	return setxattr(path, full, "y", 1, 0) < 0 ? -errno : 0;
}
