/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/random.h"
#include "base/str.h"

static const char *const subdirs[] = { "locks", "sandboxes", "ended", "templates", "layers" };

enum {
	LOCK_TRIES = 20,    /* while a process that only checks holds the lock */
	LOCK_WAIT_US = 100, /* grows with each try; 21 ms in all */
	RELOCKS = 1000,	    /* while removals delete the file meanwhile */
};

static const char *env(const char *name)
{
	const char *v = getenv(name);

	return v && v[0] ? v : NULL;
}

static int set_dir(struct state *s, const char *base, const char *below, struct err *e)
{
	int n = snprintf(s->dir, sizeof s->dir, "%s%s", base, below);

	if (n >= 0 && (size_t)n < sizeof s->dir)
		return 0;
	err_set(e, ERR_INVALID, "the path of the state directory is longer than %zu bytes",
		sizeof s->dir - 1);
	return err_hint(e, "set CAY_STATE to a shorter one");
}

int state_locate(struct state *s, struct err *e)
{
	const char *own = env("CAY_STATE"), *xdg = env("XDG_STATE_HOME"), *home = env("HOME");

	s->fd = FD_NONE;
	if (own && own[0] != '/') {
		err_set(e, ERR_INVALID, "CAY_STATE is '%s', not an absolute path", own);
		return -1;
	}
	if (own)
		return set_dir(s, own, "", e);
	if (geteuid() == 0)
		return set_dir(s, "/var/lib/cay", "", e);
	/* The XDG specification says to ignore relative paths. */
	if (xdg && xdg[0] == '/')
		return set_dir(s, xdg, "/cay", e);
	if (home && home[0] == '/')
		return set_dir(s, home, "/.local/state/cay", e);
	err_set(e, ERR_INVALID, "no place for the state directory: HOME is not set");
	return err_hint(e, "set CAY_STATE to a directory of your own");
}

static int check_owner(const struct state *s, int fd, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "cannot look at %s", s->dir);
	if (st.st_uid != geteuid()) {
		err_set(e, ERR_NOT_ALLOWED, "state directory %s belongs to uid %u, not to uid %u",
			s->dir, st.st_uid, geteuid());
		return err_hint(e, "set CAY_STATE to a directory of your own");
	}
	if (st.st_mode & STATE_OTHERS) {
		err_set(e, ERR_NOT_ALLOWED, "state directory %s is open to others (mode %04o)",
			s->dir, st.st_mode & 07777);
		return err_hint(e, "chmod 700 %s, or set CAY_STATE to another directory", s->dir);
	}
	return 0;
}

int state_private_file(const struct state *s, const char *name, bool create)
{
	auto_close int fd = FD_NONE;
	struct stat st;

	if (create) {
		fd = openat(s->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : 0;
	}
	if (fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (!(st.st_mode & STATE_OTHERS))
		return 0;
	return fchmodat(s->fd, name, 0600, 0) < 0 ? -errno : 0;
}

static int make_subdirs(const struct state *s, int fd, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(subdirs); i++) {
		int r = io_mkdir(fd, subdirs[i], 0700);

		if (r < 0) {
			err_sys(e, -r, "cannot make %s/%s", s->dir, subdirs[i]);
			return err_hint(e, "set CAY_STATE to a directory that can be written");
		}
	}
	return 0;
}

static int open_dir(const struct state *s)
{
	return open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int state_open(struct state *s, struct err *e)
{
	auto_close int fd = FD_NONE;
	int r;

	s->fd = FD_NONE;
	if (state_locate(s, e) < 0)
		return -1;
	fd = open_dir(s);
	if (fd < 0 && errno == ENOENT) {
		r = io_mkdir_all(s->dir, 0700);
		if (r < 0) {
			err_sys(e, -r, "cannot make the state directory %s", s->dir);
			return err_hint(e, "set CAY_STATE to a directory that can be written");
		}
		fd = open_dir(s);
	}
	if (fd < 0) {
		err_sys(e, errno, "cannot open the state directory %s", s->dir);
		return err_hint(e, "set CAY_STATE to a directory of your own");
	}
	if (check_owner(s, fd, e) < 0 || make_subdirs(s, fd, e) < 0)
		return -1;
	s->fd = TAKE_FD(fd);
	return 0;
}

void state_done(struct state *s)
{
	fd_close(&s->fd);
}

static bool is_id_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool state_id_ok(const char *id)
{
	size_t n = 0;

	while (n <= ID_MAX && is_id_char(id[n]))
		n++;
	return n >= 8 && n <= ID_MAX && id[n] == '\0';
}

bool state_name_ok(const char *name)
{
	size_t n = 0;

	while (n <= 63 && (is_id_char(name[n]) || (name[n] >= 'A' && name[n] <= 'Z') ||
			   (n > 0 && name[n] && strchr("_.-", name[n]))))
		n++;
	return n >= 1 && n <= 63 && name[n] == '\0';
}

int state_id_new(char out[ID_SIZE], struct err *e)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	size_t n = 0;

	while (n < ID_LEN) {
		unsigned char b[32];
		int r = random_bytes(b, sizeof b);

		if (r < 0)
			return err_sys(e, -r, "no random bytes for an id");
		/* Bytes above the last multiple of `letters` would favour the first letters. */
		for (size_t i = 0; i < sizeof b && n < ID_LEN; i++) {
			unsigned letters = n == 0 ? 26 : 36;

			if (b[i] < 256 / letters * letters)
				out[n++] = chars[b[i] % letters];
		}
	}
	out[n] = '\0';
	return 0;
}

static int check_id(const char *id, struct err *e)
{
	return state_id_ok(id) ? 0 : err_set(e, ERR_INVALID, "'%s' is not a sandbox id", id);
}

/* -EWOULDBLOCK if it stays held. */
static int flock_patiently(int fd)
{
	for (int i = 1;; i++) {
		struct timespec t = { .tv_nsec = i * LOCK_WAIT_US * (long)NS_PER_US };

		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (i > LOCK_TRIES)
			return -EWOULDBLOCK;
		(void)nanosleep(&t, NULL);
	}
}

/* The file may have been unlinked, and even made again, between open and flock. */
static bool is_still_named(const struct state *s, const char *path, int fd)
{
	struct stat have, named;

	return fstat(fd, &have) == 0 && have.st_nlink > 0 &&
	       fstatat(s->fd, path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       have.st_ino == named.st_ino && have.st_dev == named.st_dev;
}

/*
 * A new lock gets its name after it is taken, so reconcile cannot find it unlocked. FD_NONE if the
 * name exists, or the file system has no unnamed files.
 */
static int lock_unnamed(const struct state *s, const char *path, struct str record)
{
	char link[32];
	auto_close int fd = openat(s->fd, "locks", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || io_write_all(fd, record.p, record.n) < 0)
		return FD_NONE;
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, link, s->fd, path, AT_SYMLINK_FOLLOW) < 0)
		return FD_NONE;
	failpoint("lock.named");
	return TAKE_FD(fd);
}

