/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tar_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "image/newfile.h"
#include "wire/tar.h"

enum { CHUNK = 256 * 1024 };

/* A hostile name must not push the reason out of the message. */
#define SHOWN "'%.200s'"

struct unpack {
	const struct tar_unpack *o;
	struct tree_counts *n;
	uint64_t entries;
	struct tar_reader r;
	struct buf dirs; /* directories that we made: struct made_dir, path, its length */
	char top[256];	 /* first component of the first entry; empty if that is "." */
	bool has_top;
	char path[LIMIT_PATH];	 /* the current entry, below dir_fd */
	const char *base;	 /* its last component */
	char parent[LIMIT_PATH]; /* the directory of parent_fd */
	int parent_fd;
	struct newfile file; /* the file being written; parent_fd and base name it */
};

struct made_dir {
	uint64_t uid, gid;
	int64_t mtime_s;
	uint32_t mtime_ns, mode;
};

static void unpack_done(struct unpack *u)
{
	newfile_drop(&u->file, u->parent_fd, u->base);
	fd_close(&u->parent_fd);
	buf_done(&u->dirs);
	tar_reader_done(&u->r);
}
DEFINE_AUTO(struct unpack, unpack_done)

/* The first component of a clean path, and the rest (with its slash). */
static struct str first_of(const char *path, const char **ret_rest)
{
	size_t n = strcspn(path, "/");

	*ret_rest = path + n;
	return (struct str){ path, n };
}

/* Map a name of the stream to its path below dir_fd. */
static int map_name(struct unpack *u, const char *name, char out[LIMIT_PATH], struct err *e)
{
	const char *want = u->o->want, *as = u->o->as, *why, *rest;
	char clean[LIMIT_PATH];
	struct str top;

	if (tar_path_clean(name, clean, &why) < 0)
		return err_set(e, ERR_INVALID, "entry " SHOWN " %s", name, why);
	top = first_of(clean, &rest);
	if (!u->has_top)
		u->has_top = str_copy(u->top, sizeof u->top, top);
	if (want && !str_is(top, want))
		return err_set(e, ERR_INVALID, "entry " SHOWN " was not asked for, only " SHOWN,
			       name, want);
	if (as && u->top[0] && !str_is(top, u->top))
		return err_set(e, ERR_INVALID,
			       "entry " SHOWN " lies beside " SHOWN ", the top of the stream", name,
			       u->top);
	if (as && !u->top[0])
		rest = clean;
	if ((size_t)snprintf(out, LIMIT_PATH, "%s%s%s", as ? as : clean,
			     as && rest == clean && clean[0] ? "/" : "",
			     as ? rest : "") >= LIMIT_PATH)
		return err_set(e, ERR_INVALID, "entry " SHOWN ": path is too long", name);
	return 0;
}

/* Make the directories of path one by one; follow no links. */
static int make_parents(int dir_fd, const char *path)
{
	auto_close int at = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	char part[256];

	if (at < 0)
		return -errno;
	while (*path) {
		const char *rest;
		struct str name = first_of(path, &rest);
		int next;

		if (!str_copy(part, sizeof part, name))
			return -ENAMETOOLONG;
		if (mkdirat(at, part, 0755) < 0 && errno != EEXIST)
			return -errno;
		next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		fd_close(&at);
		at = next;
		path = rest + (*rest == '/');
	}
	return 0;
}

static int parent_fault(struct err *e, int errnum, const char *path)
{
	if (errnum == ELOOP || errnum == ENOTDIR)
		return err_set(e, ERR_INVALID,
			       "entry " SHOWN " lies below something that is not a directory",
			       path);
	return err_sys(e, errnum, "cannot open the directory of " SHOWN, path);
}

/* Open the parent directory of path; make it if missing. */
static int enter_parent(struct unpack *u, struct err *e)
{
	const char *slash = strrchr(u->path, '/');
	size_t n = slash ? (size_t)(slash - u->path) : 0;
	int fd;

	u->base = slash ? slash + 1 : u->path;
	if (u->parent_fd >= 0 && strlen(u->parent) == n && memcmp(u->parent, u->path, n) == 0)
		return 0;
	fd_close(&u->parent_fd);
	memcpy(u->parent, u->path, n);
	u->parent[n] = '\0';
	fd = tree_open(u->o->dir_fd, u->parent, O_PATH | O_DIRECTORY);
	if (fd == -ENOENT) {
		fd = make_parents(u->o->dir_fd, u->parent);
		if (fd == 0)
			fd = tree_open(u->o->dir_fd, u->parent, O_PATH | O_DIRECTORY);
	}
	if (fd < 0)
		return parent_fault(e, -fd, u->path);
	u->parent_fd = fd;
	return 0;
}

