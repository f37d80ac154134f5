/* SPDX-License-Identifier: Apache-2.0 */
#include "init/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "image/tar_pack.h"
#include "image/tar_unpack.h"

enum { CHUNK = 256 * 1024, LINKS_MAX = 40 /* as the kernel's */ };

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof line - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (n > (int)sizeof line - 2)
		n = (int)sizeof line - 2;
	/* One line is promised; names may hold anything. */
	for (char *c = line; c < line + n; c++)
		if (*c == '\n')
			*c = '?';
	line[n++] = '\n';
	(void)io_write_all(STDERR_FILENO, line, (size_t)n);
}

static int fail(const char *path, const char *why)
{
	say("%.700s: %s", path, why);
	return 1;
}

static int fail_sys(const char *path, int errnum)
{
	return fail(path, strerror(errnum));
}

static int fail_err(const struct err *e)
{
	say("%s", e->msg);
	return 1;
}

/* Why a path of this type is not read or written as a file; NULL for a regular file. */
static const char *type_fault(mode_t mode)
{
	if (S_ISREG(mode))
		return NULL;
	if (S_ISDIR(mode))
		return "is a directory";
	return "is not a regular file";
}

/* All that is left of `from`. -errno of reading or writing. */
static int copy_all(int from, int to)
{
	auto_free char *chunk = malloc(CHUNK);

	if (!chunk)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(from, chunk, CHUNK);
		int k;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		k = io_write_all(to, chunk, (size_t)n);
		if (k < 0)
			return k;
	}
}

/* The same by the kernel where it can; else as above, from where it stopped. */
static int send_all(int from, int to)
{
	ssize_t n;

	do {
		n = sendfile(to, from, NULL, 1 << 20);
	} while (n > 0 || (n < 0 && errno == EINTR));
	/* Files of /proc may say 0 at once although there is something to read. */
	if (n < 0 && errno == EPIPE)
		return -EPIPE;
	return copy_all(from, to);
}

int files_read(const char *path)
{
	auto_close int fd = FD_NONE;
	struct stat st;
	int k;

	/* Looked at first, since opening a device can have effects; and again once it is open. */
	if (stat(path, &st) < 0)
		return fail_sys(path, errno);
	if (type_fault(st.st_mode))
		return fail(path, type_fault(st.st_mode));
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_sys(path, errno);
	if (type_fault(st.st_mode))
		return fail(path, type_fault(st.st_mode));
	k = send_all(fd, STDOUT_FILENO);
	return k < 0 ? fail_sys(path, -k) : 0;
}

/* A file to be written: where it really is, what is there now, and its stand-in. */
struct target {
	char path[LIMIT_PATH]; /* with links at its end resolved */
	char temp[LIMIT_PATH + 32];
	struct stat st;
	bool exists;
	mode_t mode; /* for a new file */
};

/* Length of the directory part with its slash; 0 where there is none. */
static size_t dir_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

/*
 * Follow links at the end of the path, as open(O_CREAT) does, so that the stand-in can be
 * made beside the file itself. The directories before it are left to the kernel.
 */
static int resolve(struct target *t)
{
	char link[LIMIT_PATH], next[LIMIT_PATH];

	for (int i = 0; i < LINKS_MAX; i++) {
		ssize_t n = readlink(t->path, link, sizeof link - 1);
		size_t dir;

		if (n < 0)
			return errno == EINVAL || errno == ENOENT ? 0 : -errno;
		link[n] = '\0';
		dir = link[0] == '/' ? 0 : dir_len(t->path);
		if ((size_t)snprintf(next, sizeof next, "%.*s%s", (int)dir, t->path, link) >=
		    sizeof next)
			return -ENAMETOOLONG;
		memcpy(t->path, next, sizeof next);
	}
	return -ELOOP;
}

static int make_parent(const char *path)
{
	char dir[LIMIT_PATH];
	struct stat st;
	size_t n = dir_len(path);

	if (n <= 1)
		return 0;
	memcpy(dir, path, n - 1);
	dir[n - 1] = '\0';
	if (stat(dir, &st) == 0)
		return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	return io_mkdir_all(dir, 0755);
}

