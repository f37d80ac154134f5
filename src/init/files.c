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
#include <sys/xattr.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "image/newfile.h"
#include "image/tar_pack.h"
#include "image/tar_unpack.h"
#include "wire/file_entry.h"

enum { CHUNK = 256 * 1024, LINKS_MAX = 40 /* the kernel's value */ };

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
	/* The report is one line, but names may contain any byte. */
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

/* Why a path of this type cannot be read or written as a file; NULL for a regular file. */
static const char *type_fault(mode_t mode)
{
	if (S_ISREG(mode))
		return NULL;
	if (S_ISDIR(mode))
		return "is a directory";
	return "is not a regular file";
}

/* Copy the rest of `from`, at most `most` bytes. -errno of reading or writing. */
static int copy_some(int from, int to, uint64_t most)
{
	auto_free char *chunk = malloc(CHUNK);

	if (!chunk)
		return -ENOMEM;
	while (most) {
		ssize_t n = read(from, chunk, most < CHUNK ? (size_t)most : CHUNK);
		int k;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		k = io_write_all(to, chunk, (size_t)n);
		if (k < 0)
			return k;
		most -= (uint64_t)n;
	}
	return 0;
}

static int copy_all(int from, int to)
{
	return copy_some(from, to, UINT64_MAX);
}

/* The same with the kernel's help if possible; otherwise copy from where it stopped. */
static int send_some(int from, int to, uint64_t most)
{
	const size_t piece = 1 << 20;
	ssize_t n = 0;

	do {
		most -= n > 0 ? (uint64_t)n : 0;
		n = sendfile(to, from, NULL, most < piece ? (size_t)most : piece);
	} while (n > 0 || (n < 0 && errno == EINTR));
	/* For files of /proc the kernel may return 0 although there is content. */
	if (n < 0 && errno == EPIPE)
		return -EPIPE;
	return copy_some(from, to, most);
}

int files_read(const char *path, uint64_t offset, uint64_t length)
{
	auto_close int fd = FD_NONE;
	struct stat st;
	int k;

	/* Check first, because opening a device can have effects; check again when it is open. */
	if (stat(path, &st) < 0)
		return fail_sys(path, errno);
	if (type_fault(st.st_mode))
		return fail(path, type_fault(st.st_mode));
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_sys(path, errno);
	if (type_fault(st.st_mode))
		return fail(path, type_fault(st.st_mode));
	if (offset && (offset > INT64_MAX || lseek(fd, (off_t)offset, SEEK_SET) < 0))
		return fail_sys(path, offset > INT64_MAX ? EINVAL : errno);
	k = send_some(fd, STDOUT_FILENO, length);
	return k < 0 ? fail_sys(path, -k) : 0;
}

/* A file to write: its real path, the existing file, and its temporary file. */
struct target {
	char path[LIMIT_PATH]; /* with final links resolved */
	int dir_fd;	       /* its directory */
	struct newfile file;
	char temp[32]; /* name of the temporary file */
	struct stat st;
	bool exists;
	mode_t mode; /* for a new file */
	char *const *metadata;
};

/* Length of the directory part with its slash; 0 if there is none. */
static size_t dir_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) + 1 : 0;
}

/*
 * Follow links at the end of the path, as open(O_CREAT) does, so that the temporary file is made
 * beside the file itself. The kernel resolves the directories before it.
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

#define TEMP_NEW  ".cay-new-"
#define TEMP_OVER ".cay-mod-"

enum files_temp files_temp_kind(const char *name)
{
	size_t prefix = sizeof TEMP_NEW - 1;

	if (strlen(name) != prefix + 16)
		return FILES_NOT_TEMP;
	if (strncmp(name, TEMP_NEW, prefix) == 0)
		return FILES_TEMP_NEW;
	return strncmp(name, TEMP_OVER, prefix) == 0 ? FILES_TEMP_OVER : FILES_NOT_TEMP;
}

/* Attributes of FILE_ENTRY_XATTR; a file system without any has none. */
static int describe(int fd, char *const *metadata)
{
	char name[256];

	for (; metadata && *metadata; metadata++) {
		const char *eq = strchr(*metadata, '=');

		if (!eq || snprintf(name, sizeof name, FILE_ENTRY_XATTR "%.*s",
				    (int)(eq - *metadata), *metadata) >= (int)sizeof name)
			return -EINVAL;
		if (fsetxattr(fd, name, eq + 1, strlen(eq + 1), 0) < 0 && errno != ENOTSUP)
			return -errno;
	}
	return 0;
}

