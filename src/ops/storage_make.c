/* SPDX-License-Identifier: Apache-2.0 */
/* Set storage up and remove it. A partial failure is undone. */
#include "ops/storage_make.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "store/storage_file.h"
#include "sys/files/btrfs.h"

static int refuse_second(const struct state *s, struct err *e)
{
	if (geteuid() != 0)
		return err_set(e, ERR_NOT_ALLOWED, "storage needs root");
	if (!storage_exists(s))
		return 0;
	(void)err_set(e, ERR_CONFLICT, "there is storage already: '%s/%s'", s->dir, STORAGE_DIR);
	return err_code(e, "storage.exists", NULL);
}

static int run_mkfs(const char *image, struct err *e)
{
	char *argv[] = { "mkfs.btrfs", "-q", "-L", "cay", "-m", "single", (char *)image, NULL };
	char *envp[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	posix_spawn_file_actions_t quiet;
	pid_t pid;
	int st = 0, r;

	if (posix_spawn_file_actions_init(&quiet) != 0)
		return err_sys(e, ENOMEM, "start mkfs.btrfs");
	(void)posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
	r = posix_spawnp(&pid, "mkfs.btrfs", &quiet, NULL, argv, envp);
	(void)posix_spawn_file_actions_destroy(&quiet);
	if (r == ENOENT) {
		(void)err_set(e, ERR_UNAVAILABLE, "there is no program mkfs.btrfs");
		return err_code(e, "storage.no_mkfs", NULL);
	}
	while (r == 0 && waitpid(pid, &st, 0) < 0 && errno == EINTR)
		;
	if (r == 0 && WIFEXITED(st) && WEXITSTATUS(st) == 0)
		return 0;
	return err_set(e, ERR_FAILED, "mkfs.btrfs failed on '%s'", image);
}

static int make_file(const struct state *s, uint64_t size, struct err *e)
{
	auto_close int fd = openat(s->fd, STORAGE_NEW,
				   O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	char path[sizeof s->dir + 16];

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return err_sys(e, errno, "make '%s/%s'", s->dir, STORAGE_NEW);
	(void)snprintf(path, sizeof path, "%s/%s", s->dir, STORAGE_NEW);
	if (run_mkfs(path, e) < 0)
		return -1;
	return renameat(s->fd, STORAGE_NEW, s->fd, STORAGE_IMAGE) < 0
		       ? err_sys(e, errno, "make '%s/%s'", s->dir, STORAGE_IMAGE)
		       : 0;
}

/* Write the mark last: without it, a directory does not count as storage. */
static int furnish(int fd, enum btrfs_quota kind, struct err *e)
{
	auto_close int mark = FD_NONE;
	int r = btrfs_quota_enable(fd, kind);

	if (r == -EOPNOTSUPP && kind == BTRFS_QUOTA_SIMPLE)
		r = btrfs_quota_enable(fd, BTRFS_QUOTA_FULL);
	if (r < 0)
		return err_sys(e, -r, "enable quotas in the storage");
	mark = openat(fd, STORAGE_MARK, O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	return mark < 0 ? err_sys(e, errno, "mark the storage") : 0;
}

static void undo_image(const struct state *s)
{
	char path[sizeof s->dir + 16];

	(void)snprintf(path, sizeof path, "%s/%s", s->dir, STORAGE_DIR);
	(void)umount2(path, UMOUNT_NOFOLLOW);
	(void)unlinkat(s->fd, STORAGE_DIR, AT_REMOVEDIR);
	(void)unlinkat(s->fd, STORAGE_IMAGE, 0);
	(void)unlinkat(s->fd, STORAGE_NEW, 0);
}

static int fill_image(const struct state *s, struct err *e)
{
	auto_close int fd = FD_NONE;

	if (storage_mount(s, e) < 0)
		return -1;
	fd = openat(s->fd, STORAGE_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0700) < 0)
		return err_sys(e, errno, "open the storage");
	return furnish(fd, BTRFS_QUOTA_SIMPLE, e);
}

int storage_make_image(const struct state *s, uint64_t size, struct err *e)
{
	if (refuse_second(s, e) < 0)
		return -1;
	/* Remove what an interrupted attempt left. */
	(void)unlinkat(s->fd, STORAGE_NEW, 0);
	if (make_file(s, size, e) == 0 && fill_image(s, e) == 0)
		return 0;
	undo_image(s);
	return -1;
}

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* True if a directory holds anything but the mark and dots. */
static bool holds_something(int fd, bool only_ids)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	bool found = false;

	if (!d) {
		fd_close(&copy);
		return true;
	}
	for (struct dirent *x = readdir(d); x && !found; x = readdir(d))
		found = only_ids ? state_id_ok(x->d_name)
				 : !is_dot(x->d_name) && strcmp(x->d_name, STORAGE_MARK) != 0;
	(void)closedir(d);
	return found;
}

int storage_take_dir(const struct state *s, const char *path, struct err *e)
{
	auto_close int fd = FD_NONE;
	auto_free char *real = NULL;

	if (refuse_second(s, e) < 0)
		return -1;
	real = realpath(path, NULL);
	fd = real ? open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	if (!btrfs_is(fd)) {
		(void)err_set(e, ERR_INVALID, "'%s' is not on btrfs", real);
		return err_code(e, "storage.not_btrfs", NULL);
	}
	if (holds_something(fd, false)) {
		(void)err_set(e, ERR_INVALID, "'%s' is not empty", real);
		return err_code(e, "storage.not_empty", NULL);
	}
	/* Full quota can be disabled again without a trace; the file system is not ours. */
	if (fchmod(fd, 0700) < 0 || fchown(fd, 0, 0) < 0)
		return err_sys(e, errno, "close '%s' to others", real);
	if (furnish(fd, BTRFS_QUOTA_FULL, e) < 0)
		return -1;
	return symlinkat(real, s->fd, STORAGE_DIR) < 0 ? err_sys(e, errno, "remember the storage")
						       : 0;
}

static int unmake_image(const struct state *s, struct err *e)
{
	char path[sizeof s->dir + 16];

	(void)snprintf(path, sizeof path, "%s/%s", s->dir, STORAGE_DIR);
	/* EINVAL: not mounted. ENOENT: there is none. */
	if (umount2(path, UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		return err_sys(e, errno, "unmount '%s'", path);
	if (unlinkat(s->fd, STORAGE_DIR, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_sys(e, errno, "remove '%s'", path);
	if (unlinkat(s->fd, STORAGE_IMAGE, 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "remove '%s/%s'", s->dir, STORAGE_IMAGE);
	return 0;
}

static int refuse_used(int fd, struct err *e)
{
	auto_close int layers =
		openat(fd, STORAGE_LAYERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (holds_something(fd, true)) {
		(void)err_set(e, ERR_CONFLICT, "there are sandboxes in the storage");
		return err_code(e, "storage.has_sandboxes", NULL);
	}
	if (layers >= 0 && holds_something(layers, false)) {
		(void)err_set(e, ERR_CONFLICT, "there are snapshots in the storage");
		return err_code(e, "storage.has_snapshots", NULL);
	}
	return 0;
}

/* The image is missing or is not a file system. */
static bool is_hopeless(const struct err *e)
{
	return e->kind == ERR_UNAVAILABLE || e->sys == EINVAL || e->sys == EIO ||
	       e->sys == EUCLEAN || e->sys == EBADMSG;
}

int storage_unmake(const struct state *s, struct err *e)
{
	auto_close int fd = FD_NONE;
	struct err gone = { 0 };
	struct stat st;

	if (geteuid() != 0)
		return err_set(e, ERR_NOT_ALLOWED, "storage needs root");
	if (storage_open(s, &fd, &gone) == 0 && fd >= 0 && refuse_used(fd, e) < 0)
		return -1;
	/*
	 * Not if it failed for another reason, such as memory or a kernel without btrfs: it may be
	 * intact.
	 */
	if (gone.kind != ERR_NONE && !is_hopeless(&gone)) {
		*e = gone;
		return -1;
	}
	if (fstatat(s->fd, STORAGE_DIR, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return unmake_image(s, e);
	if (S_ISLNK(st.st_mode)) {
		if (fd >= 0) {
			(void)unlinkat(fd, STORAGE_LAYERS, AT_REMOVEDIR);
			(void)unlinkat(fd, STORAGE_MARK, 0);
		}
		if (unlinkat(s->fd, STORAGE_DIR, 0) < 0)
			return err_sys(e, errno, "forget the storage");
		return 0;
	}
	fd_close(&fd);
	return unmake_image(s, e);
}
