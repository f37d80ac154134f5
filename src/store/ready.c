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
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dir.h"
#include "base/io.h"

static const char *const own_files[] = { ".claims", ".misses", ".record", ".record.new",
					 ".wanted" };

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

	for (size_t i = 0; fd >= 0 && i < ARRAY_LEN(own_files); i++)
		(void)unlinkat(fd, own_files[i], 0);
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

static int open_lock(const struct state *s, const char *path, int flags)
{
	int fd = openat(s->fd, path, O_NOFOLLOW | O_CLOEXEC | flags, 0600);

	return fd < 0 ? -errno : fd;
}

static bool is_linked(const struct state *s, const char *path, int fd)
{
	struct stat here, there;

	return fstat(fd, &here) == 0 && fstatat(s->fd, path, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* Lock a file of warm/ and write a number to it. */
static int lock_with(const struct state *s, const char *path, long number)
{
	char text[24];

	for (;;) {
		auto_close int fd = FD_NONE;
		int r = io_mkdir(s->fd, "ready", 0700);

		fd = r < 0 ? r : open_lock(s, path, O_RDWR | O_CREAT);
		if (fd == -ENOENT) /* the last keeper has just removed the directory */
			continue;
		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return -errno;
		if (!is_linked(s, path, fd))
			continue;
		(void)snprintf(text, sizeof text, "%ld\n", number);
		if (ftruncate(fd, 0) < 0 || pwrite(fd, text, strlen(text), 0) < 0)
			return -errno;
		return TAKE_FD(fd);
	}
}

int ready_lock(const struct state *s)
{
	return lock_with(s, "ready/lock", (long)getpid());
}

long ready_keeper(const struct state *s)
{
	auto_close int fd = open_lock(s, "ready/lock", O_RDONLY);
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

/* Several processes may write the same record at once. */
static int put_record(int key_fd, struct str record)
{
	if (faccessat(key_fd, ".record", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return io_replace_file(key_fd, ".record.new", ".record", record);
}

int ready_note_misses(const struct state *s, const char *key, struct str record, size_t n)
{
	auto_close int kind = ready_make_key(s, key), fd = FD_NONE;
	int r = kind < 0 ? kind : put_record(kind, record);

	if (r < 0)
		return r;
	fd = openat(kind, ".misses", O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (; n > 0 && r == 0; n--)
		r = io_write_all(fd, ".", 1);
	return r;
}

int ready_read_record(const struct state *s, const char *key, struct buf *ret)
{
	auto_close int kind = ready_open_key(s, key);

	return kind < 0 ? kind : io_read_file(kind, ".record", ret);
}

int ready_use(const struct state *s, const char *key, struct ready_use *ret)
{
	auto_close int kind = ready_open_key(s, key);
	struct stat record, misses;
	time_t now = time(NULL);

	if (kind < 0)
		return kind;
	if (fstatat(kind, ".record", &record, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(kind, ".misses", &misses, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	ret->used = ready_claims(s, key) + (uint64_t)misses.st_size;
	ret->age_s = now > record.st_mtim.tv_sec ? (uint64_t)(now - record.st_mtim.tv_sec) : 0;
	return 0;
}

int ready_demand_lock(const struct state *s, uint32_t most)
{
	return lock_with(s, "ready/demand", (long)most);
}

void ready_demand_unlock(const struct state *s, int *fd)
{
	(void)unlinkat(s->fd, "ready/demand", 0);
	fd_close(fd);
}

bool ready_demand_exists(const struct state *s)
{
	return faccessat(s->fd, "ready/demand", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool ready_demand_settings(const struct state *s, uint64_t *ret_most)
{
	auto_close int fd = open_lock(s, "ready/demand", O_RDONLY);
	char text[24] = "";

	if (fd < 0)
		return false;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) { /* its server is gone */
		if (is_linked(s, "ready/demand", fd))
			(void)unlinkat(s->fd, "ready/demand", 0);
		return false;
	}
	if (pread(fd, text, sizeof text - 1, 0) <= 0)
		return false; /* it is about to write; it wakes the keeper afterwards */
	*ret_most = strtoull(text, NULL, 10);
	return true;
}

void ready_note_wanted(const struct state *s, const char *key, uint32_t wanted)
{
	auto_close int kind = ready_open_key(s, key), fd = FD_NONE;
	char text[24];

	if (kind < 0)
		return;
	(void)snprintf(text, sizeof text, "%-10u\n", wanted); /* always as long: no truncation */
	fd = openat(kind, ".wanted", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)io_write_all(fd, text, strlen(text));
}

uint32_t ready_wanted(const struct state *s, const char *key)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	auto_close int kind = ready_open_key(s, key);

	if (kind < 0 || io_read_file(kind, ".wanted", &b) < 0 || buf_add(&b, "", 1) < 0)
		return 0;
	return (uint32_t)strtoul(b.data, NULL, 10);
}
