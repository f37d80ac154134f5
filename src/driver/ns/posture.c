/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/posture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "sys/cgroup/cgroup_find.h"
#include "sys/ns/caps.h"
#include "sys/process/proc_text.h"

enum { FILE_MAX = 64 * 1024, PATIENCE_MS = 5000, TEXT = 256 };

int posture_differs(struct err *e, const char *what, const char *want, struct str found)
{
	enum { MOST = 120 };
	int n = (int)strcspn(what, ":"); /* a key of /proc/PID/status ends with a colon */

	if (found.n == 0)
		found = STR("nothing");
	(void)err_set(e, ERR_FAILED,
		      "the sandbox is not what it must be: %.*s: expected %.120s, found %.*s", n,
		      what, want, found.n > MOST ? MOST : (int)found.n, found.p);
	return err_hint(e, "it was destroyed before anything ran in it; this is a fault of Cay or "
			   "of the kernel: report it");
}

static int read_proc(const struct posture *p, const char *name, struct buf *b, struct err *e)
{
	int r = io_read_file(p->proc_fd, name, b);

	return r < 0 ? err_sys(e, -r, "look at the sandbox: read its '%s'", name) : 0;
}

static int want_text(struct err *e, struct str text, const char *key, const char *want)
{
	struct str found = proc_value(text, key);

	return str_is(found, want) ? 0 : posture_differs(e, key, *want ? want : "nothing", found);
}

/* One id map must have exactly these lines; blanks between numbers do not matter. */
static int check_map(const struct posture *p, const char *file, const struct idmap *want, int n,
		     struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	char expected[TEXT] = "", found[TEXT] = "";
	size_t at = 0;

	if (read_proc(p, file, &b, e) < 0)
		return -1;
	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(expected + at, sizeof expected - at, "%s%u %u %u",
				       i ? ", " : "", want[i].inside, want[i].outside,
				       want[i].count);
	at = 0;
	for (struct str text = buf_str(&b), line; proc_line(&text, &line);) {
		unsigned inside, outside, count;
		char copy[TEXT];

		if (!str_copy(copy, sizeof copy, line) || at + 40 > sizeof found ||
		    sscanf(copy, "%u %u %u", &inside, &outside, &count) != 3)
			return posture_differs(e, file, expected, line);
		at += (size_t)snprintf(found + at, sizeof found - at, "%s%u %u %u", at ? ", " : "",
				       inside, outside, count);
	}
	return strcmp(expected, found) == 0 ? 0 : posture_differs(e, file, expected, str_of(found));
}

int posture_maps(const struct posture *p, struct err *e)
{
	const struct launch *l = p->l;

	if (check_map(p, "uid_map", l->uids, l->nuids, e) < 0)
		return -1;
	return check_map(p, "gid_map", l->gids, l->ngids, e);
}

/* The last number of a line such as NSpid: init's own view. */
static int want_inner(struct err *e, struct str text, const char *key, const char *want)
{
	struct str all = proc_value(text, key), last = all;

	for (size_t i = all.n; i > 0; i--)
		if (all.p[i - 1] == '\t') {
			last = (struct str){ all.p + i, all.n - i };
			break;
		}
	return str_is(last, want) ? 0 : posture_differs(e, key, want, all);
}

static int check_ids(const struct posture *p, struct str text, struct err *e)
{
	char want[TEXT];
	uint32_t uid = p->l->init_uid, gid = p->l->init_gid;

	(void)snprintf(want, sizeof want, "%u\t%u\t%u\t%u", uid, uid, uid, uid);
	if (want_text(e, text, "Uid:", want) < 0)
		return -1;
	(void)snprintf(want, sizeof want, "%u\t%u\t%u\t%u", gid, gid, gid, gid);
	if (want_text(e, text, "Gid:", want) < 0)
		return -1;
	/* A process that maps only itself cannot drop its groups. */
	return p->l->spec->rootful ? want_text(e, text, "Groups:", "") : 0;
}

static int check_caps(const struct posture *p, struct str text, struct err *e)
{
	char want[TEXT];
	struct str permitted = proc_value(text, "CapPrm:");

	(void)snprintf(want, sizeof want, "%016" PRIx64, caps_root_inside);
	if (want_text(e, text, "CapBnd:", want) < 0 ||
	    want_text(e, text, "CapAmb:", "0000000000000000") < 0)
		return -1;
	if (p->l->spec->rootful && want_text(e, text, "CapInh:", "0000000000000000") < 0)
		return -1;
	if (!str_copy(want, sizeof want, permitted))
		return posture_differs(e, "CapPrm:", "a set", permitted);
	return want_text(e, text, "CapEff:", want);
}

/*
 * Init inherits what an outer container has set, and has installed the list of system calls.
 * Neither more nor less may be there.
 */
