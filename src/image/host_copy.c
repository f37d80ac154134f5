/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "image/layer.h"

enum {
	DEPTH_MAX = 24,
	SYSTEM_IDS = 1000, /* lower ids are system accounts, the same inside */
};

static void close_dir(DIR *d)
{
	closedir(d);
}
DEFINE_AUTO_PTR(DIR, close_dir)

/* The report is for people: bytes that could forge a line or move the cursor become '?'. */
static int leave(struct host_copy *c, const char *why)
{
	char shown[LIMIT_PATH];
	size_t n = 0;

	for (; c->path[n]; n++)
		shown[n] =
			(unsigned char)c->path[n] < 0x20 || c->path[n] == 0x7f ? '?' : c->path[n];
	shown[n] = '\0';
	c->left_out++;
	if (c->report)
		(void)!buf_printf(c->report, "%s\t/%s\n", why, shown);
	return 0;
}

/* Removed or closed to us meanwhile: treat it as missing. */
static bool is_absent(int errnum)
{
	return errnum == ENOENT || errnum == EACCES || errnum == EPERM || errnum == ELOOP ||
	       errnum == ENOTDIR;
}

static int failed_or_absent(struct host_copy *c, int errnum, struct err *e)
{
	if (is_absent(errnum))
		return leave(c, "not readable");
	return err_sys(e, errnum, "cannot read '/%s'", c->path);
}

static struct layer_attr attr_of(const struct stat *st, mode_t at_least)
{
	return (struct layer_attr){
		.mode = (st->st_mode & 0777) | at_least,
		.uid = st->st_uid < SYSTEM_IDS ? st->st_uid : 0,
		.gid = st->st_gid < SYSTEM_IDS ? st->st_gid : 0,
		.mtime = &st->st_mtim,
	};
}

static const char *file_fault(const struct host_copy *c, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "not a file, directory or link";
	if (!(st->st_mode & S_IROTH))
		return "not for everybody";
	if (st->st_mode & (S_ISUID | S_ISGID))
		return "setuid or setgid";
	if ((size_t)st->st_size > c->file_max)
		return "too large";
	if ((size_t)st->st_size > c->total_max - c->bytes)
		return "over the total size";
	return NULL;
}

static int copy_file(struct host_copy *c, int dir, const char *name, struct err *e)
{
	auto_close int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct layer_attr attr;
	const char *why;
	struct stat st;
	int r;

	if (fd < 0)
		return failed_or_absent(c, errno, e);
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "cannot look at '/%s'", c->path);
	why = file_fault(c, &st);
	if (why)
		return leave(c, why);
	buf_clear(&c->content);
	r = io_read_all(fd, &c->content);
	if (r == -E2BIG || (r == 0 && c->content.len > c->total_max - c->bytes))
		return leave(c, "grew while it was read");
	if (r < 0)
		return failed_or_absent(c, -r, e);
	why = c->secret ? c->secret(c->path, buf_str(&c->content)) : NULL;
	if (why)
		return leave(c, why);
	c->bytes += c->content.len;
	attr = attr_of(&st, S_IRUSR);
	return layer_file(c->layer, c->path, buf_str(&c->content), &attr, e);
}

static int copy_link(struct host_copy *c, int dir, const char *name, struct err *e)
{
	char target[LIMIT_PATH];
	ssize_t n = readlinkat(dir, name, target, sizeof target);

	if (n < 0)
		return errno == EINVAL ? leave(c, "changed while it was read")
				       : failed_or_absent(c, errno, e);
	if (n == 0 || (size_t)n >= sizeof target)
		return leave(c, "link too long");
	target[n] = '\0';
	return layer_link(c->layer, c->path, target, e);
}

static int copy_entries(struct host_copy *c, int fd, int depth, struct err *e);

static bool dir_is_open_to_all(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && (st->st_mode & S_IROTH) && (st->st_mode & S_IXOTH);
}

static int copy_dir(struct host_copy *c, int dir, const char *name, int depth, struct err *e)
{
	auto_close int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct layer_attr attr;
	struct stat st;

	if (fd < 0)
		return failed_or_absent(c, errno, e);
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "cannot look at '/%s'", c->path);
	if (!dir_is_open_to_all(&st))
		return leave(c, "not for everybody");
	if (depth > DEPTH_MAX)
		return leave(c, "too deep");
	attr = attr_of(&st, S_IRWXU);
	if (layer_dir(c->layer, c->path, &attr, e) < 0)
		return -1;
	return copy_entries(c, TAKE_FD(fd), depth, e);
}

static int copy_entry(struct host_copy *c, int dir, const char *name, int depth, struct err *e)
{
	const char *why = c->leave_out(c->path);
	struct stat st;

	if (why)
		return leave(c, why);
	if (c->entries >= c->entries_max)
		return leave(c, "over the number of entries");
	c->entries++;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return failed_or_absent(c, errno, e);
	if (S_ISDIR(st.st_mode))
		return copy_dir(c, dir, name, depth + 1, e);
	if (S_ISLNK(st.st_mode))
		return copy_link(c, dir, name, e);
	/* Opening a device or a fifo can have effects: never open them. */
	why = file_fault(c, &st);
	return why ? leave(c, why) : copy_file(c, dir, name, e);
}

/* Owns fd. Extends c->path by each name in turn. */
static int copy_entries(struct host_copy *c, int fd, int depth, struct err *e)
{
	auto_done(close_dir) DIR *d = fdopendir(fd);
	size_t base = strlen(c->path);
	struct dirent *de;

	if (!d) {
		int saved = errno;

		fd_close(&fd);
		return err_sys(e, saved, "cannot read '/%s'", c->path);
	}
	while ((errno = 0, de = readdir(d))) {
		int n, r;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		n = snprintf(c->path + base, sizeof c->path - base, "/%s", de->d_name);
		if ((size_t)n >= sizeof c->path - base)
			r = leave(c, "path too long");
		else
			r = copy_entry(c, dirfd(d), de->d_name, depth, e);
		c->path[base] = '\0';
		if (r < 0)
			return r;
	}
	if (errno)
		return err_sys(e, errno, "cannot read '/%s'", c->path);
	return 0;
}

/* Opens part by part, so that a closed directory or a link on the way stops us. */
static int open_checked(const char *path)
{
	auto_close int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char part[LIMIT_PATH];

	while (fd >= 0 && *path) {
		size_t n = strcspn(path, "/");
		struct stat st;
		int next;

		if (!str_copy(part, sizeof part, (struct str){ path, n }))
			return -ENAMETOOLONG;
		next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		fd_close(&fd);
		fd = next;
		if (fd >= 0 && (fstat(fd, &st) < 0 || !dir_is_open_to_all(&st)))
			return -EACCES;
		path += n + (path[n] == '/');
	}
	return fd < 0 ? -errno : TAKE_FD(fd);
}

int host_copy_tree(struct host_copy *c, const char *path, struct err *e)
{
	int fd = open_checked(path), r;

	if (!str_copy(c->path, sizeof c->path, str_of(path))) {
		fd_close(&fd);
		return err_sys(e, ENAMETOOLONG, "cannot copy '/%.100s'", path);
	}
	if (fd < 0)
		return failed_or_absent(c, -fd, e);
	c->content = (struct buf)BUF_INIT(c->file_max);
	r = copy_entries(c, fd, 0, e);
	buf_done(&c->content);
	return r;
}
