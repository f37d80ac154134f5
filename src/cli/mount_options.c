/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mount_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/str.h"

/* Made by the driver for every sandbox. */
static const char *const reserved[] = { "/proc", "/sys", "/dev" };

static const char *opt_name(bool ro)
{
	return ro ? "--ro" : "--dir";
}

/* Up to the next ':' that is not escaped; *at is left behind it, or NULL at the end. */
static int take_part(const char **at, char out[LIMIT_PATH])
{
	const char *p = *at;
	size_t n = 0;

	for (; *p && *p != ':'; p++) {
		if (p[0] == '\\' && p[1] == ':')
			p++;
		if (n == LIMIT_PATH - 1)
			return -ENAMETOOLONG;
		out[n++] = *p;
	}
	out[n] = '\0';
	*at = *p ? p + 1 : NULL;
	return 0;
}

/* Without "//", "." and a slash at the end; -EINVAL for "..". */
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

static int check_dest(const char *text, const char *dest, bool ro, char out[LIMIT_PATH],
		      struct err *e)
{
	const char *name = opt_name(ro);

	if (dest[0] != '/')
		return err_set(e, ERR_INVALID,
			       "%s '%.200s': the path inside, '%.100s', must begin with '/'", name,
			       text, dest);
	if (normalize(dest, out) < 0)
		return err_set(e, ERR_INVALID, "%s '%.200s': no '..' in the path inside", name,
			       text);
	if (strcmp(out, "/") == 0) {
		(void)err_set(e, ERR_INVALID, "%s '%.200s': cannot stand in for '/' inside", name,
			      text);
		return err_hint(
			e, "choose another place: %s PATH:DEST; or a root: --template dir:PATH",
			name);
	}
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
		if (is_within(out, reserved[i]))
			return err_set(e, ERR_INVALID,
				       "%s '%.200s': '%s' is made anew in every sandbox", name,
				       text, reserved[i]);
	return 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * Whether the directory `from` lies in, or is, the one that `top` describes. By identity and
 * not by name, so that a bind mount of a parent is seen through. 1, 0, or -errno.
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

/* What a sandbox sees must not hold the state of sandboxes, nor be part of it. */
static int check_apart(const char *text, bool ro, const char *path, const struct stat *st,
		       const struct state *s, struct err *e)
{
	bool is_dir = S_ISDIR(st->st_mode);
	auto_close int fd =
		is_dir ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : open_parent(path);
	struct stat state;
	int in = 0, around = 0;

	if (fd < 0 || fstat(s->fd, &state) < 0)
		return err_sys(e, errno, "%s '%.200s'", opt_name(ro), text);
	in = lies_in(fd, &state);
	if (is_dir)
		around = lies_in(s->fd, st);
	if (in < 0 || around < 0)
		return err_sys(e, in < 0 ? -in : -around, "%s '%.200s'", opt_name(ro), text);
	if (!in && !around)
		return 0;
	(void)err_set(e, ERR_INVALID, "%s '%.200s': %s Cay's own state in '%s'", opt_name(ro), text,
		      in ? "is part of" : "holds", s->dir);
	return err_hint(e, in ? "choose another directory"
			      : "choose a smaller directory, or move the state with CAY_STATE");
}

static int fail_path(struct err *e, int errnum, bool ro, const char *text)
{
	(void)err_set(e, ERR_INVALID, "%s '%.200s': %s", opt_name(ro), text, strerror(errnum));
	e->sys = errnum;
	return -1;
}

/* The path outside: real, of the right kind, and readable by the caller. */
static int check_path(const char *text, const char *path, bool ro, struct stat *st, char **ret,
		      struct err *e)
{
	auto_free char *real = realpath(path, NULL);

	if (!real || stat(real, st) < 0)
		return fail_path(e, errno, ro, text);
	if (strlen(real) >= LIMIT_PATH)
		return fail_path(e, ENAMETOOLONG, ro, text);
	if (!S_ISDIR(st->st_mode) && !ro)
		return fail_path(e, ENOTDIR, ro, text);
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return err_set(e, ERR_INVALID, "%s '%.200s': neither a file nor a directory",
			       opt_name(ro), text);
	if (faccessat(AT_FDCWD, real, S_ISDIR(st->st_mode) ? R_OK | X_OK : R_OK, AT_EACCESS) < 0)
		return fail_path(e, errno, ro, text);
	*ret = TAKE_PTR(real);
	return 0;
}

int mount_resolve(const char *text, bool ro, const struct state *s, struct sandbox_mount *ret,
		  struct err *e)
{
	char path[LIMIT_PATH], dest[LIMIT_PATH], normal[LIMIT_PATH];
	auto_free char *real = NULL;
	const char *at = text;
	bool has_dest = false;
	struct stat st;

	if (take_part(&at, path) < 0 || (at && (has_dest = true) && take_part(&at, dest) < 0))
		return fail_path(e, ENAMETOOLONG, ro, text);
	if (at) {
		(void)err_set(e, ERR_INVALID, "%s '%.200s': more than one ':'", opt_name(ro), text);
		return err_hint(e, "write PATH:DEST, and '\\:' for a colon that belongs to a path");
	}
	if (!path[0])
		return err_set(e, ERR_INVALID, "%s '%.200s': the path is empty", opt_name(ro),
			       text);
	if (check_path(text, path, ro, &st, &real, e) < 0 ||
	    check_dest(text, has_dest ? dest : real, ro, normal, e) < 0 ||
	    check_apart(text, ro, real, &st, s, e) < 0)
		return -1;
	ret->dest = strdup(normal);
	if (!ret->dest)
		return err_sys(e, ENOMEM, "%s '%.200s'", opt_name(ro), text);
	ret->path = TAKE_PTR(real);
	ret->ro = ro;
	ret->owner = st.st_uid;
	return 0;
}
