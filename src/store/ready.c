/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ready.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dir.h"
#include "base/io.h"

static void kind_path(const char *key, char out[sizeof "ready/" + READY_KEY])
{
	(void)snprintf(out, sizeof "ready/" + READY_KEY, "ready/%s", key);
}

int ready_open_key(const struct state *s, const char *key)
{
	char path[sizeof "ready/" + READY_KEY];
	int fd;

	kind_path(key, path);
	fd = openat(s->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int ready_make_key(const struct state *s, const char *key)
{
	char path[sizeof "ready/" + READY_KEY];
	int r = io_mkdir(s->fd, "ready", 0700);

	kind_path(key, path);
	if (r == 0)
		r = io_mkdir(s->fd, path, 0700);
	return r < 0 ? r : ready_open_key(s, key);
}

/* Names of at most size - 1 bytes that `wanted` accepts. */
static int list(int dir_fd, bool (*wanted)(const char *), size_t size, void **ret, size_t *ret_n)
{
	auto_done(dir_free) DIR *d = dir_open_at(dir_fd, ".");
	auto_free char *names = NULL;
	size_t n = 0, room = 0;

	if (!d)
		return -errno;
	for (struct dirent *de = readdir(d); de; de = readdir(d)) {
		if (!wanted(de->d_name) || strlen(de->d_name) >= size)
			continue;
		if (n == room) {
			char *more = reallocarray(names, room + 32, 2 * size);

			if (!more)
				return -ENOMEM;
			names = more;
			room = (room + 32) * 2;
		}
		(void)snprintf(names + n++ * size, size, "%s", de->d_name);
	}
	*ret = TAKE_PTR(names);
	*ret_n = n;
	return 0;
}

int ready_list(int key_fd, char (**ret)[ID_SIZE], size_t *ret_n)
{
	void *names = NULL;
	int r = list(key_fd, state_id_ok, ID_SIZE, &names, ret_n);

	*ret = names;
	return r;
}

static bool is_key(const char *name)
{
	return strlen(name) == READY_KEY - 1 && strspn(name, "0123456789abcdef") == READY_KEY - 1;
}

int ready_keys(const struct state *s, char (**ret)[READY_KEY], size_t *ret_n)
{
	auto_close int fd = openat(s->fd, "ready", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	void *names = NULL;
	int r = fd < 0 ? -errno : list(fd, is_key, READY_KEY, &names, ret_n);

	*ret = names;
	return r;
}

uint64_t ready_claims(const struct state *s, const char *key)
{
	char path[sizeof "ready/" + READY_KEY + sizeof "/.claims"];
	struct stat st;

	(void)snprintf(path, sizeof path, "ready/%s/.claims", key);
	return fstatat(s->fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : (uint64_t)st.st_size;
}

void ready_drop_key(const struct state *s, const char *key)
{
	char path[sizeof "ready/" + READY_KEY];
	auto_close int fd = ready_open_key(s, key);

	if (fd >= 0)
		(void)unlinkat(fd, ".claims", 0);
	kind_path(key, path);
	(void)unlinkat(s->fd, path, AT_REMOVEDIR);
}

void ready_drop(const struct state *s)
{
	/* Not if a pool key is left: another process may have just made it. */
	if (unlinkat(s->fd, "ready", AT_REMOVEDIR) < 0 && errno == ENOTEMPTY) {
		(void)unlinkat(s->fd, "ready/lock", 0);
		(void)unlinkat(s->fd, "ready", AT_REMOVEDIR);
	}
}

bool ready_exists(const struct state *s)
{
	return faccessat(s->fd, "ready", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_lock(const struct state *s, int flags)
{
	int fd = openat(s->fd, "ready/lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);

	return fd < 0 ? -errno : fd;
}

static bool is_linked(const struct state *s, int fd)
{
	struct stat here, there;

	return fstat(fd, &here) == 0 &&
	       fstatat(s->fd, "ready/lock", &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

int ready_lock(const struct state *s)
{
	char pid[24];

	for (;;) {
		auto_close int fd = FD_NONE;
		int r = io_mkdir(s->fd, "ready", 0700);

		fd = r < 0 ? r : open_lock(s, O_CREAT);
		if (fd == -ENOENT) /* the last keeper has just removed the directory */
			continue;
		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return -errno;
		if (!is_linked(s, fd))
			continue;
		(void)snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
		if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, strlen(pid), 0) < 0)
			return -errno;
		return TAKE_FD(fd);
	}
}

long ready_keeper(const struct state *s)
{
	auto_close int fd = open_lock(s, 0);
	char text[24] = "";

	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0)
		return 0;
	if (pread(fd, text, sizeof text - 1, 0) <= 0)
		return 1; /* the keeper has the lock and is about to write its pid */
	return strtol(text, NULL, 10);
}

void ready_wake_keeper(const struct state *s)
{
	(void)utimensat(s->fd, "ready/lock", NULL, AT_SYMLINK_NOFOLLOW);
}