static int check_walls(const struct posture *p, struct str text, struct err *e)
{
	struct str ours = buf_str(&p->status), filters = proc_value(ours, "Seccomp_filters:");
	char want[TEXT], count[TEXT];

	if (!str_copy(want, sizeof want, proc_value(ours, "NoNewPrivs:")) ||
	    want_text(e, text, "NoNewPrivs:", want) < 0 || want_text(e, text, "Seccomp:", "2") < 0)
		return -1;
	/* Linux 5.9 and later count them. */
	if (!filters.n)
		return 0;
	if (!str_copy(count, sizeof count, filters))
		return posture_differs(e, "Seccomp_filters:", "a number", filters);
	(void)snprintf(want, sizeof want, "%lu", strtoul(count, NULL, 10) + 1);
	return want_text(e, text, "Seccomp_filters:", want);
}

int posture_status(const struct posture *p, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	char pid[TEXT];
	struct str text;

	if (read_proc(p, "status", &b, e) < 0)
		return -1;
	text = buf_str(&b);
	(void)snprintf(pid, sizeof pid, "%d", (int)p->pid);
	if (want_text(e, text, "Pid:", pid) < 0 || want_text(e, text, "Threads:", "1") < 0 ||
	    want_text(e, text, "Umask:", "0022") < 0)
		return -1;
	if (want_inner(e, text, "NSpid:", "1") < 0 || want_inner(e, text, "NSsid:", "1") < 0)
		return -1;
	if (check_ids(p, text, e) < 0 || check_caps(p, text, e) < 0)
		return -1;
	return check_walls(p, text, e);
}

/* "Max core file size        1                    1                    bytes" */
static int want_limit(struct err *e, struct str text, const char *key, const char *soft,
		      const char *hard)
{
	struct str found = proc_value(text, key);
	char copy[TEXT], cur[24], max[24];

	if (!str_copy(copy, sizeof copy, found) || sscanf(copy, "%23s %23s", cur, max) != 2 ||
	    strcmp(cur, soft ? soft : max) != 0 || (hard && strcmp(max, hard) != 0))
		return posture_differs(e, key, soft ? soft : "as many as there can be", found);
	return 0;
}

int posture_rlimits(const struct posture *p, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	char core[24];

	if (read_proc(p, "limits", &b, e) < 0)
		return -1;
	(void)snprintf(core, sizeof core, "%" PRIu64, p->l->core);
	if (want_limit(e, buf_str(&b), "Max core file size", core, core) < 0)
		return -1;
	return want_limit(e, buf_str(&b), "Max open files", NULL, NULL);
}

/* A limit of the first call moves init into a leaf of its group (sys/cgroup/cgroup_v2.c). */
static struct str without_leaf(struct str group)
{
	static const struct str leaves[] = { STR("/" CGROUP_SELF), STR("/init") };

	for (size_t i = 0; i < ARRAY_LEN(leaves); i++) {
		struct str leaf = leaves[i];

		if (group.n > leaf.n &&
		    str_eq((struct str){ group.p + group.n - leaf.n, leaf.n }, leaf))
			return (struct str){ group.p, group.n - leaf.n };
	}
	return group;
}

int posture_group(const struct posture *p, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(FILE_MAX);
	struct str found, name = str_of(p->group);

	if (!p->group)
		return 0;
	if (read_proc(p, "cgroup", &b, e) < 0)
		return -1;
	found = without_leaf(proc_value(buf_str(&b), "0::"));
	if (found.n > name.n && found.p[found.n - name.n - 1] == '/' &&
	    str_eq((struct str){ found.p + found.n - name.n, name.n }, name))
		return 0;
	return posture_differs(e, "control group", p->group, found);
}

/* Descriptors that init opens itself, each once. */
static const char *const init_opens[] = { "anon_inode:[eventpoll]", "anon_inode:[signalfd]",
					  "/oom_score_adj" };

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_null_device(const struct posture *p, const char *name)
{
	struct stat st;
	char path[32];

	(void)snprintf(path, sizeof path, "fd/%.16s", name);
	return fstatat(p->proc_fd, path, &st, 0) == 0 && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(1, 3);
}

/*
 * Descriptors that init may hold, and those found: bit i for standard descriptor i, 3 for the
 * stream, from 4 on init's own.
 */
struct held {
	char pipe[TEXT]; /* to the command that init made; empty: none */
	unsigned seen;
};

/* Each of these may appear once. */
static bool is_inits_own(struct held *h, const char *link)
{
	unsigned i = 0;

	while (i < ARRAY_LEN(init_opens) && !ends_with(link, init_opens[i]))
		i++;
	if (i == ARRAY_LEN(init_opens) && (!h->pipe[0] || strcmp(link, h->pipe) != 0))
		return false;
	if (h->seen & 16u << i)
		return false;
	h->seen |= 16u << i;
	return true;
}

static int check_descriptor(const struct posture *p, int dirfd, const char *name, struct held *h,
			    struct err *e)
{
	char link[TEXT] = "", socket[40], what[40];
	ssize_t n = readlinkat(dirfd, name, link, sizeof link - 1);
	int fd = atoi(name);

