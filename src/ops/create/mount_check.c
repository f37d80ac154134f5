/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/mount_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/str.h"

/* The driver makes these in every sandbox. */
static const char *const reserved[] = { "/proc", "/sys", "/dev" };

/* Removes "//", "." and a trailing slash; -EINVAL for "..". */
static int normalize(const char *path, char out[LIMIT_PATH])
{
	size_t n = 0;

	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && strncmp(path, "..", 2) == 0)
			return -EINVAL;
		if (len && !(len == 1 && path[0] == '.')) {
			if (n + 1 + len >= LIMIT_PATH)
				return -ENAMETOOLONG;
			out[n++] = '/';
			memcpy(out + n, path, len);
			n += len;
		}
		path += len;
		path += *path == '/';
	}
	if (n == 0)
		out[n++] = '/';
	out[n] = '\0';
	return 0;
}

static bool is_within(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static int fail_path(struct err *e, int errnum, const char *path)
{
	(void)err_set(e, ERR_INVALID, "'%.200s': %s", path, strerror(errnum));
	e->sys = errnum;
	return -1;
}

static int check_dest(const char *path, const char *dest, char out[LIMIT_PATH], struct err *e)
{
	int r;

	if (dest[0] != '/')
		return err_set(e, ERR_INVALID,
			       "'%.200s': the path inside, '%.100s', must begin with '/'", path,
			       dest);
	r = normalize(dest, out);
	if (r == -ENAMETOOLONG)
		return fail_path(e, ENAMETOOLONG, path);
	if (r < 0)
		return err_set(e, ERR_INVALID, "'%.200s': no '..' in the path inside", path);
	if (strcmp(out, "/") == 0) {
		(void)err_set(e, ERR_INVALID, "'%.200s': cannot stand in for '/' inside", path);
		return err_code(e, "mount.root", NULL);
	}
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (is_within(out, reserved[i]))
			return err_set(e, ERR_INVALID,
				       "'%.200s': '%s' is made anew in every sandbox", path,
				       reserved[i]);
	return 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * Returns 1 if the directory `from` is in, or is, the directory that `top` describes; 0 if not; or
 * -errno. Compares identity, not names, so that it sees through a bind mount of a parent.
 */
static int lies_in(int from, const struct stat *top)
{
	auto_close int dir = openat(from, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st, up;

	if (dir < 0 || fstat(dir, &st) < 0)
		return -errno;
	while (!same_file(&st, top)) {
		int parent = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (parent < 0)
			return -errno;
		fd_close(&dir);
		dir = parent;
		if (fstat(dir, &up) < 0)
			return -errno;
		if (same_file(&up, &st))
			return 0;
		st = up;
	}
	return 1;
}

static int open_parent(const char *path)
{
	char parent[LIMIT_PATH];
	char *slash;

	if (!str_copy(parent, sizeof parent, str_of(path)))
		return -1;
	slash = strrchr(parent, '/');
	slash[slash == parent] = '\0';
	return open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* A mount must not contain the state directory or be part of it. */
static int check_apart(const char *path, const struct stat *st, const struct state *s,
		       struct err *e)
{
	bool is_dir = S_ISDIR(st->st_mode);
	auto_close int fd =
		is_dir ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : open_parent(path);
	struct stat state;
	int in = 0, around = 0;

	if (fd < 0 || fstat(s->fd, &state) < 0)
		return err_sys(e, errno, "'%.200s'", path);
	in = lies_in(fd, &state);
	if (is_dir)
		around = lies_in(s->fd, st);
	if (in < 0 || around < 0)
		return err_sys(e, in < 0 ? -in : -around, "'%.200s'", path);
	if (!in && !around)
		return 0;
	(void)err_set(e, ERR_INVALID, "'%.200s': %s Cay's own state in '%s'", path,
		      in ? "is part of" : "holds", s->dir);
	return err_code(e, in ? "mount.in_state" : "mount.around_state", NULL);
}

/* The host path must be real, of the right kind, and readable by the caller. */
static int check_path(const char *path, bool ro, struct stat *st, char **ret, struct err *e)
{
	auto_free char *real = realpath(path, NULL);

	if (!real || stat(real, st) < 0)
		return fail_path(e, errno, path);
	if (strlen(real) >= LIMIT_PATH)
		return fail_path(e, ENAMETOOLONG, path);
	if (!S_ISDIR(st->st_mode) && !ro)
		return fail_path(e, ENOTDIR, path);
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return err_set(e, ERR_INVALID, "'%.200s': neither a file nor a directory", path);
	if (faccessat(AT_FDCWD, real, S_ISDIR(st->st_mode) ? R_OK | X_OK : R_OK, AT_EACCESS) < 0)
		return fail_path(e, errno, path);
	*ret = TAKE_PTR(real);
	return 0;
}

int mount_check(const struct state *s, const struct mount_spec *spec, bool ro,
		struct plan_mount *ret, struct err *e)
{
	char normal[LIMIT_PATH];
	auto_free char *real = NULL;
	struct stat st;

	if (check_path(spec->path, ro, &st, &real, e) < 0 ||
	    check_dest(spec->path, spec->dest ? spec->dest : real, normal, e) < 0 ||
	    check_apart(real, &st, s, e) < 0)
		return -1;
	ret->dest = strdup(normal);
	if (!ret->dest)
		return err_sys(e, ENOMEM, "'%.200s'", spec->path);
	ret->path = TAKE_PTR(real);
	ret->ro = ro;
	ret->owner = st.st_uid;
	return 0;
}
