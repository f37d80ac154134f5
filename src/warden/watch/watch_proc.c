/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/watch/watch_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/process/pidfd.h"

/* From linux/nsfs.h of a kernel newer than our build headers. */
#define IOCTL_NS_PID_IN_PIDNS (int)_IOR(0xb7, 8, int) /* 6.11 */

void proc_view_done(struct proc_view *v)
{
	fd_close(&v->pidns_fd);
	v->depth = 0;
}

static int read_small(const char *path, char *text, size_t size)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

/* Parse the NSpid line, outermost first: returns how many pids, and the one at `depth` (from 1). */
static int parse_nspid(const char *text, int depth, int *ret_pid)
{
	const char *at = strstr(text, "\nNSpid:");
	int n = 0;

	*ret_pid = 0;
	if (!at)
		return 0;
	at += strlen("\nNSpid:");
	for (;;) {
		char *end;
		long pid = strtol(at, &end, 10);

		if (end == at || *at == '\n')
			return n;
		if (++n == depth)
			*ret_pid = (int)pid;
		if (*end == '\n' || *end == '\0')
			return n;
		at = end;
	}
}

static int read_status(int pid, char *text, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/status", pid);
	return read_small(path, text, size);
}

void proc_view_learn(struct proc_view *v, int pidfd)
{
	char path[64], text[512];
	int pid;

	if (v->depth || pidfd < 0)
		return;
	v->pidns_fd = ioctl(pidfd, PIDFD_IOCTL_PIDNS, 0);
	if (v->pidns_fd >= 0 && ioctl(v->pidns_fd, IOCTL_NS_PID_IN_PIDNS, getpid()) < 0 &&
	    errno == ENOTTY)
		fd_close(&v->pidns_fd);
	(void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
	if (read_small(path, text, sizeof text) == 0)
		v->depth = parse_nspid(text, 0, &pid);
}

int proc_open(int tid, int *ret_pid)
{
	char text[2048];
	const char *at;
	int fd = (int)syscall(SYS_pidfd_open, tid, 0);

	*ret_pid = tid;
	if (fd >= 0 || (errno != EINVAL && errno != ENOENT))
		return fd < 0 ? -errno : fd;
	/* tid does not lead its thread group: EINVAL, since 6.9 ENOENT. */
	if (read_status(tid, text, sizeof text) < 0)
		return -ESRCH;
	at = strstr(text, "\nTgid:");
	if (!at)
		return -ESRCH;
	*ret_pid = (int)strtol(at + strlen("\nTgid:"), NULL, 10);
	fd = (int)syscall(SYS_pidfd_open, *ret_pid, 0);
	return fd < 0 ? -errno : fd;
}

bool proc_is_gone(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0 && errno == ESRCH;
}

int proc_inside(const struct proc_view *v, int pid)
{
	char text[2048];
	int inside;

	if (pid <= 0)
		return 0;
	if (v->pidns_fd >= 0) {
		inside = ioctl(v->pidns_fd, IOCTL_NS_PID_IN_PIDNS, pid);
		return inside < 0 ? 0 : inside;
	}
	if (read_status(pid, text, sizeof text) < 0)
		return 0;
	(void)parse_nspid(text, v->depth ? v->depth : 1, &inside);
	return inside;
}

int proc_parent(int pidfd, int pid)
{
	struct pidfd_info_v0 info = { .mask = PIDFD_HAS_PID };
	char state;
	int ppid, status;

	if (pidfd >= 0 && ioctl(pidfd, PIDFD_IOCTL_INFO, &info) == 0)
		return (int)info.ppid;
	return proc_stat(pid, &state, &ppid, &status) < 0 ? 0 : ppid;
}

int proc_stat(int pid, char *ret_state, int *ret_ppid, int *ret_status)
{
	char path[64], text[1024], *at, *last;
	int r;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	r = read_small(path, text, sizeof text);
	if (r < 0)
		return r;
	/* The name may contain anything, even ") Z 1": our fields follow the last bracket. */
	at = strrchr(text, ')');
	last = strrchr(text, ' ');
	if (!at || !last || sscanf(at, ") %c %d", ret_state, ret_ppid) != 2)
		return -EBADMSG;
	*ret_status = (int)strtol(last, NULL, 10);
	return 0;
}

bool proc_was_reaped(int pidfd, int *ret_status)
{
	struct pidfd_info_v0 info = { .mask = PIDFD_HAS_EXIT };

	if (ioctl(pidfd, PIDFD_IOCTL_INFO, &info) < 0 || !(info.mask & PIDFD_HAS_EXIT))
		return false;
	*ret_status = info.exit_code;
	return true;
}

int proc_status(int pidfd, int pid, int *ret_status)
{
	char state;
	int ppid, status;

	if (proc_was_reaped(pidfd, ret_status))
		return 0;
	/*
	 * /proc has a zombie's status; the pidfd, checked afterwards, proves that it was this
	 * process.
	 */
	if (proc_stat(pid, &state, &ppid, &status) == 0 && state == 'Z' && !proc_is_gone(pidfd)) {
		*ret_status = status;
		return 0;
	}
	/* It may have been reaped between the two checks. */
	return proc_was_reaped(pidfd, ret_status) ? 0 : -ENODATA;
}
