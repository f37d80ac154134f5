/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tar_pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/io.h"
#include "image/tar_links.h"
#include "wire/tar.h"

enum {
	FLUSH_AT = 256 * 1024,
	SMALL = 64 * 1024, /* files up to this size are read into the header buffer */
	OUT_MAX = FLUSH_AT + SMALL + LIMIT_PAX + 4 * LIMIT_PATH,
};

/* A hostile name must not push the reason out of the message. */
#define SHOWN "'%.200s'"

struct pack {
	const struct tar_pack *o;
	struct tree_counts *n;
	uint64_t entries;
	struct buf out;
	struct buf dirs; /* directories still to pack: path below the root, its length */
	struct buf records;
	struct tar_links links;
	bool no_xattrs; /* the file system has none: do not ask for each file */
	dev_t good_dev; /* last device checked that is not a kernel file system */
	char top[256];
	char rel[LIMIT_PATH];  /* current directory, below the root; "" is the root */
	char name[LIMIT_PATH]; /* name of the current entry in the stream */
};

static void pack_done(struct pack *p)
{
	buf_done(&p->out);
	buf_done(&p->dirs);
	buf_done(&p->records);
	tar_links_done(&p->links);
}
DEFINE_AUTO(struct pack, pack_done)

bool tar_pack_top(const char *path, char out[256])
{
	size_t end = strlen(path), at;

	while (end > 0 && path[end - 1] == '/')
		end--;
	for (at = end; at > 0 && path[at - 1] != '/'; at--)
		;
	if (!str_copy(out, 256, (struct str){ path + at, end - at }))
		return false;
	if (!out[0] || strcmp(out, "..") == 0)
		memcpy(out, ".", 2);
	return true;
}

static int flush(struct pack *p, struct err *e)
{
	int k = io_write_all(p->o->out_fd, p->out.data, p->out.len);

	if (k < 0)
		return err_sys(e, -k, "cannot write the tar stream");
	buf_clear(&p->out);
	return 0;
}

static int no_memory(struct err *e)
{
	return err_sys(e, ENOMEM, "cannot build the tar stream");
}

static void unreadable(struct pack *p, const char *name, int errnum)
{
	if (p->n->unreadable++ == 0)
		(void)snprintf(p->n->unreadable_first, sizeof p->n->unreadable_first, "%.180s: %s",
			       name, strerror(errnum));
}

/* Extended attributes of an open file or directory as pax records; most have none. */
static struct str xattrs(struct pack *p, int fd)
{
	char names[4096], value[4096];
	ssize_t n;

	buf_clear(&p->records);
	if (p->no_xattrs)
		return STR_NONE;
	n = flistxattr(fd, names, sizeof names);
	p->no_xattrs = n < 0 && errno == ENOTSUP;
	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1) {
		ssize_t len = tar_xattr_ok(str_of(names + i))
				      ? fgetxattr(fd, names + i, value, sizeof value)
				      : -1;

		if (len >= 0 &&
		    tar_put_xattr(&p->records, names + i, (struct str){ value, (size_t)len }) < 0)
			break;
	}
	return buf_str(&p->records);
}

static int put_entry(struct pack *p, enum tar_type type, const struct stat *st, const char *link,
		     struct str records, struct err *e)
{
	struct tar_entry t = {
		.type = type,
		.mode = st->st_mode & 07777,
		.path = p->name,
		.link = link,
		.size = type == TAR_FILE ? (uint64_t)st->st_size : 0,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.records = records,
	};
	int k;

	if (++p->entries > LIMIT_TREE_ENTRIES)
		return err_set(e, ERR_LIMIT, "the tree has more than %d entries",
			       LIMIT_TREE_ENTRIES);
	if (p->out.len >= FLUSH_AT && flush(p, e) < 0)
		return -1;
	k = tar_put_header(&p->out, &t);
	if (k == -E2BIG)
		return err_set(e, ERR_LIMIT, SHOWN ": path or link target is too long", p->name);
	if (k < 0)
		return no_memory(e);
	if (type == TAR_DIR)
		p->n->dirs++;
	else
		p->n->files++;
	return 0;
}

static int put_zeros(struct pack *p, uint64_t n, struct err *e)
{
	static const char zeros[4096];

	while (n > 0) {
		size_t part = n < sizeof zeros ? (size_t)n : sizeof zeros;

		if (p->out.len >= FLUSH_AT && flush(p, e) < 0)
			return -1;
		if (buf_add(&p->out, zeros, part) < 0)
			return no_memory(e);
		n -= part;
	}
	return 0;
}

