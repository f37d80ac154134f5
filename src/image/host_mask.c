/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_mask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"
#include "image/host_filter.h"

enum { DEPTH = 128, CONTENT_MAX = 64 * 1024 };

struct mask {
	int host, out; /* out is FD_NONE if we only report */
	const char *host_dir;
	dev_t dev;
	char path[LIMIT_PATH]; /* the current entry, relative to host_dir */
	bool rootful;
	int hidden; /* number hidden, or only reported */
	int entries_left;
	struct buf *report, content;
	struct err *e;
};

/* Where people install by hand and leave their settings. */
static bool is_local(const struct mask *m)
{
	return strcmp(m->host_dir, "/opt") == 0 || strncmp(m->path, "local/", 6) == 0 ||
	       strcmp(m->path, "local") == 0;
}

/*
 * What other users of the host may neither read nor list. A system program that they may run but
 * not read, such as sudo on some hosts, is no secret.
 */
static const char *mode_fault(const struct mask *m, const struct stat *st)
{
	bool is_closed = false;

	if (S_ISDIR(st->st_mode))
		is_closed = (st->st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH);
	else if (S_ISREG(st->st_mode))
		is_closed = !(st->st_mode & (is_local(m) ? S_IROTH : S_IROTH | S_IXOTH));
	return is_closed ? "closed to others" : NULL;
}

/* Only for a small file with a suspicious name: there may be gigabytes. */
static const char *content_fault(struct mask *m, int dir, const char *name, const char *full,
				 const struct stat *st)
{
	auto_close int fd = FD_NONE;

	if (!S_ISREG(st->st_mode) || st->st_size > CONTENT_MAX || !host_filter_reads(full))
		return NULL;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	buf_clear(&m->content);
	if (fd < 0 || io_read_all(fd, &m->content) < 0)
		return "not readable";
	return host_filter_content(full, buf_str(&m->content));
}

/* The reason to hide the entry at m->path, or NULL. */
static const char *fault(struct mask *m, int dir, const char *name, const struct stat *st)
{
	const char *why = mode_fault(m, st);
	char full[2 * LIMIT_PATH];

	if (why || !is_local(m))
		return why;
	(void)snprintf(full, sizeof full, "%s/%s", m->host_dir + 1, m->path);
	why = host_filter_local(full);
	if (!why)
		why = content_fault(m, dir, name, full, st);
	return why;
}

/* A user cannot change owners: inside, the directory belongs to the user. */
static int take_attributes(const struct mask *m, const char *path, const struct stat *st)
{
	if (m->rootful && fchownat(m->out, path, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return fchmodat(m->out, path, st->st_mode & 07777, 0) < 0 ? -errno : 0;
}

/* A merged directory shows the upper one's attributes: copy the host's. */
static int copy_dir(const struct mask *m, const char *path)
{
	struct stat st;

	if (mkdirat(m->out, path, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (fstatat(m->host, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return take_attributes(m, path, &st);
}

/* Lines as in host_copy.c. The report has a ceiling; hiding has none. */
static void add_line(struct mask *m, const char *why)
{
	size_t at = m->report->len;

	if (buf_printf(m->report, "%s\t%s/%s\n", why, m->host_dir, m->path) < 0)
		return;
	for (at += strlen(why) + 1; at + 1 < m->report->len; at++)
		if ((unsigned char)m->report->data[at] < ' ' || m->report->data[at] == 0x7f)
			m->report->data[at] = '?';
}

static int hide(struct mask *m, const char *why)
{
	int r = 0;

	if (m->out < 0)
		return 0;
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
	add_line(m, why);
	return 0;
}

static int walk(struct mask *m, int dirfd, size_t len, int depth);

/* A report ignores most files and need not stat them. */
static bool is_dull(const struct mask *m, const struct dirent *de)
{
	return m->out < 0 && de->d_type == DT_REG && !host_filter_suspect(m->path);
}

/* Owns fd. */
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
			if (!is_dull(m, de))
				r = walk(m, dirfd(d), len, depth);
		}
	}
	(void)closedir(d);
	return r;
}

/* For a user, the kernel protects the rest of /usr inside as it does outside. */
static bool is_skipped(struct mask *m)
{
	if (m->out < 0 && --m->entries_left < 0)
		return true;
	return (!m->rootful || m->out < 0) && !is_local(m);
}

static bool is_suspect(const struct mask *m, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size > 0 && host_filter_suspect(m->path);
}

static void add_shown(struct mask *m)
{
	m->hidden++;
	add_line(m, "shown");
}

static bool is_remote(int fd)
{
	static const unsigned long types[] = {
		NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,    CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC, V9FS_MAGIC,
		AFS_SUPER_MAGIC, AUTOFS_SUPER_MAGIC, FUSE_SUPER_MAGIC, CEPH_SUPER_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if ((uint32_t)fs.f_type == types[i])
			return true;
	return false;
}

/*
 * Handle the entry at m->path, whose name starts at len, in dirfd. A vanished entry needs no
 * hiding.
 */
static int walk(struct mask *m, int dirfd, size_t len, int depth)
{
	const char *name = m->path + len;
	size_t n = len + strlen(name);
	const char *why;
	struct stat st;
	int fd;

	if (is_skipped(m) || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (m->out < 0 && !S_ISDIR(st.st_mode) && !is_suspect(m, &st))
		return 0;
	why = depth == DEPTH ? "too deep" : fault(m, dirfd, name, &st);
	if (why)
		return hide(m, why);
	if (m->out < 0 && !S_ISDIR(st.st_mode))
		add_shown(m);
	if (!S_ISDIR(st.st_mode))
		return 0;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : hide(m, "not readable");
	/* A walk through it could take any time. */
	if (st.st_dev != m->dev && is_remote(fd)) {
		(void)close(fd);
		return hide(m, "on a network");
	}
	m->path[n++] = '/';
	return walk_dir(m, fd, n, depth + 1);
}

/* m->host is open; the caller keeps it. */
static int walk_all(struct mask *m)
{
	struct stat st;
	int list, r;

	if (m->host < 0 || fstat(m->host, &st) < 0)
		return err_sys(m->e, errno, "cannot open '%s'", m->host_dir);
	if (m->out >= 0) {
		r = take_attributes(m, ".", &st);
		if (r < 0)
			return err_sys(m->e, -r, "cannot make a mask of '%s'", m->host_dir);
	}
	m->dev = st.st_dev;
	list = openat(m->host, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (list < 0)
		return err_sys(m->e, errno, "cannot open '%s'", m->host_dir);
	m->content = (struct buf)BUF_INIT(CONTENT_MAX);
	r = walk_dir(m, list, 0, 0);
	buf_done(&m->content);
	return r < 0 ? -1 : m->hidden;
}

int host_mask_make(const char *host_dir, int out, struct buf *report, struct err *e)
{
	auto_close int host = open(host_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct mask m = { .host = host,
			  .out = out,
			  .host_dir = host_dir,
			  .rootful = geteuid() == 0,
			  .report = report,
			  .e = e };

	return walk_all(&m);
}

int host_mask_look(const char *host_dir, int entries_max, struct buf *report, struct err *e)
{
	auto_close int host = open(host_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct mask m = { .host = host,
			  .out = FD_NONE,
			  .host_dir = host_dir,
			  .entries_left = entries_max,
			  .report = report,
			  .e = e };

	return host < 0 && errno == ENOENT ? 0 : walk_all(&m);
}
