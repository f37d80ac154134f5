/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dir.h"
#include "base/io.h"
#include "base/netplan.h"
#include "driver/ns/limits.h"
#include "store/layer_open.h"
#include "sys/files/attrs.h"
#include "sys/files/rmtree.h"
#include "sys/files/voltree.h"
#include "sys/ns/userns.h"

struct prepare {
	const struct cell_spec *s;
	unsigned generation;
	const struct cell_change *change; /* NULL: this is the first generation */
	struct layer_roots roots;
	int upper_fd, work_fd;
};

#define PREPARE_INIT { FD_NONE, FD_NONE }, FD_NONE, FD_NONE

static void prepare_done(struct prepare *p)
{
	fd_close(&p->roots.state_fd);
	fd_close(&p->roots.storage_fd);
	fd_close(&p->upper_fd);
	fd_close(&p->work_fd);
}
DEFINE_AUTO(struct prepare, prepare_done)

/* Ids outside the range map to nobody. Unprivileged, there is only one id. */
static int own(const struct cell_spec *s, int dirfd, const char *name, uint32_t uid, uint32_t gid)
{
	const uint32_t nobody = USERNS_IDS - 2;

	if (!s->rootful)
		return 0;
	return fchownat(dirfd, name, uid < USERNS_IDS ? uid : nobody,
			gid < USERNS_IDS ? gid : nobody, AT_SYMLINK_NOFOLLOW) < 0
		       ? -errno
		       : 0;
}

/*
 * Find a name at the top of mount i in the layers. 1 and *ret_fd, O_PATH of the topmost; 0 if no
 * layer has it; -ENOENT if a layer removed it.
 */
static int find_in_layers(const struct prepare *p, int i, const char *name, int *ret_fd)
{
	char path[128];
	struct stat st;

	for (int j = 0; j < p->s->nlayers; j++) {
		auto_close int fd = FD_NONE;

		if (layer_is_start(p->s->layers[j]))
			continue;
		(void)snprintf(path, sizeof path, "%s/%d/%s", p->s->layers[j], i, name);
		fd = layer_open(&p->roots, path, O_PATH | O_NOFOLLOW);
		if (fd == -ENOENT)
			continue;
		if (fd < 0 || fstat(fd, &st) < 0)
			return fd < 0 ? fd : -errno;
		if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0))
			return -ENOENT;
		*ret_fd = TAKE_FD(fd);
		return 1;
	}
	return 0;
}

/*
 * Copy the attributes of a template directory; its owner outside is the sandbox's user inside. Also
 * copy its times, so that a rollback to an unchanged state restores them.
 */
