/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process has a socket: the one whose descriptors show its inode. Of a call with a control
 * group only its own processes are looked at, else all of the sandbox, and then the process tells
 * the call too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "warden/net.h"

enum { PIDS_MOST = 256, FDS_MOST = 1024 };

static bool has_socket(long pid, const char *want)
{
	char path[32], link[64];
	int left = FDS_MOST;
	struct dirent *ent;
	bool found = false;
	DIR *d;

	(void)snprintf(path, sizeof path, "/proc/%ld/fd", pid);
	d = opendir(path);
	while (d && !found && left-- > 0 && (ent = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), ent->d_name, link, sizeof link - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		found = strcmp(link, want) == 0;
	}
	if (d)
		(void)closedir(d);
	return found;
}

static int pids_of_call(struct warden *w, uint32_t call, long *pids)
{
	auto_done(buf_done) struct buf b = BUF_INIT(64 * 1024);
	char name[48];
	int n = 0, used;

	(void)snprintf(name, sizeof name, "call-%u/cgroup.procs", call);
	if (io_read_file(w->cell.cgroup.fd, name, &b) < 0 || !b.len)
		return 0;
	for (char *at = b.data; n < PIDS_MOST && sscanf(at, "%ld%n", &pids[n], &used) == 1;
	     at += used)
		n++;
	return n;
}

int net_process_of(struct warden *w, uint32_t *call, uint64_t inode)
{
	auto_done(buf_done) struct buf b = BUF_INIT(16 * 1024);
	long pids[PIDS_MOST];
	char want[40];
	int n;

	if (!inode)
		return 0;
	n = *call && w->cell.has_cgroup ? pids_of_call(w, *call, pids)
					: ps_pids(w, pids, PIDS_MOST);
	(void)snprintf(want, sizeof want, "socket:[%llu]", (unsigned long long)inode);
	while (n-- > 0) {
		if (pids[n] == w->cell.pid || !has_socket(pids[n], want))
			continue;
		if (!*call && w->watch)
			*call = watch_call_of(w->watch, (int)pids[n]);
		return (int)ps_inside_pid(pids[n], &b);
	}
	return 0;
}
