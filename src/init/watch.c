/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tell what changes in a directory, or in a whole tree:
 *
 *   kernel (inotify, one watch per directory) ──> events by name ──> stdout
 *
 * Files that init writes for clients get their name when they are whole: of these the last step is
 * told, as what it means (see init/files.c).
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "init/files.h"
#include "init/list.h"
#include "wire/watch_event.h"

enum {
	DIRS_MOST = 8192,
	OUT_MOST = 1 << 20,
	CHANGES = IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_ATTRIB
};

struct dir {
	int wd;
	char *below; /* its name below the watched directory; "": that itself */
};

struct watch {
	const char *path;
	int fd;
	bool deep, entries;
	struct dir *dirs;
	size_t ndirs;
	uint32_t ours; /* cookie of the move that ends a write of ours */
	bool ours_new; /* it makes a file that was not there */
	struct buf out;
};

static bool full_name(const struct watch *w, const char *below, char out[LIMIT_PATH])
{
	int n = snprintf(out, LIMIT_PATH, "%s%s%s", w->path, below[0] ? "/" : "", below);

	return n > 0 && n < LIMIT_PATH;
}

static int tell(struct watch *w, enum watch_kind kind, const char *below)
{
	bool may_exist = kind == WATCH_CREATE || kind == WATCH_WRITE || kind == WATCH_CHMOD;
	char path[LIMIT_PATH];
	size_t before;
	int r = buf_printf(&w->out, "%c%c%s%c", (char)kind, 0, below, 0);

	if (r < 0)
		return r;
	before = w->out.len;
	r = -ENOENT;
	if (w->entries && may_exist && full_name(w, below, path)) {
		r = buf_add(&w->out, "1", 2);
		if (r == 0)
			r = list_put(&w->out, path);
	}
	if (r == 0)
		return 0;
	buf_cut(&w->out, before);
	return buf_add(&w->out, "0", 2);
}

static int watch_dir(struct watch *w, const char *below, bool fresh);

/* What is in a directory already: watch what is a directory, and tell of it where it is new. */
static int look_into(struct watch *w, const char *below, bool fresh)
{
	char path[LIMIT_PATH], name[LIMIT_PATH];
	const struct dirent *e;
	int r = 0;
	DIR *d;

	if (!full_name(w, below, path))
		return 0;
	d = opendir(path);
	while (d && r == 0 && (e = readdir(d))) {
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    snprintf(name, sizeof name, "%s%s%s", below, below[0] ? "/" : "", e->d_name) >=
			    (int)sizeof name ||
		    !full_name(w, name, path) || lstat(path, &st) < 0)
			continue;
		if (fresh && files_temp_kind(e->d_name) == FILES_NOT_TEMP)
			r = tell(w, WATCH_CREATE, name);
		if (r == 0 && S_ISDIR(st.st_mode))
			r = watch_dir(w, name, fresh);
	}
	if (d)
		(void)closedir(d);
	return r;
}

static int watch_dir(struct watch *w, const char *below, bool fresh)
{
	char path[LIMIT_PATH];
	struct dir *more;
	int wd;

	if (!full_name(w, below, path))
		return 0;
	if (w->ndirs == DIRS_MOST)
		return -ENOSPC;
	wd = inotify_add_watch(w->fd, path, CHANGES | IN_ONLYDIR | (below[0] ? IN_DONT_FOLLOW : 0));
	if (wd < 0) /* one below that just went away is no failure */
		return below[0] && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)
			       ? 0
			       : -errno;
	more = reallocarray(w->dirs, w->ndirs + 1, sizeof *w->dirs);
	if (!more)
		return -ENOMEM;
	w->dirs = more;
	more[w->ndirs] = (struct dir){ wd, strdup(below) };
	if (!more[w->ndirs++].below)
		return -ENOMEM;
	return w->deep ? look_into(w, below, fresh) : 0;
}

static void forget(struct watch *w, size_t i)
{
	free(w->dirs[i].below);
	w->dirs[i] = w->dirs[--w->ndirs];
}

/* A directory was moved away: its watches have names that are no longer true. */
static void forget_below(struct watch *w, const char *below)
{
	size_t n = strlen(below);

	for (size_t i = w->ndirs; i-- > 0;) {
		const char *name = w->dirs[i].below;

		if (strncmp(name, below, n) != 0 || (name[n] && name[n] != '/') || !name[0])
			continue;
		(void)inotify_rm_watch(w->fd, w->dirs[i].wd);
		forget(w, i);
	}
}

/* The steps of a write of ours. 1: it is one, and told; 0: it is none. */
static int on_ours(struct watch *w, const struct inotify_event *e, const char *below)
{
	enum files_temp kind = files_temp_kind(e->name);
	int r = 0;

	if (kind != FILES_NOT_TEMP) {
		if (e->mask & IN_MOVED_FROM) {
			w->ours = e->cookie;
			w->ours_new = kind == FILES_TEMP_NEW;
		}
		return 1;
	}
	if (!(e->mask & IN_MOVED_TO) || !w->ours || e->cookie != w->ours)
		return 0;
	w->ours = 0;
	if (w->ours_new)
		r = tell(w, WATCH_CREATE, below);
	if (r == 0)
		r = tell(w, WATCH_WRITE, below);
	return r < 0 ? r : 1;
}