static int like_lower(const struct cell_spec *s, int i, int dirfd, const char *name)
{
	const struct cell_mount *m = &s->mounts[i];
	struct stat st;
	uint32_t uid, gid;

	if (stat(m->lower[0], &st) < 0 || fchmodat(dirfd, name, st.st_mode & 07777, 0) < 0)
		return -errno;
	uid = m->has_owner && st.st_uid == m->owner ? s->user : st.st_uid;
	gid = m->has_owner && st.st_gid == m->owner ? s->user : st.st_gid;
	if (utimensat(dirfd, name, (struct timespec[]){ st.st_atim, st.st_mtim },
		      AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return own(s, dirfd, name, uid, gid);
}

static int like(const struct cell_spec *s, int from_fd, int dirfd, const char *name)
{
	auto_close int to = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return to < 0 ? -errno : attrs_copy(from_fd, to, s->rootful);
}

/* The frozen start of mount i, if there is one. 1, 0 or -errno. */
static int find_start(const struct prepare *p, int i, int *ret_fd)
{
	int fd = -ENOENT;

	for (int j = 0; j < p->s->nlayers && fd == -ENOENT; j++)
		fd = layer_open_start(&p->roots, p->s->layers[j], i, O_PATH | O_DIRECTORY);
	if (fd >= 0)
		*ret_fd = fd;
	return fd >= 0 ? 1 : fd == -ENOENT ? 0 : fd;
}

/* The directory of the topmost layer that has mount i, if any. */
static int find_below(const struct prepare *p, int i, int *ret_fd)
{
	char path[24];

	if (!p->change || !p->change->below[i]) {
		int r = find_in_layers(p, i, ".", ret_fd);

		return r == 0 ? find_start(p, i, ret_fd) : r;
	}
	(void)snprintf(path, sizeof path, "upper/%d", i);
	*ret_fd = openat(p->s->disk_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

/* A merged directory shows the upper's attributes: copy them from below. */
static int make_upper(const struct prepare *p, int i, const char *name)
{
	auto_close int layer = FD_NONE;
	int r = find_below(p, i, &layer);

	if (r < 0)
		return r;
	if (mkdirat(p->upper_fd, name, 0755) < 0)
		return -errno;
	return layer >= 0 ? like(p->s, layer, p->upper_fd, name)
			  : like_lower(p->s, i, p->upper_fd, name);
}

static int make_work(const struct prepare *p, int i)
{
	char name[32];

	(void)snprintf(name, sizeof name, "%d.%u", i, p->generation);
	if (mkdirat(p->work_fd, name, 0700) < 0)
		return -errno;
	return own(p->s, p->work_fd, name, 0, 0);
}

/* how: O_EXCL for a new file, O_TRUNC to replace the content of ours. */
static int put_file(const struct cell_spec *s, int dirfd, const char *name, const char *text,
		    int how)
{
	auto_close int fd =
		openat(dirfd, name, O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC | how, 0644);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, text, strlen(text));
	return r < 0 ? r : own(s, dirfd, name, 0, 0);
}

static int machine_id(char out[34])
{
	unsigned char raw[16];

	if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
		return -EIO;
	for (int i = 0; i < 16; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", raw[i]);
	out[32] = '\n';
	out[33] = '\0';
	return 0;
}

/* 1: the root has this directory below the upper, and *ret_fd is open on it. 0: it does not. */
static int find_dir(const struct prepare *p, const char *name, int *ret_fd)
{
	auto_close int fd = FD_NONE;
	char path[LIMIT_PATH];
	struct stat st;
	int r = find_in_layers(p, 0, name, &fd);

	if (r == 0) {
		(void)snprintf(path, sizeof path, "%s/%s", p->s->mounts[0].lower[0], name);
		fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : 1;
	}
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return 0;
	*ret_fd = TAKE_FD(fd);
	return 1;
}

static int make_etc(const struct prepare *p, int root_fd)
{
	auto_close int below = FD_NONE;
	struct stat st;
	int r = find_dir(p, "etc", &below);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	if (mkdirat(root_fd, "etc", 0755) < 0 || fstat(below, &st) < 0)
		return -errno;
	if (p->s->nlayers)
		r = like(p->s, below, root_fd, "etc");
	else
		r = own(p->s, root_fd, "etc", st.st_uid, st.st_gid);
	return r < 0 ? r : openat(root_fd, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int put_resolver(const struct cell_spec *s, int etc)
{
	return put_file(s, etc, "resolv.conf", "nameserver " NETPLAN_GATEWAY4_TEXT "\n", O_EXCL);
}

static int put_names(const struct cell_spec *s, int etc, int how)
{
	char text[256];
	int r;

	(void)snprintf(text, sizeof text,
		       "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n127.0.1.1\t%s\n",
		       s->hostname);
	r = put_file(s, etc, "hosts", text, how);
	(void)snprintf(text, sizeof text, "%s\n", s->hostname);
	return r < 0 ? r : put_file(s, etc, "hostname", text, how);
}

/* The sandbox's own identity. A template without a plain /etc gets none. */
static int put_identity(const struct prepare *p, int root_fd)
{
	const struct cell_spec *s = p->s;
	char id[34];
	auto_close int etc = make_etc(p, root_fd);
	int r;

	if (etc < 0)
		return etc == -ENOENT ? 0 : etc;
	r = put_names(s, etc, O_EXCL);
	if (r == 0 && s->network)
		r = put_resolver(s, etc);
	if (r == 0)
		r = machine_id(id);
	return r < 0 ? r : put_file(s, etc, "machine-id", id, O_EXCL);
}

/* The inodes stay, so that mounts that already show them stay valid. */
int prepare_names(const struct cell_spec *s)
{
	auto_close int etc =
		openat(s->disk_fd, "upper/0/etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (etc < 0)
		return errno == ENOENT ? 0 : -errno;
	return put_names(s, etc, O_TRUNC);
}

static bool is_before(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* Directories with copied times keep them, but their ctime becomes now. */
static int freshen(int parent, const char *name, const struct timespec *made)
{
	auto_done(dir_free) DIR *d = NULL;
	struct stat st;
	int r = 0;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		d = dir_open_at(parent, name);
		r = d ? 0 : -errno;
	}
	for (struct dirent *x = d ? readdir(d) : NULL; x && r == 0; x = readdir(d))
		r = dir_is_dots(x->d_name) ? 0 : freshen(dirfd(d), x->d_name, made);
	if (r < 0)
		return r;
	return utimensat(parent, name,
			 is_before(st.st_mtim, *made)
				 ? (struct timespec[]){ st.st_atim, st.st_mtim }
				 : NULL,
			 AT_SYMLINK_NOFOLLOW) < 0
		       ? -errno
		       : 0;
}

/* The uppers contain only what was made for the sandbox. */
int prepare_times(const struct cell_spec *s)
{
	auto_close int upper =
		openat(s->disk_fd, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat made; /* times of the uppers when they were empty */
	char name[12];
	int r = 0;

	if (upper < 0 || fstat(upper, &made) < 0)
		return -errno;
	for (int i = 0; i < s->nmounts && r == 0; i++) {
		(void)snprintf(name, sizeof name, "%d", i);
		r = s->mounts[i].kind == MOUNT_OVERLAY ? freshen(upper, name, &made.st_mtim) : 0;
	}
	return r;
}

/*
 * Make the directories that we mount on in the upper if the template has something else there. This
 * hides a link named /dev in an image instead of following it.
 */
static int put_mount_points(const struct prepare *p, int root_fd)
{
	static const char *const points[] = { "dev", "proc", "sys" };

	for (size_t i = 0; i < ARRAY_LEN(points); i++) {
		auto_close int below = FD_NONE;
		int r = find_dir(p, points[i], &below);

		if (r < 0)
			return r;
		if (r > 0)
			continue;
		if (mkdirat(root_fd, points[i], 0755) < 0)
			return -errno;
		r = own(p->s, root_fd, points[i], 0, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static int fill_root(const struct prepare *p)
{
	auto_close int root = openat(p->upper_fd, "0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = root < 0 ? -errno : put_mount_points(p, root);

	return r < 0 ? r : put_identity(p, root);
}

static int check_closed(const struct cell_spec *s, struct err *e)
{
	struct stat st;

	if (fstat(s->disk_fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", s->disk);
	if (st.st_uid == geteuid() && (st.st_mode & 077) == 0)
		return 0;
	return err_set(e, ERR_NOT_ALLOWED, "'%s' is open to other users", s->disk);
}

/* The path may be missing or lead elsewhere, while we still hold the original directory. */
static int check_pool(const struct cell_spec *s, struct err *e)
{
	struct stat held, named = { 0 };

	if (!s->storage || fstat(s->disk_fd, &held) < 0 ||
	    (stat(s->disk, &named) == 0 && held.st_dev == named.st_dev &&
	     held.st_ino == named.st_ino))
		return 0;
	(void)err_set(e, ERR_UNAVAILABLE, "the storage at '%s' is not there", s->storage);
	return err_hint(e, "mount it again, which any other command of cay does where its file is "
			   "whole; the sandbox goes on as it was");
}

static int open_new(int dirfd, const char *name)
{
	int fd = io_mkdir(dirfd, name, 0755);

	if (fd < 0)
		return fd;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_roots(struct prepare *p, struct err *e)
{
	const struct cell_spec *s = p->s;

	p->roots.state_fd = open(s->state, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->roots.state_fd < 0)
		return err_sys(e, errno, "open '%s'", s->state);
	if (!s->storage)
		return 0;
	p->roots.storage_fd = open(s->storage, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return p->roots.storage_fd < 0 ? err_sys(e, errno, "open '%s'", s->storage) : 0;
}

static int prepare_open(struct prepare *p, const char *upper, bool quota, struct err *e)
{
	const struct cell_spec *s = p->s;
	int r;

	if (check_closed(s, e) < 0 || check_pool(s, e) < 0)
		return -1;
	p->upper_fd = s->storage ? limits_volume(s, upper, quota) : open_new(s->disk_fd, upper);
	if (p->upper_fd >= 0)
		p->work_fd = open_new(s->storage ? p->upper_fd : s->disk_fd, "work");
	r = p->upper_fd < 0 ? p->upper_fd : p->work_fd;
	if (r >= 0)
		return open_roots(p, e);
	(void)err_sys(e, -r, "make directories in '%s'", s->disk);
	return s->storage && r == -ENOSPC ? err_hint(e, "the storage is full: see cay gc, cay ls")
					  : -1;
}

static int make_all(const struct prepare *p, struct err *e)
{
	const struct cell_spec *s = p->s;

	for (int i = 0; i < s->nmounts; i++) {
		char name[12];
		int r;

		if (s->mounts[i].kind != MOUNT_OVERLAY || (p->change && p->change->same[i]))
			continue;
		(void)snprintf(name, sizeof name, "%d", i);
		r = make_upper(p, i, name);
		if (r == 0)
			r = make_work(p, i);
		if (r < 0)
			return err_sys(e, -r, "prepare '%s'", s->mounts[i].dest);
	}
	return 0;
}

int prepare_uppers(const struct cell_spec *s, bool quota, struct err *e)
{
	auto_done(prepare_done) struct prepare p = { s, 0, NULL, PREPARE_INIT };
	int r;

	if (prepare_open(&p, "upper", quota, e) < 0 || make_all(&p, e) < 0)
		return -1;
	r = fill_root(&p);
	return r < 0 ? err_sys(e, -r, "prepare the root in '%s'", s->disk) : 0;
}

/* Remove a generation that was never entered. */
static int remove_work(const struct cell_spec *s, unsigned generation)
{
	int r = 0;

	for (int i = 0; i < s->nmounts && r == 0; i++) {
		char work[48];

		(void)snprintf(work, sizeof work, "work/%d.%u", i, generation);
		r = rmtree_at(s->disk_fd, work);
	}
	return r;
}

int prepare_next(const struct cell_spec *s, const struct cell_change *what, unsigned generation,
		 bool quota, struct err *e)
{
	auto_done(prepare_done) struct prepare p = { s, generation, what, PREPARE_INIT };
	int r = faccessat(s->disk_fd, "next", F_OK, AT_SYMLINK_NOFOLLOW);

	if (r == 0)
		r = voltree_remove(s->disk_fd, "next");
	else
		r = 0;
	if (r == 0 && !s->storage)
		r = remove_work(s, generation);
	if (r < 0)
		return err_sys(e, -r, "make room in '%s'", s->disk);
	return prepare_open(&p, "next", quota, e) < 0 ? -1 : make_all(&p, e);
}
