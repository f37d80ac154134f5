/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of changes.c: a real overlay in the test's own namespaces, and a trace that keeps
 * its events as short lines of text:
 *
 *   create /a file          change /a file mode         delete /d dir
 *   change /a file touched
 *   rename /a -> /b file    gap 3 file
 *
 * If fx.show_calls is set, " @N" follows for the call of the event, " idle" if it is known by the
 * idle time of other calls, and " ?N,M" for the candidates.
 * All files are in a tmpfs that ends with the test.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"
#include "t.h"
#include "warden/changes/changes.h"

enum { FX_EVENTS = 1000 };

static struct {
	bool show_calls;
	bool privileged; /* use the marks of overlays mounted by the host */
	int index_fd, nroots;
	struct changes_root roots[2];
	struct changes *changes;
	char *events[FX_EVENTS];
	int nevents, total, flushes;
	/* fields of the event in progress */
	char kind[32], path[8192], from[8192], type[16], what[16], known_by[16], list[512];
	uint32_t call;
	uint64_t parent, last_parent;
	int64_t size, mode, count;
	bool uncertain;
	int64_t last_size, last_mode;
	int fail_end; /* result of trace_end */
} fx;

uint64_t trace_begin(struct trace *t, const char *kind, uint32_t call, uint64_t parent)
{
	(void)snprintf(fx.kind, sizeof fx.kind, "%s", kind);
	fx.path[0] = fx.from[0] = fx.type[0] = fx.what[0] = fx.list[0] = fx.known_by[0] = '\0';
	fx.call = call;
	fx.parent = parent;
	fx.size = fx.mode = fx.count = -1;
	fx.uncertain = false;
	return ++t->seq;
}

void trace_text(struct trace *t, const char *key, struct str value)
{
	char *to = NULL;
	size_t size = sizeof fx.type;

	(void)t;
	if (strcmp(key, "type") == 0)
		to = fx.type;
	else if (strcmp(key, "what") == 0)
		to = fx.what;
	else if (strcmp(key, "known_by") == 0)
		to = fx.known_by;
	else
		size = sizeof fx.path;
	if (strcmp(key, "path") == 0)
		to = fx.path;
	else if (strcmp(key, "from") == 0)
		to = fx.from;
	CHECK(to);
	if (!str_copy(to, size, value))
		(void)snprintf(to, size, "(%zu bytes)", value.n);
}

void trace_num(struct trace *t, const char *key, int64_t value)
{
	(void)t;
	if (strcmp(key, "size") == 0)
		fx.size = value;
	else if (strcmp(key, "mode") == 0)
		fx.mode = value;
	else if (strcmp(key, "count") == 0)
		fx.count = value;
	else
		CHECK(strcmp(key, "calls_more") == 0);
}

void trace_bool(struct trace *t, const char *key, bool value)
{
	(void)t;
	CHECK_STR(key, "certain");
	CHECK(!value);
	fx.uncertain = true;
}

void trace_array(struct trace *t, const char *key)
{
	(void)t;
	CHECK_STR(key, "calls");
}

void trace_item(struct trace *t, struct str value)
{
	(void)t;
	(void)value;
	t_fail(__FILE__, __LINE__, "a text in an array");
}

void trace_item_num(struct trace *t, int64_t value)
{
	size_t n = strlen(fx.list);

	(void)t;
	(void)snprintf(fx.list + n, sizeof fx.list - n, "%s%d", n ? "," : "", (int)value);
}

void trace_array_end(struct trace *t)
{
	(void)t;
}