/* A new file beside the target, with the owner and mode that the target has or shall have. */
static int open_temp(struct target *t)
{
	uint64_t salt = 0;
	int fd;

	if (getrandom(&salt, sizeof salt, 0) != sizeof salt)
		return -EIO;
	(void)snprintf(t->temp, sizeof t->temp, "%.*s.cay-%016llx", (int)dir_len(t->path), t->path,
		       (unsigned long long)salt);
	fd = open(t->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if ((t->exists && (t->st.st_uid != geteuid() || t->st.st_gid != getegid()) &&
	     fchown(fd, t->st.st_uid, t->st.st_gid) < 0) ||
	    fchmod(fd, t->exists ? t->st.st_mode & 0777 : t->mode) < 0) {
		int k = -errno;

		(void)close(fd);
		(void)unlink(t->temp);
		return k;
	}
	return fd;
}

static int write_by_rename(struct target *t, int fd)
{
	int k = copy_all(STDIN_FILENO, fd);

	if (close(fd) < 0 && k == 0)
		k = -errno;
	if (k == 0 && rename(t->temp, t->path) < 0)
		k = -errno;
	if (k < 0)
		(void)unlink(t->temp);
	return k;
}

/*
 * For a file that we may write in a directory that we may not, or whose owner we could not
 * give to a new file. A broken stream leaves a part of it.
 */
static int write_in_place(struct target *t)
{
	auto_close int fd = open(t->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (ftruncate(fd, 0) < 0)
		return -errno;
	return copy_all(STDIN_FILENO, fd);
}

static int write_target(struct target *t)
{
	int fd;

	if (t->exists && access(t->path, W_OK) < 0)
		return -errno;
	fd = open_temp(t);
	if (fd >= 0)
		return write_by_rename(t, fd);
	if (t->exists && (fd == -EACCES || fd == -EPERM || fd == -EROFS))
		return write_in_place(t);
	return fd;
}

int files_write(const char *path, mode_t mode)
{
	struct target t = { .mode = mode ? mode & 0777 : 0644 };
	size_t n = strlen(path);
	int k;

	if (n == 0 || path[n - 1] == '/')
		return fail(path, "is not the name of a file");
	if (n >= sizeof t.path)
		return fail_sys(path, ENAMETOOLONG);
	memcpy(t.path, path, n + 1);
	k = resolve(&t);
	if (k == 0)
		k = make_parent(t.path);
	if (k < 0)
		return fail_sys(path, -k);
	t.exists = stat(t.path, &t.st) == 0;
	if (!t.exists && errno != ENOENT)
		return fail_sys(path, errno);
	if (t.exists && type_fault(t.st.st_mode))
		return fail(path, type_fault(t.st.st_mode));
	k = write_target(&t);
	return k < 0 ? fail_sys(path, -k) : 0;
}

/* What was left out is said even where the copy as such succeeded. */
static int report(const struct tree_counts *n)
{
	if (n->unreadable) {
		say("%llu could not be read, the first: %s", (unsigned long long)n->unreadable,
		    n->unreadable_first);
		return 1;
	}
	if (n->skipped)
		say("skipped %llu sockets, fifos, devices or attributes",
		    (unsigned long long)n->skipped);
	if (n->changed)
		say("%llu files changed while they were read", (unsigned long long)n->changed);
	return 0;
}

int files_read_tree(const char *path)
{
	struct tar_pack o = { .out_fd = STDOUT_FILENO, .dir_fd = AT_FDCWD, .path = path };
	struct tree_counts n = { 0 };
	struct err e;

	if (tar_pack(&o, &n, &e) < 0)
		return fail_err(&e);
	return report(&n);
}

int files_write_tree(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct tar_unpack o = { .in_fd = STDIN_FILENO, .dir_fd = fd, .mode_mask = 0777 };
	char parent[LIMIT_PATH];
	struct tree_counts n = { 0 };
	size_t len = strlen(path), dir = dir_len(path);
	struct err e;

	if (fd < 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			return fail_sys(path, errno);
		if (len == 0 || len >= sizeof parent || path[len - 1] == '/')
			return fail(path, "is not a directory");
		(void)snprintf(parent, sizeof parent, "%.*s", (int)dir, path);
		fd = open(dir ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return fail_sys(dir ? parent : ".", errno);
		o.dir_fd = fd;
		o.as = path + dir;
	}
	if (tar_unpack(&o, &n, &e) < 0)
		return fail_err(&e);
	return report(&n);
}