/* A new file beside the target, with the owner and mode of the target. */
static int open_temp(struct target *t)
{
	uint64_t salt = 0;
	char dir[LIMIT_PATH];
	size_t n = dir_len(t->path);
	int k;

	if (getrandom(&salt, sizeof salt, 0) != sizeof salt)
		return -EIO;
	(void)snprintf(t->temp, sizeof t->temp, "%s%016llx", t->exists ? TEMP_OVER : TEMP_NEW,
		       (unsigned long long)salt);
	(void)snprintf(dir, sizeof dir, "%.*s", (int)n, t->path);
	t->dir_fd = open(n ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (t->dir_fd < 0)
		return -errno;
	k = newfile_open(&t->file, t->dir_fd, t->temp, false);
	if (k < 0)
		return k;
	if ((t->exists && (t->st.st_uid != geteuid() || t->st.st_gid != getegid()) &&
	     fchown(t->file.fd, t->st.st_uid, t->st.st_gid) < 0) ||
	    fchmod(t->file.fd, t->exists ? t->st.st_mode & 0777 : t->mode) < 0)
		return -errno;
	return 0;
}

/* Copy all of stdin. */
static int fill_temp(struct target *t)
{
	auto_free char *chunk = malloc(CHUNK);
	ssize_t n = 1;
	int k = chunk ? 0 : -ENOMEM;

	while (k == 0 && n > 0) {
		n = read(STDIN_FILENO, chunk, CHUNK);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			k = -errno;
		else
			k = newfile_write(&t->file, (struct str){ chunk, (size_t)n });
	}
	return k < 0 ? k : newfile_end(&t->file);
}

static int write_by_rename(struct target *t)
{
	int k = fill_temp(t);

	if (k == 0)
		k = describe(t->file.fd, t->metadata);
	if (k == 0)
		k = newfile_commit(&t->file, t->dir_fd, t->temp);
	if (k == 0 && close(TAKE_FD(t->file.fd)) < 0)
		k = -errno;
	if (k == 0 && renameat(t->dir_fd, t->temp, t->dir_fd, t->path + dir_len(t->path)) < 0)
		k = -errno;
	if (k < 0 && t->file.fd < 0)
		(void)unlinkat(t->dir_fd, t->temp, 0);
	return k;
}

/*
 * For a file that we may write in a directory that we may not, or whose owner we cannot give to a
 * new file. An interrupted stream leaves a partial file.
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
	int k;

	if (t->exists && access(t->path, W_OK) < 0)
		return -errno;
	k = open_temp(t);
	if (k == 0)
		return write_by_rename(t);
	if (t->exists && (k == -EACCES || k == -EPERM || k == -EROFS))
		return write_in_place(t);
	return k;
}

static void target_done(struct target *t)
{
	newfile_drop(&t->file, t->dir_fd, t->temp);
	fd_close(&t->dir_fd);
}
DEFINE_AUTO(struct target, target_done)

int files_write(const char *path, mode_t mode, char *const *metadata)
{
	auto_done(target_done) struct target t = { .mode = mode ? mode & 0777 : 0644,
						   .dir_fd = FD_NONE,
						   .metadata = metadata,
						   .file = NEWFILE_INIT };
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

/* Report entries that were left out, even if the copy succeeded. */
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