/* An entry that is not a directory replaces what exists. */
static int check_old(struct unpack *u, struct err *e)
{
	struct stat st;

	if (fstatat(u->parent_fd, u->base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_CONFLICT, SHOWN " is a directory and is not replaced",
			       u->path);
	/* Unpacking over a device must not remove the device's name. */
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return err_set(e, ERR_CONFLICT, SHOWN " is a special file and is not replaced",
			       u->path);
	return 0;
}

/* After EEXIST. */
static int remove_old(struct unpack *u, struct err *e)
{
	if (check_old(u, e) < 0)
		return -1;
	if (unlinkat(u->parent_fd, u->base, 0) == 0 || errno == ENOENT)
		return 0;
	return err_sys(e, errno, "cannot replace " SHOWN, u->path);
}

static void set_xattrs(struct unpack *u, int fd)
{
	struct str rest = u->r.entry.records, name, value;
	char text[256];

	while (tar_xattr_next(&rest, &name, &value))
		if (!str_copy(text, sizeof text, name) ||
		    fsetxattr(fd, text, value.p, value.n, 0) < 0)
			u->n->skipped++;
}

static int set_meta(struct unpack *u, int fd, const struct made_dir *m)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
				     { .tv_sec = (time_t)m->mtime_s, .tv_nsec = m->mtime_ns } };

	if (u->o->owners && fchown(fd, (uid_t)m->uid, (gid_t)m->gid) < 0)
		return -errno;
	if (fchmod(fd, m->mode & u->o->mode_mask) < 0 || futimens(fd, times) < 0)
		return -errno;
	return 0;
}

static struct made_dir meta_of(const struct tar_entry *t)
{
	return (struct made_dir){ t->uid, t->gid, t->mtime_s, t->mtime_ns, t->mode };
}

static int note_dir(struct unpack *u, struct err *e)
{
	struct made_dir m = meta_of(&u->r.entry);
	size_t n = strlen(u->path) + 1;
	int k = buf_add(&u->dirs, &m, sizeof m);

	if (k == 0)
		k = buf_add(&u->dirs, u->path, n);
	if (k == 0)
		k = buf_add(&u->dirs, &n, sizeof n);
	if (k < 0)
		return err_set(e, ERR_LIMIT, "too many directories, " SHOWN " is one too many",
			       u->path);
	return 0;
}

static int make_dir(struct unpack *u, struct err *e)
{
	struct stat st;

	if (mkdirat(u->parent_fd, u->base, 0700) == 0) {
		if (u->r.entry.records.n) {
			auto_close int fd =
				tree_open(u->parent_fd, u->base, O_RDONLY | O_DIRECTORY);

			if (fd >= 0)
				set_xattrs(u, fd);
		}
		return note_dir(u, e);
	}
	if (errno != EEXIST)
		return err_sys(e, errno, "cannot make directory " SHOWN, u->path);
	if (fstatat(u->parent_fd, u->base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "cannot look at " SHOWN, u->path);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_CONFLICT, SHOWN " exists and is not a directory", u->path);
	return 0;
}

/* whole: all of its content has arrived, so writing does not wait. */
static int make_file(struct unpack *u, bool whole, struct err *e)
{
	int k;

	if (tree_check_size(u->n, u->r.entry.size, u->o->max_bytes, e) < 0 || check_old(u, e) < 0)
		return -1;
	k = newfile_open(&u->file, u->parent_fd, u->base, whole);
	if (k == -EEXIST) {
		if (remove_old(u, e) < 0)
			return -1;
		k = newfile_open(&u->file, u->parent_fd, u->base, whole);
	}
	if (k < 0)
		return err_sys(e, -k, "cannot make " SHOWN, u->path);
	if (u->r.entry.records.n)
		set_xattrs(u, u->file.fd);
	return 0;
}

