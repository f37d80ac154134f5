/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/files/btrfs.h"

#include <endian.h>
#include <errno.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/str.h"

enum {
	SUPER_MAGIC = 0x9123683e,
	LEVEL_SHIFT = 48,  /* of a quota group's id; subvolumes have level 0 */
	ENABLE_SIMPLE = 4, /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA; Debian 12's headers are older */
};

static int say(int fd, unsigned request, void *arg)
{
	/* The two C libraries declare different types for request; the kernel reads 32 bits. */
	return ioctl(fd, (int)request, arg) < 0 ? -errno : 0;
}

/* One component only: the kernel would resolve anything else by its own rules. */
static int put_name(char *to, size_t size, const char *name)
{
	if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	return str_copy(to, size, str_of(name)) ? 0 : -ENAMETOOLONG;
}

bool btrfs_is(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) == 0 && (unsigned long)st.f_type == SUPER_MAGIC;
}

bool btrfs_is_subvolume(int fd)
{
	struct stat st;

	return btrfs_is(fd) && fstat(fd, &st) == 0 && st.st_ino == BTRFS_FIRST_FREE_OBJECTID;
}

int btrfs_subvolume(int dirfd, const char *name)
{
	struct btrfs_ioctl_vol_args_v2 args = { 0 };
	int r = put_name(args.name, sizeof args.name, name);

	return r < 0 ? r : say(dirfd, BTRFS_IOC_SUBVOL_CREATE_V2, &args);
}

int btrfs_snapshot(int src_fd, int dirfd, const char *name, bool read_only)
{
	struct btrfs_ioctl_vol_args_v2 args = { .fd = src_fd,
						.flags = read_only ? BTRFS_SUBVOL_RDONLY : 0 };
	int r = put_name(args.name, sizeof args.name, name);

	return r < 0 ? r : say(dirfd, BTRFS_IOC_SNAP_CREATE_V2, &args);
}

int btrfs_delete(int dirfd, const char *name)
{
	struct btrfs_ioctl_vol_args_v2 args = { 0 };
	int r = put_name(args.name, sizeof args.name, name);

	return r < 0 ? r : say(dirfd, BTRFS_IOC_SNAP_DESTROY_V2, &args);
}

int btrfs_id(int fd, uint64_t *ret_id)
{
	struct btrfs_ioctl_ino_lookup_args args = { .objectid = BTRFS_FIRST_FREE_OBJECTID };
	int r = say(fd, BTRFS_IOC_INO_LOOKUP, &args);

	if (r == 0)
		*ret_id = args.treeid;
	return r;
}

int btrfs_quota_enable(int fd, enum btrfs_quota kind)
{
	struct btrfs_ioctl_quota_ctl_args args = {
		.cmd = kind == BTRFS_QUOTA_SIMPLE ? ENABLE_SIMPLE : BTRFS_QUOTA_CTL_ENABLE,
	};
	int r = btrfs_quota_is_on(fd);

	if (r != 0)
		return r < 0 ? r : 0;
	r = say(fd, BTRFS_IOC_QUOTA_CTL, &args);
	if (r == -EINVAL && kind == BTRFS_QUOTA_SIMPLE)
		return -EOPNOTSUPP;
	/* Limits count only after the rescan has finished. */
	return r == 0 && kind == BTRFS_QUOTA_FULL ? say(fd, BTRFS_IOC_QUOTA_RESCAN_WAIT, NULL) : r;
}

/* Read the item (0, type, id) of the quota tree. Returns its size, or 0 if there is none. */
static int quota_item(int fd, uint8_t type, uint64_t id, void *ret, size_t size)
{
	struct btrfs_ioctl_search_args args = {
		.key = { .tree_id = BTRFS_QUOTA_TREE_OBJECTID,
			 .min_offset = id,
			 .max_offset = id,
			 .max_transid = UINT64_MAX,
			 .min_type = type,
			 .max_type = type,
			 .nr_items = 1 },
	};
	struct btrfs_ioctl_search_header head;
	int r = say(fd, BTRFS_IOC_TREE_SEARCH, &args);

	if (r < 0 || args.key.nr_items == 0)
		return r;
	memcpy(&head, args.buf, sizeof head);
	if (head.len < size || sizeof head + size > sizeof args.buf)
		return -EBADMSG;
	memcpy(ret, args.buf + sizeof head, size);
	return (int)size;
}

