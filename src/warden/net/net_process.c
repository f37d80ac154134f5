/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find the process that holds a socket: its descriptors show the socket's inode. For a call with a
 * control group, search only the group's processes. Otherwise search the whole sandbox; then the
 * process also identifies the call.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "warden/features.h"
#include "warden/net/net.h"

enum { PIDS_MOST = 256, FDS_MOST = 1024, SEARCH_SHARE = 10 };

#define SEARCH_MOST_NS ((int64_t)(10 * NS_PER_MS))

static bool is_socket(int dir, const char *name, const char *want)
{
	char link[64];
	ssize_t n = readlinkat(dir, name, link, sizeof link - 1);

	if (n <= 0)
		return false;
	link[n] = '\0';
	return strcmp(link, want) == 0;
}

void net_process_forget(struct net *n)
{
	fd_close(&n->last.dir);
}

/*
 * Most connections come from the same process as the last one, on the same descriptor or the next:
 * one or two lookups instead of a search. The open directory identifies the process, which a pid
 * would not.
 */
static bool is_last(struct net_last *l, uint32_t call, const char *want)
{
	char name[16];

	if (l->dir < 0 || !l->call || (call && call != l->call))
		return false;
	for (int i = 0; i < 2; i++) {
		(void)snprintf(name, sizeof name, "%d", l->number + i);
		if (!is_socket(l->dir, name, want))
			continue;
		l->number += i;
		return true;
	}
	return false;
}

/*
 * Return the directory of the process's descriptors if the socket is among them. Otherwise -ENOENT,
 * or -EBUSY if unknown: there are too many descriptors, or they are not visible.
 */
static int find_socket(long pid, const char *want, int *ret_number)
{
	auto_close int kept = FD_NONE;
	int left = FDS_MOST;
	struct dirent *ent;
	bool found = false;
	char path[32];
	DIR *d;

	(void)snprintf(path, sizeof path, "/proc/%ld/fd", pid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT || errno == ESRCH ? -ENOENT : -EBUSY;
	while (!found && left-- > 0 && (ent = readdir(d))) {
		found = is_socket(dirfd(d), ent->d_name, want);
		*ret_number = atoi(ent->d_name);
	}
	if (found)
		kept = fcntl(dirfd(d), F_DUPFD_CLOEXEC, 0);
	(void)closedir(d);
	if (kept >= 0)
		return TAKE_FD(kept);
	return found || left < 0 ? -EBUSY : -ENOENT;
}

static int pids_of_call(struct warden *w, uint32_t call, long *pids)
{
	const struct call *c = call_by_id(w, call);

	return c ? w->driver->group_pids(w->cell, c->group, pids, PIDS_MOST) : 0;
}

static int search(struct warden *w, uint32_t *call, const char *want)
{
	auto_done(buf_done) struct buf b = BUF_INIT(16 * 1024);
	struct net_last *l = &w->net->last;
	long pids[PIDS_MOST];
	int n = *call && warden_has(w, HAS_GROUPS) ? pids_of_call(w, *call, pids)
						   : ps_pids(w, pids, PIDS_MOST);

	while (n-- > 0) {
		int number, dir = pids[n] == warden_init_pid(w)
					  ? FD_NONE
					  : find_socket(pids[n], want, &number);

		if (dir < 0)
			continue;
		if (!*call && w->watch)
			*call = watch_call_of(w->watch, (int)pids[n]);
		net_process_forget(w->net);
		*l = (struct net_last){ dir, number, *call, (int)ps_inside_pid(pids[n], &b) };
		return l->process;
	}
	return 0;
}

/*
 * The sandbox controls the length of a search: many processes with many descriptors each. So all
 * searches together take at most a tenth of our time, and 10 ms at once.
 */
static bool may_search(struct net *n)
{
	uint64_t now = clock_mono_ns();

	n->search_left_ns += (int64_t)((now - n->searched_ns) / SEARCH_SHARE);
	n->searched_ns = now;
	if (n->search_left_ns > SEARCH_MOST_NS)
		n->search_left_ns = SEARCH_MOST_NS;
	return n->search_left_ns > 0;
}

int net_process_of(struct warden *w, uint32_t *call, uint64_t inode)
{
	struct net *n = w->net;
	uint64_t began_ns;
	char want[40];
	int process;

	if (!inode)
		return 0;
	(void)snprintf(want, sizeof want, "socket:[%llu]", (unsigned long long)inode);
	if (is_last(&n->last, *call, want)) {
		*call = n->last.call;
		return n->last.process;
	}
	if (!may_search(n) && *call) /* without a call, only this search identifies it */
		return 0;
	began_ns = clock_mono_ns();
	process = search(w, call, want);
	n->search_left_ns -= (int64_t)(clock_mono_ns() - began_ns);
	return process;
}

static bool is_among(long pid, const long *pids, int n)
{
	while (n > 0 && pids[n - 1] != pid)
		n--;
	return n > 0;
}

/* True if processes of the call hold the socket, and no other process does. */
static bool only_call_has(struct warden *w, uint32_t call, const char *want)
{
	bool groups = warden_has(w, HAS_GROUPS), found = false;
	long all[PIDS_MOST], own[PIDS_MOST];
	int nown = groups ? pids_of_call(w, call, own) : 0;
	int nall = ps_pids(w, all, PIDS_MOST);

	if (nall == PIDS_MOST)
		return false;
	for (int i = 0; i < nall; i++) {
		int number, dir = all[i] == warden_init_pid(w) ? -ENOENT
							       : find_socket(all[i], want, &number);
		bool is_own = groups ? is_among(all[i], own, nown)
				     : w->watch && watch_call_of(w->watch, (int)all[i]) == call;

		if (dir >= 0)
			(void)close(dir);
		if (dir != -ENOENT && !is_own)
			return false;
		found = found || dir >= 0;
	}
	return found;
}

bool net_socket_is_of(struct warden *w, uint32_t call, uint64_t inode)
{
	struct net *n = w->net;
	uint64_t began_ns;
	char want[40];
	bool only;

	/* There is no other call. */
	if (w->ncalls == 1 && w->calls->id == call)
		return true;
	if (!inode || !may_search(n))
		return false;
	(void)snprintf(want, sizeof want, "socket:[%llu]", (unsigned long long)inode);
	began_ns = clock_mono_ns();
	only = only_call_has(w, call, want);
	n->search_left_ns -= (int64_t)(clock_mono_ns() - began_ns);
	return only;
}
