/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe/probe_storage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/limits.h"
#include "base/random.h"
#include "sys/files/rmtree.h"
#include "sys/probe/probe_mountinfo.h"
#include "sys/probe/probe_overlay.h"

#define SCRATCH ".doctor-"
enum { LEFTOVER_S = 60 };

bool probe_quota_is_project(struct str super)
{
	return probe_has_word(super, ",", "prjquota") || probe_has_word(super, ",", "pquota");
}

/* Since Linux 5.9 this directory exists while quota is enabled. */
static enum probe_quota btrfs_quota(int fd)
{
	struct btrfs_ioctl_fs_info_args info = { 0 };
	char path[128], uuid[40];
	int at = 0;

	if (ioctl(fd, BTRFS_IOC_FS_INFO, &info) < 0)
		return PROBE_QUOTA_BTRFS_OFF;
	for (int i = 0; i < BTRFS_FSID_SIZE; i++)
		at += snprintf(uuid + at, sizeof uuid - (size_t)at, "%s%02x",
			       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info.fsid[i]);
	(void)snprintf(path, sizeof path, "/sys/fs/btrfs/%s/qgroups", uuid);
	return access(path, F_OK) == 0 ? PROBE_QUOTA_BTRFS : PROBE_QUOTA_BTRFS_OFF;
}

static void probe_directory(struct probe_storage *f, int fd)
{
	auto_done(buf_done) struct buf mounts = BUF_INIT(PROBE_TEXT_MAX);
	struct statvfs vfs;
	struct statx stx;
	struct mountinfo m;

	if (fstatvfs(fd, &vfs) == 0) {
		f->free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
		f->free_inodes = vfs.f_favail;
		f->counts_inodes = vfs.f_files > 0;
	}
	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) < 0 ||
	    !probe_file("/proc/self/mountinfo", &mounts) ||
	    !mountinfo_find(buf_str(&mounts), stx.stx_mnt_id, &m))
		return;
	(void)str_copy(f->type, sizeof f->type, m.type);
	if (probe_quota_is_project(m.super))
		f->quota = PROBE_QUOTA_PROJECT;
	else if (str_is(m.type, "btrfs"))
		f->quota = btrfs_quota(fd);
}

static int try_reflink(int dir)
{
	auto_close int from = openat(dir, "from", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	auto_close int to = openat(dir, "to", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	if (from < 0 || to < 0 || write(from, "x", 1) != 1)
		return -errno;
	return ioctl(to, FICLONE, from) < 0 ? -errno : 0;
}

/* Remove what a killed probe left. No probe takes this long. */
static void sweep(int fd)
{
	auto_done(dir_free) DIR *d = dir_open_at(fd, ".");
	time_t now = time(NULL);
	struct dirent *de;
	struct stat st;

	while (d && (de = readdir(d)))
		if (strncmp(de->d_name, SCRATCH, sizeof SCRATCH - 1) == 0 &&
		    fstatat(fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    now - st.st_mtim.tv_sec > LEFTOVER_S)
			(void)rmtree_at(fd, de->d_name);
}

void probe_storage(struct probe_storage *ret, const char *dir, bool rootful)
{
	auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), below = FD_NONE;
	char name[48], path[LIMIT_PATH];
	unsigned unique = 0;

	*ret = (struct probe_storage){ .scratch = fd < 0 ? -errno : PROBE_UNTRIED,
				       .reflink = PROBE_UNTRIED,
				       .overlay = PROBE_UNTRIED,
				       .not_volatile = PROBE_UNTRIED,
				       .userxattr = PROBE_UNTRIED,
				       .metacopy = PROBE_UNTRIED,
				       .idmap = PROBE_UNTRIED };
	if (fd < 0)
		return;
	probe_directory(ret, fd);
	if (random_bytes(&unique, sizeof unique) < 0)
		return;
	sweep(fd);
	(void)snprintf(name, sizeof name, SCRATCH "%08x", unique);
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	ret->scratch = mkdirat(fd, name, 0700) < 0 ? -errno : 0;
	if (ret->scratch < 0)
		return;
	below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ret->reflink = below < 0 ? -errno : try_reflink(below);
	probe_overlay(ret, path, rootful);
	(void)rmtree_at(fd, name);
}