static int make_symlink(struct unpack *u, struct err *e)
{
	const struct tar_entry *t = &u->r.entry;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
				     { .tv_sec = (time_t)t->mtime_s, .tv_nsec = t->mtime_ns } };
	int k = symlinkat(t->link, u->parent_fd, u->base);

	if (k < 0 && errno == EEXIST) {
		if (remove_old(u, e) < 0)
			return -1;
		k = symlinkat(t->link, u->parent_fd, u->base);
	}
	if (k < 0)
		return err_sys(e, errno, "cannot make symbolic link " SHOWN, u->path);
	if (u->o->owners &&
	    fchownat(u->parent_fd, u->base, (uid_t)t->uid, (gid_t)t->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "cannot set the owner of " SHOWN, u->path);
	(void)utimensat(u->parent_fd, u->base, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* The directory and the stat of a hard link's target, which must be a regular file. */
static int find_target(struct unpack *u, char *target, int *ret_fd, const char **ret_base,
		       struct stat *ret_st, struct err *e)
{
	char *slash = strrchr(target, '/');
	int fd;

	if (slash)
		*slash = '\0';
	fd = tree_open(u->o->dir_fd, slash ? target : "", O_PATH | O_DIRECTORY);
	if (fd < 0)
		return parent_fault(e, -fd, u->r.entry.link);
	*ret_fd = fd;
	*ret_base = slash ? slash + 1 : target;
	if (!**ret_base || fstatat(fd, *ret_base, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, ERR_INVALID,
			       "entry " SHOWN " is a hard link to " SHOWN ", which is missing",
			       u->path, u->r.entry.link);
	if (!S_ISREG(ret_st->st_mode))
		return err_set(e, ERR_INVALID,
			       "entry " SHOWN " is a hard link to " SHOWN ", which is no file",
			       u->path, u->r.entry.link);
	return 0;
}

static int make_hardlink(struct unpack *u, struct err *e)
{
	auto_close int fd = FD_NONE;
	char target[LIMIT_PATH];
	const char *base = NULL;
	struct stat st, old;
	int k;

	if (map_name(u, u->r.entry.link, target, e) < 0 ||
	    find_target(u, target, &fd, &base, &st, e) < 0)
		return -1;
	k = linkat(fd, base, u->parent_fd, u->base, 0);
	if (k < 0 && errno == EEXIST) {
		/* A link to itself must not remove the only copy. */
		if (fstatat(u->parent_fd, u->base, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
		    old.st_dev == st.st_dev && old.st_ino == st.st_ino)
			return 0;
		if (remove_old(u, e) < 0)
			return -1;
		k = linkat(fd, base, u->parent_fd, u->base, 0);
	}
	return k < 0 ? err_sys(e, errno, "cannot link '%s'", u->path) : 0;
}

/* available: bytes of the stream already received after the header. */
static int on_entry(struct unpack *u, size_t available, struct err *e)
{
	const struct tar_entry *t = &u->r.entry;

	if (++u->entries > LIMIT_TREE_ENTRIES)
		return err_set(e, ERR_LIMIT, "the tar stream has more than %d entries",
			       LIMIT_TREE_ENTRIES);
	if (map_name(u, t->path, u->path, e) < 0)
		return -1;
	if (t->type == TAR_DIR)
		u->n->dirs++;
	else
		u->n->files++;
	if (u->path[0] == '\0') {
		if (t->type == TAR_DIR)
			return 0;
		return err_set(e, ERR_INVALID, "entry " SHOWN " would replace the destination",
			       t->path);
	}
	if (enter_parent(u, e) < 0)
		return -1;
	switch (t->type) {
	case TAR_FILE:
		return make_file(u, available >= t->size, e);
	case TAR_DIR:
		return make_dir(u, e);
	case TAR_SYMLINK:
		return make_symlink(u, e);
	case TAR_HARDLINK:
		break;
	}
	return make_hardlink(u, e);
}

static int on_data(struct unpack *u, struct str data, struct err *e)
{
	int k = newfile_write(&u->file, data);

	if (k < 0)
		return err_sys(e, -k, "cannot write " SHOWN, u->path);
	u->n->bytes += data.n;
	return 0;
}

static int name_file(struct unpack *u, struct err *e)
{
	int k = newfile_commit(&u->file, u->parent_fd, u->base);

	if (k == -EEXIST) {
		if (remove_old(u, e) < 0)
			return -1;
		k = newfile_commit(&u->file, u->parent_fd, u->base);
	}
	return k < 0 ? err_sys(e, -k, "cannot make " SHOWN, u->path) : 0;
}

static int on_entry_end(struct unpack *u, struct err *e)
{
	struct made_dir m = meta_of(&u->r.entry);
	int k;

	if (u->file.fd < 0)
		return 0;
	k = newfile_end(&u->file);
	if (k < 0)
		return err_sys(e, -k, "cannot write " SHOWN, u->path);
	k = set_meta(u, u->file.fd, &m);
	if (k < 0)
		return err_sys(e, -k, "cannot set mode and time of " SHOWN, u->path);
	if (name_file(u, e) < 0)
		return -1;
	k = close(u->file.fd) < 0 ? -errno : 0;
	u->file.fd = FD_NONE;
	return k < 0 ? err_sys(e, -k, "cannot write " SHOWN, u->path) : 0;
}

static int stream_fault(struct unpack *u, int errnum, struct err *e)
{
	if (errnum == ENOMEM)
		return err_sys(e, errnum, "cannot read the tar stream");
	if (u->r.path[0])
		return err_set(e, ERR_INVALID, "entry " SHOWN " %s", u->r.path, u->r.why);
	return err_set(e, ERR_INVALID, "the tar stream is damaged: %s", u->r.why);
}

/* Handle all events of one chunk. 1 at the end marker. */
static int feed(struct unpack *u, struct str in, struct err *e)
{
	for (;;) {
		struct str data;
		int ev = tar_read(&u->r, &in, &data);
		int k = 0;

		if (ev < 0)
			return stream_fault(u, -ev, e);
		if (ev == TAR_MORE || ev == TAR_END)
			return ev == TAR_END;
		if (ev == TAR_ENTRY)
			k = on_entry(u, in.n, e);
		else if (ev == TAR_DATA)
			k = on_data(u, data, e);
		else
			k = on_entry_end(u, e);
		if (k < 0)
			return k;
		tree_report(&u->o->progress, u->n);
	}
}

static int early_end(struct unpack *u, struct err *e)
{
	if (u->entries)
		err_set(e, ERR_FAILED, "the tar stream ended early, after %llu entries, in " SHOWN,
			(unsigned long long)u->entries, u->path);
	else
		err_set(e, ERR_FAILED, "the tar stream ended before its first entry");
	e->sys = ENODATA;
	return -1;
}

/* Read the whole stream, also what follows the end marker, so that its writer gets no EPIPE. */
static int read_stream(struct unpack *u, char *chunk, struct err *e)
{
	size_t after = 0;
	int end = 0;

	for (;;) {
		ssize_t n = read(u->o->in_fd, chunk, CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, errno, "cannot read the tar stream");
		if (n == 0)
			return end ? 0 : early_end(u, e);
		if (end)
			after += (size_t)n;
		if (after > LIMIT_TAR_TRAILER)
			return err_set(e, ERR_INVALID,
				       "the tar stream continues after its end marker");
		if (!end)
			end = feed(u, (struct str){ chunk, (size_t)n }, e);
		if (end < 0)
			return -1;
	}
}

/* Go backwards, because children follow their parents in the list and a mode may lock us out. */
static int finish_dirs(struct unpack *u, struct err *e)
{
	size_t at = u->dirs.len;

	while (at > 0) {
		struct made_dir m;
		const char *path;
		size_t n;
		int fd, k;

		at -= sizeof n;
		memcpy(&n, u->dirs.data + at, sizeof n);
		at -= n;
		path = u->dirs.data + at;
		at -= sizeof m;
		memcpy(&m, u->dirs.data + at, sizeof m);
		fd = tree_open(u->o->dir_fd, path, O_RDONLY | O_DIRECTORY);
		k = fd < 0 ? fd : set_meta(u, fd, &m);
		fd_close(&fd);
		if (k < 0)
			return err_sys(e, -k, "cannot set mode and time of " SHOWN, path);
	}
	return 0;
}

int tar_unpack(const struct tar_unpack *o, struct tree_counts *n, struct err *e)
{
	auto_done(unpack_done) struct unpack u = { .o = o,
						   .n = n,
						   .parent_fd = FD_NONE,
						   .file = NEWFILE_INIT,
						   .dirs = BUF_INIT(LIMIT_TREE_DIRS) };
	auto_free char *chunk = malloc(CHUNK);

	tar_reader_init(&u.r);
	if (!chunk)
		return err_sys(e, ENOMEM, "cannot read the tar stream");
	return read_stream(&u, chunk, e) < 0 ? -1 : finish_dirs(&u, e);
}