int btrfs_quota_is_on(int fd)
{
	struct btrfs_qgroup_status_item item = { 0 };
	int r = quota_item(fd, BTRFS_QGROUP_STATUS_KEY, 0, &item, sizeof item);

	/* Without quota this tree does not exist. */
	if (r == -ENOENT || r == 0)
		return 0;
	return r < 0 ? r : (le64toh(item.flags) & BTRFS_QGROUP_STATUS_FLAG_ON) != 0;
}

int btrfs_limit(int fd, uint64_t id, uint64_t max_bytes)
{
	struct btrfs_ioctl_qgroup_limit_args args = {
		.qgroupid = id,
		/* All bits set tells the kernel to drop the limit. */
		.lim = { .flags = BTRFS_QGROUP_LIMIT_MAX_RFER,
			 .max_rfer = max_bytes ? max_bytes : UINT64_MAX },
	};

	return say(fd, BTRFS_IOC_QGROUP_LIMIT, &args);
}

int btrfs_usage(int fd, uint64_t id, struct btrfs_usage *ret)
{
	struct btrfs_qgroup_info_item info = { 0 };
	struct btrfs_qgroup_limit_item limit = { 0 };
	int r = quota_item(fd, BTRFS_QGROUP_INFO_KEY, id, &info, sizeof info);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	r = quota_item(fd, BTRFS_QGROUP_LIMIT_KEY, id, &limit, sizeof limit);
	if (r < 0)
		return r;
	ret->bytes = le64toh(info.rfer);
	ret->max = le64toh(limit.flags) & BTRFS_QGROUP_LIMIT_MAX_RFER ? le64toh(limit.max_rfer) : 0;
	return 0;
}

int btrfs_forget(int fd, uint64_t id)
{
	struct btrfs_ioctl_qgroup_create_args args = { .create = 0, .qgroupid = id };

	return say(fd, BTRFS_IOC_QGROUP_CREATE, &args);
}

/*
 * List at most IDS quota groups of subvolumes, from *from on. Returns their number and advances
 * *from.
 */
enum { IDS = 32 };
static int list_groups(int fd, uint64_t *from, uint64_t ids[IDS])
{
	struct btrfs_ioctl_search_args args = {
		.key = { .tree_id = BTRFS_QUOTA_TREE_OBJECTID,
			 .min_offset = *from,
			 .max_offset =
				 BTRFS_LAST_FREE_OBJECTID & ~(UINT64_C(0xffff) << LEVEL_SHIFT),
			 .max_transid = UINT64_MAX,
			 .min_type = BTRFS_QGROUP_INFO_KEY,
			 .max_type = BTRFS_QGROUP_INFO_KEY,
			 .nr_items = IDS },
	};
	size_t at = 0;
	int r = say(fd, BTRFS_IOC_TREE_SEARCH, &args), n = 0;

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < args.key.nr_items && n < IDS; i++) {
		struct btrfs_ioctl_search_header head;

		if (at + sizeof head > sizeof args.buf)
			return -EBADMSG;
		memcpy(&head, args.buf + at, sizeof head);
		at += sizeof head + head.len;
		ids[n++] = head.offset;
		*from = head.offset + 1;
	}
	return n;
}

static int is_there(int fd, uint64_t id)
{
	struct btrfs_ioctl_search_args args = {
		.key = { .tree_id = BTRFS_ROOT_TREE_OBJECTID,
			 .min_objectid = id,
			 .max_objectid = id,
			 .max_offset = UINT64_MAX,
			 .max_transid = UINT64_MAX,
			 .min_type = BTRFS_ROOT_ITEM_KEY,
			 .max_type = BTRFS_ROOT_ITEM_KEY,
			 .nr_items = 1 },
	};
	int r = say(fd, BTRFS_IOC_TREE_SEARCH, &args);

	return r < 0 ? r : args.key.nr_items > 0;
}

int btrfs_forget_gone(int fd)
{
	uint64_t from = BTRFS_FIRST_FREE_OBJECTID, ids[IDS];
	int n, forgotten = 0;

	while ((n = list_groups(fd, &from, ids)) > 0)
		for (int i = 0; i < n; i++)
			/* If its space is not free yet, the next run removes it. */
			if (is_there(fd, ids[i]) == 0 && btrfs_forget(fd, ids[i]) == 0)
				forgotten++;
	return n < 0 && n != -ENOENT ? n : forgotten;
}