	(void)snprintf(what, sizeof what, "descriptor %.12s", name);
	if (n < 0) /* closed since it was listed? */
		return errno == ENOENT ? 0 : err_sys(e, errno, "look at the sandbox: %s", what);
	(void)snprintf(socket, sizeof socket, "socket:[%" PRIu64 "]", p->stream);
	if (fd < 3 && !is_null_device(p, name))
		return posture_differs(e, what, "the null device", str_of(link));
	if (fd == 3 && strcmp(link, socket) != 0)
		return posture_differs(e, what, socket, str_of(link));
	if (fd <= 3) {
		h->seen |= 1u << fd;
		return 0;
	}
	return is_inits_own(h, link) ? 0 : posture_differs(e, what, "none", str_of(link));
}

/* Through this pipe init learns whether the exec succeeded. ESRCH: the command is gone. */
static int find_pipe(pid_t command, struct held *h, struct err *e)
{
	auto_close int proc = FD_NONE;
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d", (int)command);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0 || faccessat(proc, "fd", F_OK, 0) < 0)
		return err_sys(e, ESRCH, "look at the first command");
	if (readlinkat(proc, "fd/3", h->pipe, sizeof h->pipe - 1) < 0)
		h->pipe[0] = '\0';
	if (strncmp(h->pipe, "pipe:", 5) == 0)
		return 0;
	return posture_differs(e, "descriptor 3 of the first command", "a pipe", str_of(h->pipe));
}

int posture_descriptors(const struct posture *p, pid_t command, struct err *e)
{
	int r = 0, fd = openat(p->proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct held h = { .seen = 0 };

	if (!d) {
		r = errno;
		fd_close(&fd);
		return err_sys(e, r, "look at the sandbox: list its descriptors");
	}
	if (command)
		r = find_pipe(command, &h, e);
	for (struct dirent *ent = r == 0 ? readdir(d) : NULL; ent && r == 0; ent = readdir(d))
		if (ent->d_name[0] != '.')
			r = check_descriptor(p, dirfd(d), ent->d_name, &h, e);
	(void)closedir(d);
	if (r == 0 && (h.seen & 15u) != 15u)
		return posture_differs(e, "descriptors", "0, 1, 2 and 3", STR("fewer"));
	return r;
}

/* Root, working directory and program. */
int posture_places(const struct posture *p, struct err *e)
{
	static const char *const names[] = { "root", "cwd", "exe" };
	const int wants[] = { p->root_fd, p->root_fd, p->l->init_fd };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct stat found, want;
		char link[TEXT] = "";

		if (fstatat(p->proc_fd, names[i], &found, 0) < 0 || fstat(wants[i], &want) < 0)
			return err_sys(e, errno, "look at the sandbox: its '%s'", names[i]);
		if (found.st_dev == want.st_dev && found.st_ino == want.st_ino)
			continue;
		if (readlinkat(p->proc_fd, names[i], link, sizeof link - 1) < 0)
			link[0] = '\0';
		return posture_differs(e, names[i], i < 2 ? "the sandbox's root" : "cay-init",
				       str_of(link));
	}
	return 0;
}

int posture_open(struct posture *p, int self_fd, struct err *e)
{
	static const char *const files[] = { "status",	"limits",    "cgroup", "uid_map",
					     "gid_map", "mountinfo", "root",   "cwd",
					     "exe",	"fd/0",	     "fd/1",   "fd/2",
					     "fd/3",	"fd/4",	     "fd/5",   "fd/6" };
	struct stat st;
	int r = io_read_file(self_fd, "status", &p->status);

	if (r < 0)
		return err_sys(e, -r, "read '/proc/self/status'");
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)fstatat(p->proc_fd, files[i], &st, AT_SYMLINK_NOFOLLOW);
	return posture_namespaces_open(p, self_fd, e);
}

void posture_done(struct posture *p)
{
	fd_close(&p->proc_fd);
	buf_done(&p->status);
}

typedef int check(const struct posture *, struct err *);

static int check_all(const struct posture *p, check *const *what, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (what[i](p, e) < 0)
			return -1;
	return 0;
}

/*
 * Init closes what it handed to the command at about the time when the command reaches us. So an
 * extra descriptor may disappear in a moment: check again.
 */
static int check_descriptors(const struct posture *p, pid_t command, struct err *e)
{
	const uint64_t end = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;

	while (posture_descriptors(p, command, e) < 0) {
		if (!command || e->sys == ESRCH || clock_mono_ns() > end)
			return -1;
		(void)poll(NULL, 0, 1);
	}
	return 0;
}

int posture_check(const struct posture *p, enum cell_look what, pid_t command, struct err *e)
{
	static check *const built[] = { posture_mounts, posture_maps, posture_group };
	static check *const init[] = { posture_status, posture_rlimits, posture_places };
	/* Before it executes init, a rootless child cannot be inspected even by its creator. */
	enum cell_look namespaces = p->l->spec->rootful ? LOOK_BUILT : LOOK_INIT;

	if (what == LOOK_OPEN)
		return check_descriptors(p, command, e);
	if (what == LOOK_BUILT && check_all(p, built, ARRAY_LEN(built), e) < 0)
		return -1;
	if (what == LOOK_INIT && check_all(p, init, ARRAY_LEN(init), e) < 0)
		return -1;
	return what == namespaces ? posture_namespaces(p, e) : 0;
}