static int on_change(struct watch *w, const struct inotify_event *e, const char *below)
{
	static const struct {
		uint32_t bits;
		enum watch_kind kind;
	} rows[] = { { IN_CREATE | IN_MOVED_TO, WATCH_CREATE },
		     { IN_MODIFY, WATCH_WRITE },
		     { IN_DELETE, WATCH_REMOVE },
		     { IN_MOVED_FROM, WATCH_RENAME },
		     { IN_ATTRIB, WATCH_CHMOD } };
	int r = on_ours(w, e, below);

	if (r != 0)
		return r < 0 ? r : 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(rows); i++)
		if (e->mask & rows[i].bits)
			r = tell(w, rows[i].kind, below);
	if (r < 0 || !w->deep || !(e->mask & IN_ISDIR))
		return r;
	if (e->mask & IN_MOVED_FROM)
		forget_below(w, below);
	return e->mask & (IN_CREATE | IN_MOVED_TO) ? watch_dir(w, below, true) : 0;
}

/* "#123": what the kernel calls a file without a name, while it is written. */
static bool is_nameless(const struct watch *w, const char *name, const char *below)
{
	char path[LIMIT_PATH];
	struct stat st;

	return name[0] == '#' && name[1 + strspn(name + 1, "0123456789")] == '\0' &&
	       full_name(w, below, path) && lstat(path, &st) < 0;
}

static int on_event(struct watch *w, const struct inotify_event *e)
{
	char below[LIMIT_PATH];
	size_t i = 0;

	while (i < w->ndirs && w->dirs[i].wd != e->wd)
		i++;
	if (i == w->ndirs)
		return 0;
	if (e->mask & IN_IGNORED) {
		forget(w, i);
		return 0;
	}
	/* Of the directory itself nothing is told. */
	if (!e->len ||
	    snprintf(below, sizeof below, "%s%s%s", w->dirs[i].below,
		     w->dirs[i].below[0] ? "/" : "", e->name) >= (int)sizeof below ||
	    is_nameless(w, e->name, below))
		return 0;
	return on_change(w, e, below);
}

/* What one read of the kernel gives. -EAGAIN: nothing. */
static int take_events(struct watch *w)
{
	char in[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(w->fd, in, sizeof in);
	int r = 0;

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (ssize_t at = 0; r == 0 && at < n;) {
		const struct inotify_event *e = (const void *)(in + at);

		r = on_event(w, e);
		at += (ssize_t)(sizeof *e + e->len);
	}
	if (r == 0 && w->out.len)
		r = io_write_all(STDOUT_FILENO, w->out.data, w->out.len);
	buf_clear(&w->out);
	return r;
}

/* Each byte of stdin asks for a sign behind all that has happened. 1: stdin has ended. */
static int answer_stdin(struct watch *w)
{
	char bytes[64];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
	int r = 0;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0)
		return 1;
	while (r == 0)
		r = take_events(w);
	r = r == -EAGAIN ? 0 : r;
	while (r == 0 && n-- > 0)
		r = io_write_all(STDOUT_FILENO,
				 "y\0\0"
				 "0",
				 5);
	return r;
}

static int turn(struct watch *w)
{
	struct pollfd p[] = { { .fd = w->fd, .events = POLLIN },
			      { .fd = STDIN_FILENO, .events = POLLIN } };
	int r = 0;

	if (poll(p, 2, -1) < 0)
		return errno == EINTR ? 0 : -errno;
	if (p[0].revents)
		r = take_events(w);
	if (r == -EAGAIN)
		r = 0;
	return r == 0 && p[1].revents ? answer_stdin(w) : r;
}

static void watch_done(struct watch *w)
{
	while (w->ndirs)
		forget(w, w->ndirs - 1);
	free(w->dirs);
	buf_done(&w->out);
	fd_close(&w->fd);
}
DEFINE_AUTO(struct watch, watch_done)

int watch_run(const char *path, char *const *options)
{
	auto_done(watch_done) struct watch w = { .path = path,
						 .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
						 .out = BUF_INIT(OUT_MOST) };
	int r = w.fd < 0 ? -errno : 0;

	for (; options && *options; options++) {
		w.deep = w.deep || strcmp(*options, "deep") == 0;
		w.entries = w.entries || strcmp(*options, "entries") == 0;
	}
	if (r == 0)
		r = watch_dir(&w, "", false);
	if (r == 0)
		r = io_write_all(STDOUT_FILENO,
				 "s\0\0"
				 "0",
				 5);
	while (r == 0)
		r = turn(&w);
	return r < 0 ? list_fail(path, -r) : 0;
}