/* Read at most `most` bytes into the buffer. Returns the count, 0 at the end; -1 if we fail. */
static ssize_t buffer_some(struct pack *p, int fd, uint64_t most, struct err *e)
{
	size_t part = most < SMALL ? (size_t)most : SMALL;
	ssize_t n;

	if (p->out.len >= FLUSH_AT && flush(p, e) < 0)
		return -1;
	if (buf_reserve(&p->out, part) < 0)
		return no_memory(e);
	do {
		n = read(fd, p->out.data + p->out.len, part);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		unreadable(p, p->name, errno);
		return 0;
	}
	buf_grew(&p->out, (size_t)n);
	return n;
}

/* The same without the buffer. *ret_can is false if the kernel cannot do it for this pair. */
static ssize_t send_some(struct pack *p, int fd, uint64_t most, bool *ret_can, struct err *e)
{
	const size_t part_max = 1 << 20;
	ssize_t n;

	*ret_can = true;
	if (p->out.len && flush(p, e) < 0)
		return -1;
	do {
		n = sendfile(p->o->out_fd, fd, NULL, most < part_max ? (size_t)most : part_max);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	if (errno == EPIPE || errno == ENOSPC)
		return err_sys(e, errno, "cannot write the tar stream");
	*ret_can = false;
	return 0;
}

/* Write exactly `size` bytes of content and the padding, even if the file changes. */
static int put_content(struct pack *p, int fd, uint64_t size, struct err *e)
{
	bool send = size > SMALL;
	uint64_t left = size;
	struct stat st;

	while (left > 0) {
		ssize_t n = 0;

		if (send)
			n = send_some(p, fd, left, &send, e);
		if (n == 0 && !send)
			n = buffer_some(p, fd, left, e);
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		left -= (uint64_t)n;
		p->n->bytes += (uint64_t)n;
		tree_report(&p->o->progress, p->n);
	}
	if (left > 0 || (fstat(fd, &st) == 0 && (uint64_t)st.st_size != size))
		p->n->changed++;
	return put_zeros(p, left + (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK, e);
}

static int put_file(struct pack *p, int dirfd, const char *name, struct err *e)
{
	/* If it has become a fifo meanwhile, opening must not block. */
	auto_close int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const char *first;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		if (errno != ENOENT)
			unreadable(p, p->name, errno);
		return 0;
	}
	if (!S_ISREG(st.st_mode)) {
		p->n->skipped++;
		return 0;
	}
	first = st.st_nlink > 1 ? tar_links_find(&p->links, st.st_dev, st.st_ino) : NULL;
	if (first)
		return put_entry(p, TAR_HARDLINK, &st, first, STR_NONE, e);
	if (tree_check_size(p->n, (uint64_t)st.st_size, p->o->max_bytes, e) < 0 ||
	    put_entry(p, TAR_FILE, &st, "", xattrs(p, fd), e) < 0)
		return -1;
	if (st.st_nlink > 1)
		tar_links_note(&p->links, st.st_dev, st.st_ino, p->name);
	return put_content(p, fd, (uint64_t)st.st_size, e);
}

static int put_symlink(struct pack *p, int dirfd, const char *name, const struct stat *st,
		       struct err *e)
{
	char target[LIMIT_PATH];
	ssize_t n = readlinkat(dirfd, name, target, sizeof target - 1);

	if (n <= 0) {
		if (errno != ENOENT)
			unreadable(p, p->name, errno);
		return 0;
	}
	target[n] = '\0';
	return put_entry(p, TAR_SYMLINK, st, target, STR_NONE, e);
}

/* p->name is set. Not for directories. */
static int put_leaf(struct pack *p, int dirfd, const char *name, const struct stat *st,
		    struct err *e)
{
	tree_report(&p->o->progress, p->n);
	if (S_ISREG(st->st_mode))
		return put_file(p, dirfd, name, e);
	if (S_ISLNK(st->st_mode))
		return put_symlink(p, dirfd, name, st, e);
	p->n->skipped++;
	return 0;
}

static int push_dir(struct pack *p, const char *name, struct err *e)
{
	size_t before = p->dirs.len, n;
	int k = buf_printf(&p->dirs, "%s%s%s", p->rel, p->rel[0] ? "/" : "", name);

	n = p->dirs.len - before + 1;
	if (k == 0 && n > LIMIT_PATH)
		return err_set(e, ERR_LIMIT, SHOWN ": path is too long", p->name);
	if (k == 0)
		k = buf_add(&p->dirs, "", 1);
	if (k == 0)
		k = buf_add(&p->dirs, &n, sizeof n);
	if (k < 0)
		return err_set(e, ERR_LIMIT, "too many directories, " SHOWN " is one too many",
			       p->name);
	return 0;
}

static bool pop_dir(struct pack *p)
{
	size_t n;

	if (p->dirs.len == 0)
		return false;
	p->dirs.len -= sizeof n;
	memcpy(&n, p->dirs.data + p->dirs.len, sizeof n);
	p->dirs.len -= n;
	memcpy(p->rel, p->dirs.data + p->dirs.len, n);
	return true;
}

static int set_name(struct pack *p, const char *child, struct err *e)
{
	int n = snprintf(p->name, sizeof p->name, "%s%s%s%s%s", p->top, p->rel[0] ? "/" : "",
			 p->rel, child[0] ? "/" : "", child);

	/* One byte more for the slash that ends the name of a directory. */
	if (n + 1 >= (int)sizeof p->name)
		return err_set(e, ERR_LIMIT, SHOWN ": path is too long", p->name);
	return 0;
}

static int put_child(struct pack *p, int dirfd, const struct dirent *d, struct err *e)
{
	struct stat st;

	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return 0;
	if (set_name(p, d->d_name, e) < 0)
		return -1;
	if (d->d_type == DT_DIR)
		return push_dir(p, d->d_name, e);
	if (fstatat(dirfd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			unreadable(p, p->name, errno);
		return 0;
	}
	if (S_ISDIR(st.st_mode))
		return push_dir(p, d->d_name, e);
	return put_leaf(p, dirfd, d->d_name, &st, e);
}

static int put_children(struct pack *p, DIR *dir, struct err *e)
{
	struct dirent *d;

	for (;;) {
		errno = 0;
		d = readdir(dir);
		if (!d)
			break;
		if (put_child(p, dirfd(dir), d, e) < 0)
			return -1;
	}
	if (errno)
		unreadable(p, p->name, errno);
	return 0;
}

/* /proc, /sys and similar are views of the kernel: endless, or different at each read. */
static bool is_kernel_fs(struct pack *p, int fd, dev_t dev)
{
	struct statfs fs;

	if (dev == p->good_dev || fstatfs(fd, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case DEVPTS_SUPER_MAGIC:
		return true;
	default:
		p->good_dev = dev;
		return false;
	}
}

static unsigned depth_of(const char *rel)
{
	unsigned n = 1;

	for (; *rel; rel++)
		n += *rel == '/';
	return n;
}

/* Pack the directory p->rel: its own entry, then its files. Queue its subdirectories. */
static int put_dir(struct pack *p, int root, struct err *e)
{
	auto_close int fd = tree_open(root, p->rel, O_RDONLY | O_DIRECTORY);
	struct stat st;
	DIR *dir;
	int k;

	if (set_name(p, "", e) < 0)
		return -1;
	/* Add the top above rel's components and an entry below them. */
	if (depth_of(p->rel) + 2 > LIMIT_TREE_DEPTH)
		return err_set(e, ERR_LIMIT, SHOWN " is nested too deep", p->name);
	if (fd < 0 || fstat(fd, &st) < 0) {
		if (fd != -ENOENT)
			unreadable(p, p->name, fd < 0 ? -fd : errno);
		return 0;
	}
	if (is_kernel_fs(p, fd, st.st_dev)) {
		p->n->skipped++;
		return 0;
	}
	tree_report(&p->o->progress, p->n);
	if (put_entry(p, TAR_DIR, &st, "", xattrs(p, fd), e) < 0)
		return -1;
	dir = fdopendir(fd);
	if (!dir)
		return no_memory(e);
	fd = FD_NONE;
	k = put_children(p, dir, e);
	(void)closedir(dir);
	return k;
}

static int put_tree(struct pack *p, struct err *e)
{
	/* No O_NOFOLLOW for "link/": the slash asks for the link's target. */
	auto_close int root =
		openat(p->o->dir_fd, p->o->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (root < 0)
		return err_sys(e, errno, "cannot open " SHOWN, p->o->path);
	do {
		if (put_dir(p, root, e) < 0)
			return -1;
	} while (pop_dir(p));
	return 0;
}

int tar_pack(const struct tar_pack *o, struct tree_counts *n, struct err *e)
{
	auto_done(pack_done) struct pack p = { .o = o,
					       .n = n,
					       .out = BUF_INIT(OUT_MAX),
					       .dirs = BUF_INIT(LIMIT_TREE_DIRS),
					       .records = BUF_INIT(LIMIT_XATTRS) };
	struct stat st;
	int k;

	tar_links_init(&p.links);
	if (!tar_pack_top(o->path, p.top))
		return err_set(e, ERR_INVALID, SHOWN ": name is too long", o->path);
	if (fstatat(o->dir_fd, o->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? err_set(e, ERR_NOT_FOUND, SHOWN " does not exist", o->path)
				       : err_sys(e, errno, "cannot read " SHOWN, o->path);
	if (set_name(&p, "", e) < 0)
		return -1;
	if (S_ISDIR(st.st_mode))
		k = put_tree(&p, e);
	else if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		k = put_leaf(&p, o->dir_fd, o->path, &st, e);
	else
		k = err_set(e, ERR_INVALID, SHOWN " is a socket, fifo or device", o->path);
	if (k < 0)
		return k;
	if (tar_put_end(&p.out) < 0)
		return no_memory(e);
	return flush(&p, e);
}
