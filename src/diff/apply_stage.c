/* SPDX-License-Identifier: Apache-2.0 */
/* Writes new files to the stage before anything changes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/limits.h"
#include "diff/apply.h"
#include "diff/guard.h"
#include "diff/merge.h"

enum { CHUNK = 256 * 1024 };

void apply_stage_name(char out[40], char kind, size_t i)
{
	(void)snprintf(out, 40, "%c%zu", kind, i);
}

/* Holes stay holes. */
static int copy_bytes(int from, int to, off_t size)
{
	auto_free char *mem = malloc(CHUNK);
	off_t at = 0;

	if (!mem)
		return -ENOMEM;
	while (at < size) {
		off_t data = lseek(from, at, SEEK_DATA);
		ssize_t n, put;

		if (data < 0 && errno == ENXIO)
			break;
		at = data < 0 ? at : data;
		n = pread(from, mem, CHUNK, at);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		for (ssize_t done = 0; done < n; done += put) {
			put = pwrite(to, mem + done, (size_t)(n - done), at + done);
			if (put < 0)
				return -errno;
		}
		at += n;
	}
	return ftruncate(to, size) < 0 ? -errno : 0;
}

static bool is_same_time(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* If the file changes during the copy, retry, then give up. */
static int copy_file(int from, int to)
{
	for (int i = 0; i < 3; i++) {
		struct stat before, after;
		int r = 0;

		if (fstat(from, &before) < 0)
			return -errno;
		if (ioctl(to, FICLONE, from) < 0) {
			if (ftruncate(to, 0) < 0)
				return -errno;
			r = copy_bytes(from, to, before.st_size);
		}
		if (r < 0)
			return r;
		if (fstat(from, &after) < 0)
			return -errno;
		if (is_same_time(&before, &after))
			return 0;
	}
	return -ESTALE;
}

static int read_host(const struct apply *a, const struct apply_step *s, struct buf *out)
{
	auto_close int fd = stack_open_at(a->dir_fd, s->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);

	return fd < 0 ? fd : io_read_all(fd, out);
}

static int write_merged(const struct apply *a, const struct diff *d,
			const struct apply_rules *rules, struct apply_step *s, int to)
{
	static const struct merge_names names = { "host", "sandbox" };
	auto_done(buf_done) struct buf base = BUF_INIT(LIMIT_DIFF_TEXT);
	auto_done(buf_done) struct buf ours = BUF_INIT(LIMIT_DIFF_TEXT);
	auto_done(buf_done) struct buf theirs = BUF_INIT(LIMIT_DIFF_TEXT);
	auto_done(buf_done) struct buf out = BUF_INIT(4ul * LIMIT_DIFF_TEXT);
	auto_close int fd = diff_open_new(d, &d->v[s->entry]);
	int r = fd < 0 ? fd : io_read_all(fd, &theirs);

	if (r == 0)
		r = rules->base(rules->ctx, s->path, &base) > 0 ? 0 : -ENOENT;
	if (r == 0)
		r = read_host(a, s, &ours);
	if (r == 0)
		r = merge_texts(buf_str(&base), buf_str(&ours), buf_str(&theirs), &names, &out);
	if (r < 0)
		return r;
	s->conflict = r > 0;
	sha256(theirs.data, theirs.len, s->theirs);
	return io_write_all(to, out.data, out.len);
}

/* Root must not leave root-owned files in a user's directory. */
static int give_owner(const struct apply *a, const struct apply_step *s, int dirfd,
		      const char *name)
{
	struct stat st;

	if (geteuid() != 0)
		return 0;
	if (s->old.ino)
		return fchownat(dirfd, name, s->old.uid, s->old.gid, AT_SYMLINK_NOFOLLOW) < 0
			       ? -errno
			       : 0;
	if (fstat(a->dir_fd, &st) < 0)
		return -errno;
	return fchownat(dirfd, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int stage_file(struct apply *a, const struct diff *d, const struct apply_rules *rules,
		      struct apply_step *s, const char *name)
{
	auto_close int to =
		openat(a->stage_fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
	auto_close int from = FD_NONE;
	int r;

	if (to < 0)
		return -errno;
	if (s->merged) {
		r = write_merged(a, d, rules, s, to);
	} else {
		from = diff_open_new(d, &d->v[s->entry]);
		r = from < 0 ? from : copy_file(from, to);
	}
	/* The sandbox's file may have changed since the plan checked it. */
	if (r == 0 && s->git_index && !guard_index_ok(to))
		r = -ESTALE;
	if (r == 0)
		r = give_owner(a, s, a->stage_fd, name);
	/* After the owner, because chown clears bits. */
	if (r == 0 && fchmod(to, s->merged ? s->old.mode & 0777 : s->mode) < 0)
		r = -errno;
	return r < 0 ? r : fdatasync(to) < 0 ? -errno : 0;
}

static int stage_link(struct apply *a, const struct diff *d, const struct apply_step *s,
		      const char *name)
{
	auto_done(buf_done) struct buf target = BUF_INIT(PATH_MAX);
	const struct diff_entry *en = &d->v[s->entry];
	int r = diff_read_link(d->new, &en->new, en->path, &target);

	if (r == 0 && (!target.len || !str_is_text(buf_str(&target))))
		r = -EINVAL;
	if (r < 0)
		return r;
	if (symlinkat(target.data, a->stage_fd, name) < 0)
		return -errno;
	return give_owner(a, s, a->stage_fd, name);
}

int apply_stage(struct apply *a, const struct diff *d, const struct apply_rules *rules,
		struct err *e)
{
	for (size_t i = 0; i < a->n; i++) {
		struct apply_step *s = &a->steps[i];
		struct apply_file made = { 0 };
		char name[40];
		int r;

		if (s->op != APPLY_ADD && s->op != APPLY_REPLACE)
			continue;
		apply_tick(a);
		apply_stage_name(name, 'n', i);
		r = S_ISLNK(d->v[s->entry].new.mode) ? stage_link(a, d, s, name)
						     : stage_file(a, d, rules, s, name);
		if (r == 0)
			r = apply_look(a->stage_fd, name, &made);
		if (r == -ESTALE) {
			(void)err_set(e, ERR_CONFLICT, "'%.300s' changes while it is read",
				      s->path);
			return err_code(e, "file.changing", NULL);
		}
		if (r < 0)
			return err_sys(e, -r, "copy '%.300s'", s->path);
		s->new_ino = made.ino;
	}
	return 0;
}
