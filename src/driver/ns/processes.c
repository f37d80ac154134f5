/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a cell, read from outside. All processes in its pid namespace descend from init,
 * so we walk the tree below init by /proc/PID/task/TID/children.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "driver/ns/ns.h"

enum { LIST_MAX = 64 * 1024 };

/*
 * Init has one thread. An init in the hands of an attacker could have more, and children of these
 * are in other lists. The kernel counts the threads as links of the directory.
 */
static int count_threads(pid_t pid)
{
	enum { LINKS_OF_A_DIRECTORY = 2 };
	char path[48];
	struct stat st;

	(void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	return stat(path, &st) < 0 ? -errno : (int)st.st_nlink - LINKS_OF_A_DIRECTORY;
}

int ns_others(struct cell *c, long *ret_pid)
{
	char path[64], text[64], *space;
	auto_close int fd = FD_NONE;
	ssize_t n;

	if (count_threads(c->pid) > 1)
		return 2;
	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)c->pid, (int)c->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof text - 1);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	text[n] = '\0';
	space = strchr(text, ' ');
	if (space != text + n - 1)
		return 2;
	*ret_pid = strtol(text, NULL, 10);
	return 1;
}

static void list_children_of(long pid, const char *thread, long *pids, int most, int *n,
			     struct buf *b)
{
	char path[96];
	int used, r;

	(void)snprintf(path, sizeof path, "/proc/%ld/task/%.20s/children", pid, thread);
	buf_clear(b);
	r = io_read_file(AT_FDCWD, path, b);
	if ((r < 0 && r != -E2BIG) || b->len == 0)
		return;
	for (char *at = b->data; *n < most && sscanf(at, "%ld%n", &pids[*n], &used) == 1;
	     at += used)
		++*n;
}

/* Each thread has its own list of the children that it forked. */
static void list_children(long pid, long *pids, int most, int *n, struct buf *b)
{
	char path[48];
	struct dirent *ent;
	DIR *d;

	(void)snprintf(path, sizeof path, "/proc/%ld/task", pid);
	d = opendir(path);
	while (d && (ent = readdir(d)))
		if (ent->d_name[0] != '.')
			list_children_of(pid, ent->d_name, pids, most, n, b);
	if (d)
		(void)closedir(d);
}

int ns_pids(struct cell *c, long *pids, int most)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIST_MAX);
	int n = 0;

	if (c->pid > 0 && most > 0)
		pids[n++] = c->pid;
	for (int i = 0; i < n; i++)
		list_children(pids[i], pids, most, &n, &b);
	return n;
}
