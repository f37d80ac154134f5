/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls and constants that one of our two C libraries lacks, or for which kernel and library
 * headers conflict. They return -1 and set errno.
 */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	RAW_OPEN_TREE_CLONE = 1,
	RAW_AT_EMPTY_PATH = 0x1000,
	RAW_AT_RECURSIVE = 0x8000,
	RAW_FSOPEN_CLOEXEC = 1,
	RAW_FSMOUNT_CLOEXEC = 1,
	RAW_MOVE_F_EMPTY = 0x4,
	RAW_MOVE_T_EMPTY = 0x40,
	RAW_FSCONFIG_FLAG = 0,
	RAW_FSCONFIG_STRING = 1,
	RAW_FSCONFIG_CREATE = 6,
	RAW_FSCONFIG_RECONFIGURE = 7,
	RAW_FSPICK_CLOEXEC = 0x1,
	RAW_FSPICK_EMPTY_PATH = 0x8,
	/* mount attributes */
	RAW_ATTR_RDONLY = 0x1,
	RAW_ATTR_NOSUID = 0x2,
	RAW_ATTR_NODEV = 0x4,
	RAW_ATTR_NOEXEC = 0x8,
	RAW_ATTR_NOATIME = 0x10,
	RAW_ATTR_IDMAP = 0x100000,
	/* openat2 */
	RAW_RESOLVE_NO_XDEV = 0x1,
	RAW_RESOLVE_NO_MAGICLINKS = 0x2,
	RAW_RESOLVE_NO_SYMLINKS = 0x4,
	RAW_RESOLVE_BENEATH = 0x8,
	RAW_RESOLVE_IN_ROOT = 0x10,
	/* renameat2 */
	RAW_RENAME_NOREPLACE = 0x1,
	RAW_RENAME_EXCHANGE = 0x2,
};

#define RAW_CLONE_PIDFD	      0x1000ull
#define RAW_CLONE_INTO_CGROUP 0x200000000ull

struct raw_mount_attr {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

struct raw_open_how {
	uint64_t flags, mode, resolve;
};

struct raw_clone_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup;
};

static inline int raw_open_tree(int dirfd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static inline int raw_move_mount(int from, const char *from_path, int to, const char *to_path,
				 unsigned flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int raw_fsopen(const char *type)
{
	return (int)syscall(SYS_fsopen, type, RAW_FSOPEN_CLOEXEC);
}

static inline int raw_fspick(int mount_fd)
{
	return (int)syscall(SYS_fspick, mount_fd, "", RAW_FSPICK_CLOEXEC | RAW_FSPICK_EMPTY_PATH);
}

static inline int raw_fsconfig(int fd, unsigned cmd, const char *key, const char *value)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, 0);
}

static inline int raw_fsmount(int fd, unsigned attrs)
{
	return (int)syscall(SYS_fsmount, fd, RAW_FSMOUNT_CLOEXEC, attrs);
}

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
static inline int raw_mount_setattr(int fd, const char *path, unsigned flags,
				    const struct raw_mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, fd, path, flags, attr, sizeof *attr);
}

static inline int raw_openat2(int dirfd, const char *path, const struct raw_open_how *how)
{
	return (int)syscall(SYS_openat2, dirfd, path, how, sizeof *how);
}

static inline int raw_renameat2(int from_dir, const char *from, int to_dir, const char *to,
				unsigned flags)
{
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

static inline pid_t raw_clone3(struct raw_clone_args *args)
{
	return (pid_t)syscall(SYS_clone3, args, sizeof *args);
}

static inline int raw_pidfd_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int raw_pidfd_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

static inline int raw_close_range(unsigned first, unsigned last)
{
	return (int)syscall(SYS_close_range, first, last, 0);
}

static inline int raw_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

/* Start a new session keyring: the inherited one holds the host's keys. */
static inline long raw_join_session_keyring(void)
{
	return syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL);
}