int state_lock(const struct state *s, const char *id, int *ret_fd, struct err *e)
{
	return state_lock_new(s, id, STR_NONE, ret_fd, e);
}

int state_lock_new(const struct state *s, const char *id, struct str record, int *ret_fd,
		   struct err *e)
{
	char path[sizeof "locks/" + ID_SIZE];
	int unnamed;

	if (check_id(id, e) < 0)
		return -1;
	(void)snprintf(path, sizeof path, "locks/%s", id);
	unnamed = lock_unnamed(s, path, record);
	if (unnamed >= 0) {
		*ret_fd = unnamed;
		return 0;
	}
	for (int i = 0; i < RELOCKS; i++) {
		auto_close int fd =
			openat(s->fd, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		int r;

		if (fd < 0)
			return err_sys(e, errno, "cannot open %s/%s", s->dir, path);
		r = flock_patiently(fd);
		if (r == -EWOULDBLOCK)
			return err_set(e, ERR_CONFLICT, "sandbox '%s' is in use", id);
		if (r < 0)
			return err_sys(e, -r, "cannot lock %s/%s", s->dir, path);
		if (is_still_named(s, path, fd)) {
			r = io_write_all(fd, record.p, record.n);
			if (r < 0) {
				(void)unlinkat(s->fd, path, 0);
				return err_sys(e, -r, "write %s/%s", s->dir, path);
			}
			*ret_fd = TAKE_FD(fd);
			return 0;
		}
	}
	return err_set(e, ERR_CONFLICT, "sandbox '%s' is being removed", id);
}

void state_unlock(const struct state *s, const char *id, int fd)
{
	char path[sizeof "locks/" + ID_SIZE];

	(void)snprintf(path, sizeof path, "locks/%s", id);
	(void)unlinkat(s->fd, path, 0);
	(void)close(fd);
}

bool state_lock_is_held(int state_fd, const char *id)
{
	char path[sizeof "locks/" + ID_SIZE];
	auto_close int fd = FD_NONE;

	if (!state_id_ok(id))
		return false;
	(void)snprintf(path, sizeof path, "locks/%s", id);
	fd = openat(state_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

bool state_is_alive(const struct state *s, const char *id)
{
	return state_lock_is_held(s->fd, id);
}

int state_sandbox_open(const struct state *s, const char *id, int *ret_fd, struct err *e)
{
	char path[sizeof "sandboxes/" + ID_SIZE];
	int fd;

	if (check_id(id, e) < 0)
		return -1;
	(void)snprintf(path, sizeof path, "sandboxes/%s", id);
	fd = openat(s->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "sandbox '%s' has no directory", id);
	if (fd < 0)
		return err_sys(e, errno, "cannot open %s/%s", s->dir, path);
	*ret_fd = fd;
	return 0;
}

int state_take_slot(const struct state *s, int slots, int *ret_slot, int *ret_fd, struct err *e)
{
	auto_close int fd = openat(s->fd, "uids", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	uint32_t first = 0;

	if (fd < 0)
		return err_sys(e, errno, "open '%s/uids'", s->dir);
	if (random_bytes(&first, sizeof first) < 0)
		return err_sys(e, EIO, "random bytes");
	for (int i = 0; i < slots; i++) {
		int slot = (int)((first + (uint32_t)i) % (uint32_t)slots);
		struct flock lock = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1
		};

		if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
			*ret_slot = slot;
			*ret_fd = TAKE_FD(fd);
			return 0;
		}
		if (errno != EAGAIN && errno != EACCES)
			return err_sys(e, errno, "lock '%s/uids'", s->dir);
	}
	return err_set(e, ERR_LIMIT, "all %d uid ranges are taken by sandboxes", slots);
}
