/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_mask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum { DEPTH = 128 };

struct mask {
	int host, out;
	const char *host_dir;
	dev_t dev;
	char path[LIMIT_PATH]; /* below host_dir, of the entry that is looked at */
	int hidden;
	struct buf *report;
	struct err *e;
};

/* A program that others may run but not read, as sudo is on some hosts, is no secret. */
static bool is_private(const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return !(st->st_mode & S_IXOTH);
	return S_ISREG(st->st_mode) && !(st->st_mode & (S_IROTH | S_IXOTH));
}

/* A directory of two layers shows the attributes of the upper one: ours are the host's. */
static int copy_dir(const struct mask *m, const char *path)
{
	struct stat st;

	if (mkdirat(m->out, path, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (fstatat(m->host, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchownat(m->out, path, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(m->out, path, st.st_mode & 07777, 0) < 0)
		return -errno;
	return 0;
}

/* As host_copy.c has them. The report has a ceiling, what is hidden has none. */
static void add_line(struct mask *m)
{
	size_t at = m->report->len;

	if (buf_printf(m->report, "closed to others\t%s/%s\n", m->host_dir, m->path) < 0)
		return;
	for (at += sizeof "closed to others"; at + 1 < m->report->len; at++)
		if ((unsigned char)m->report->data[at] < ' ' || m->report->data[at] == 0x7f)
			m->report->data[at] = '?';
}

static int hide(struct mask *m)
{
	int r = 0;

	for (char *slash = strchr(m->path, '/'); slash && r == 0; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = copy_dir(m, m->path);
		*slash = '/';
	}
	if (r == 0 && mknodat(m->out, m->path, S_IFCHR, makedev(0, 0)) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(m->e, -r, "cannot hide '%s/%s'", m->host_dir, m->path);
	m->hidden++;
	add_line(m);
	return 0;
}

static int walk(struct mask *m, int dirfd, size_t len, int depth);

/* Takes fd. */
static int walk_dir(struct mask *m, int fd, size_t len, int depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *de;
	int r = 0;

	if (!d) {
		fd_close(&fd);
		return err_sys(m->e, ENOMEM, "cannot list '%s/%s'", m->host_dir, m->path);
	}
	while (r == 0 && (de = readdir(d))) {
		size_t n = strlen(de->d_name);

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0 ||
		    de->d_type == DT_LNK)
			continue;
		if (len + n + 2 > sizeof m->path)
			r = err_set(m->e, ERR_LIMIT, "a path below '%s' is too long", m->host_dir);
		else {
			memcpy(m->path + len, de->d_name, n + 1);
			r = walk(m, dirfd(d), len, depth);
		}
	}
	(void)closedir(d);
	return r;
}

/* The entry at m->path, whose name begins at len, in dirfd. What vanished needs no hiding. */
static int walk(struct mask *m, int dirfd, size_t len, int depth)
{
	const char *name = m->path + len;
	size_t n = len + strlen(name);
	struct stat st;
	int fd;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (is_private(&st) || depth == DEPTH)
		return hide(m);
	/* A lower directory does not show what is mounted on it. */
	if (!S_ISDIR(st.st_mode) || st.st_dev != m->dev)
		return 0;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : hide(m);
	m->path[n++] = '/';
	return walk_dir(m, fd, n, depth + 1);
}

int host_mask_make(const char *host_dir, int out, struct buf *report, struct err *e)
{
	auto_close int host = open(host_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct mask m = {
		.host = host, .out = out, .host_dir = host_dir, .report = report, .e = e
	};
	struct stat st;
	int list;

	if (host < 0 || fstat(host, &st) < 0)
		return err_sys(e, errno, "cannot open '%s'", host_dir);
	if (fchown(out, st.st_uid, st.st_gid) < 0 || fchmod(out, st.st_mode & 07777) < 0)
		return err_sys(e, errno, "cannot make a mask of '%s'", host_dir);
	m.dev = st.st_dev;
	list = openat(host, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (list < 0)
		return err_sys(e, errno, "cannot open '%s'", host_dir);
	return walk_dir(&m, list, 0, 0) < 0 ? -1 : m.hidden;
}