int trace_end(struct trace *t)
{
	auto_done(buf_done) struct buf b = BUF_INIT(64 * 1024);
	int r;

	(void)t;
	if (fx.fail_end)
		return fx.fail_end;
	fx.last_parent = fx.parent;
	fx.last_size = fx.size;
	fx.last_mode = fx.mode;
	fx.total++;
	if (fx.nevents == FX_EVENTS)
		return 0;
	if (fx.count >= 0)
		r = buf_printf(&b, "gap %d %s", (int)fx.count, fx.what);
	else
		r = buf_printf(&b, "%s %s%s%s%s%s%s%s", strchr(fx.kind, '.') + 1, fx.from,
			       fx.from[0] ? " -> " : "", fx.path, fx.type[0] ? " " : "", fx.type,
			       fx.what[0] ? " " : "", fx.what);
	CHECK(r == 0);
	if (fx.show_calls && fx.call)
		CHECK(buf_printf(&b, " @%u", fx.call) == 0);
	CHECK(!fx.uncertain || !fx.known_by[0]);
	if (fx.show_calls && strcmp(fx.known_by, "idle") == 0)
		CHECK(buf_add_c(&b, " idle") == 0);
	if (fx.show_calls && fx.uncertain)
		CHECK(buf_printf(&b, " ?%s", fx.list) == 0);
	fx.events[fx.nevents++] = buf_take(&b, NULL);
	return 0;
}

int trace_flush(struct trace *t)
{
	(void)t;
	fx.flushes++;
	return 0;
}

static inline void fx_write(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(io_write_all(fd, text, strlen(text)) == 0);
}

/* Create a file or append to it. */
static inline void fx_put(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK(io_write_all(fd, text, strlen(text)) == 0);
}

static inline void fx_age(const char *path, int age_s)
{
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1700000000 - age_s } };

	CHECK(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW) == 0);
}

/* Wait until any clock would stamp a change later than real_ns. */
static inline void fx_wait_past(uint64_t real_ns)
{
	while (clock_coarse_ns() <= real_ns)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
}

/* Overwrite the beginning of a file and restore everything but the ctime. */
static inline void fx_rewrite(const char *path, const char *text)
{
	auto_close int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT } };
	struct stat s;

	CHECK(fd >= 0 && fstat(fd, &s) == 0);
	CHECK(s.st_size >= (off_t)strlen(text));
	fx_wait_past((uint64_t)s.st_ctim.tv_sec * NS_PER_S + (uint64_t)s.st_ctim.tv_nsec);
	CHECK(io_write_all(fd, text, strlen(text)) == 0);
	t[1] = s.st_mtim;
	CHECK(futimens(fd, t) == 0);
}

/* Enter a mount namespace with a new tmpfs as working directory; optionally a user namespace. */
static inline void fx_enter(bool user_ns)
{
	char uid[64], gid[64];

	(void)snprintf(uid, sizeof uid, "0 %u 1", geteuid());
	(void)snprintf(gid, sizeof gid, "0 %u 1", getegid());
	fx.privileged = !user_ns;
	CHECK(unshare(CLONE_NEWNS | (user_ns ? CLONE_NEWUSER : 0)) == 0);
	if (user_ns) {
		fx_write("/proc/self/setgroups", "deny");
		fx_write("/proc/self/uid_map", uid);
		fx_write("/proc/self/gid_map", gid);
	}
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0);
	CHECK(chdir("/tmp") == 0);
	umask(022);
	CHECK(mkdir("index", 0755) == 0 && mkdir("lower", 0755) == 0);
	CHECK(mkdir("upper", 0755) == 0 && mkdir("work", 0755) == 0 && mkdir("in", 0755) == 0);
	if (user_ns && setxattr("work", "user.x", "", 0, 0) < 0)
		t_skip("before Linux 6.6 a tmpfs has no extended attributes for users");
}

static inline void fx_move_dir(const char *from, const char *to);

static inline void fx_move_entries(const char *from, const char *to)
{
	DIR *d = opendir(from);
	const struct dirent *de;

	CHECK(d);
	while ((de = readdir(d))) {
		char a[512], b[512];

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		CHECK(snprintf(a, sizeof a, "%s/%s", from, de->d_name) < (int)sizeof a);
		CHECK(snprintf(b, sizeof b, "%s/%s", to, de->d_name) < (int)sizeof b);
		if (rename(a, b) < 0) {
			CHECK(errno == EXDEV);
			fx_move_dir(a, b);
		}
	}
	closedir(d);
}

/* Rename a directory of the lower the way init does: a new directory with the old files. */
static inline void fx_move_dir(const char *from, const char *to)
{
	struct stat st;

	CHECK(lstat(from, &st) == 0 && mkdir(to, 0700) == 0);
	fx_move_entries(from, to);
	CHECK(chmod(to, st.st_mode & 07777) == 0 && rmdir(from) == 0);
	CHECK(utimensat(AT_FDCWD, to, (struct timespec[]){ st.st_atim, st.st_mtim }, 0) == 0);
}

static inline void fx_lower(void)
{
	CHECK(mkdir("lower/dir", 0755) == 0 && mkdir("lower/dir/sub", 0755) == 0);
	fx_put("lower/conf", "conf");
	fx_put("lower/other", "other");
	fx_put("lower/empty", "");
	fx_put("lower/dir/one", "1");
	fx_put("lower/dir/two", "22");
	fx_put("lower/dir/sub/three", "333");
	CHECK(symlink("conf", "lower/link") == 0);
	CHECK(mkfifo("lower/pipe", 0644) == 0);
	fx_age("lower/conf", 1);
	fx_age("lower/other", 2);
	fx_age("lower/empty", 3);
	fx_age("lower/dir/one", 4);
	fx_age("lower/dir/two", 5);
	fx_age("lower/dir/sub/three", 6);
	fx_age("lower/link", 7);
}

static inline void fx_start(const char *dest, bool lower)
{
	struct err e;
	int n = fx.nroots++;

	if (n == 0)
		fx.index_fd = open("index", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fx.roots[n] = (struct changes_root){
		.upper_fd = open("upper", O_PATH | O_DIRECTORY | O_CLOEXEC),
		.dest = dest,
		.lower_fd = lower ? open("lower", O_PATH | O_DIRECTORY | O_CLOEXEC) : FD_NONE,
		.privileged = fx.privileged,
	};
	CHECK(fx.roots[n].upper_fd >= 0);
	changes_free(fx.changes);
	CHECK(changes_new(fx.index_fd, fx.roots, fx.nroots, &fx.changes, &e) == 0);
}

/* Mount an overlay at ./in and make it the working directory; the other files are at "../". */
static inline void fx_mount(bool user_ns)
{
	CHECK(mount("overlay", "in", "overlay", 0,
		    user_ns ? "lowerdir=lower,upperdir=upper,workdir=work,userxattr"
			    : "lowerdir=lower,upperdir=upper,workdir=work") == 0);
	fx_start("/", true);
	CHECK(chdir("in") == 0);
}

static inline void fx_overlay(bool user_ns)
{
	fx_enter(user_ns);
	fx_lower();
	fx_mount(user_ns);
}

/* The event of a call is 100 + its number. */
static inline void fx_walk_calls(const struct changes_call *given, int ncalls)
{
	struct changes_call calls[64];
	struct trace t = { 0 };
	struct err e = { 0 };

	CHECK(ncalls <= (int)ARRAY_LEN(calls));
	for (int i = 0; i < ncalls; i++) {
		calls[i] = given[i];
		calls[i].event = 100 + given[i].call;
	}

	for (int i = 0; i < fx.nevents; i++)
		free(fx.events[i]);
	fx.nevents = fx.total = 0;
	if (changes_walk(fx.changes, calls, ncalls, &(struct changes_sink){ .trace = &t }, &e) < 0)
		t_fail("changes_walk", 0, e.msg);
}

static inline void fx_walk(void)
{
	struct changes_call call = { .call = 1, .end_ns = UINT64_MAX };

	fx_walk_calls(&call, 1);
}

static inline void fx_done(void)
{
	for (int i = 0; i < fx.nevents; i++)
		free(fx.events[i]);
	changes_free(fx.changes);
	for (int i = 0; i < fx.nroots; i++) {
		fd_close(&fx.roots[i].upper_fd);
		fd_close(&fx.roots[i].lower_fd);
	}
	fd_close(&fx.index_fd);
}

/* Compare the events of the last walk, in order, with these lines. */
static inline void fx_check_at(int line, const char *want)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1 << 20);

	CHECK(buf_add_c(&b, "") == 0);
	for (int i = 0; i < fx.nevents; i++)
		CHECK(buf_printf(&b, "%s%s", i ? "\n" : "", fx.events[i]) == 0);
	if (strcmp(b.data, want) != 0)
		t_fail_str("line", line, b.data, want);
}
#define FX_CHECK(want) fx_check_at(__LINE__, want)
/* Walk with one running call. */
#define FX_WALK(want) (fx_walk(), fx_check_at(__LINE__, want))
