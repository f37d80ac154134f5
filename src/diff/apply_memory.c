/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/apply_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"

enum { MOST = 256 << 20, BASE_BYTES = 1 << 20 };

void apply_memory_done(struct apply_memory *m)
{
	fd_close(&m->dir_fd);
	for (size_t i = 0; i < m->n; i++)
		free(m->v[i].path);
	free(m->v);
	m->v = NULL;
	m->n = 0;
}

/* Writes a path into the file, with special characters as %XX. */
static int put_path(struct buf *b, const char *path)
{
	int r = 0;

	for (; *path && r == 0; path++)
		if (*path > 0x20 && *path < 0x7f && *path != '%')
			r = buf_add(b, path, 1);
		else
			r = buf_printf(b, "%%%02x", (uint8_t)*path);
	return r;
}

static char *take_path(const char *text)
{
	char *out = malloc(strlen(text) + 1), *at = out;
	unsigned byte;

	for (; out && *text; text++)
		if (*text == '%' && sscanf(text + 1, "%2x", &byte) == 1 && text[1] && text[2]) {
			*at++ = (char)byte;
			text += 2;
		} else {
			*at++ = *text;
		}
	if (out)
		*at = '\0';
	return out;
}

static int parse(struct apply_memory *m, char *text)
{
	size_t cap = 0;

	for (char *save = NULL, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct applied a = { .restored = line[0] == 'r', .merged = line[0] == 'm' };
		int mount, at = 0;

		line += a.restored || a.merged;
		if (sscanf(line, "%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %n", &mount, &a.ino,
			   &a.ctime_ns, &a.size, &at) != 4 ||
		    !at || mount != m->mount)
			continue;
		if (m->n == cap) {
			void *p = reallocarray(m->v, cap = cap ? 2 * cap : 64, sizeof a);

			if (!p)
				return -ENOMEM;
			m->v = p;
		}
		a.path = take_path(line + at);
		if (!a.path)
			return -ENOMEM;
		m->v[m->n++] = a;
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct applied *x = a, *y = b;
	int r = strcmp(x->path, y->path);

	return r ? r : x->ctime_ns < y->ctime_ns ? -1 : x->ctime_ns > y->ctime_ns;
}

int apply_memory_load(struct apply_memory *m, int sandbox_fd, int mount, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOST);
	int r;

	*m = (struct apply_memory){ .mount = mount };
	m->dir_fd = fcntl(sandbox_fd, F_DUPFD_CLOEXEC, 0);
	if (m->dir_fd < 0)
		return err_sys(e, errno, "open the sandbox's directory");
	r = io_read_file(m->dir_fd, "applied", &b);
	if (r == 0 && b.len)
		r = parse(m, b.data);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "read what was applied before");
	if (m->n)
		qsort(m->v, m->n, sizeof *m->v, by_path);
	return 0;
}

/* The first record of a path; more records of the path may follow. */
static size_t find(const struct apply_memory *m, const char *path)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (strcmp(m->v[mid].path, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool apply_memory_is_ours(void *ctx, const char *path, uint64_t ino, uint64_t ctime_ns,
			  uint64_t size)
{
	const struct apply_memory *m = ctx;

	for (size_t i = find(m, path); i < m->n && strcmp(m->v[i].path, path) == 0; i++)
		if (!m->v[i].merged && m->v[i].ino == ino && m->v[i].ctime_ns == ctime_ns &&
		    m->v[i].size == size)
			return true;
	return false;
}

int apply_memory_was_ours(void *ctx, const char *path)
{
	const struct apply_memory *m = ctx;
	int ours = 0;

	for (size_t i = find(m, path); i < m->n && strcmp(m->v[i].path, path) == 0; i++)
		if (!m->v[i].restored)
			ours = m->v[i].ino ? 1 : -1;
	return ours;
}

bool apply_memory_was_merged(void *ctx, const char *path)
{
	const struct apply_memory *m = ctx;
	bool merged = false;

	for (size_t i = find(m, path); i < m->n && strcmp(m->v[i].path, path) == 0; i++)
		if (!m->v[i].restored)
			merged = m->v[i].merged;
	return merged;
}

static bool is_below(const char *path, const char *const *tops, int n)
{
	for (int i = 0; i < n; i++) {
		size_t len = strlen(tops[i]);

		if (strncmp(path, tops[i], len) == 0 && (!path[len] || path[len] == '/'))
			return true;
	}
	return false;
}

int apply_memory_add_deleted(struct apply_memory *m, const struct diff_scope *s, struct diff *d,
			     struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < m->n && r == 0; i++) {
		const char *path = m->v[i].path;

		if ((i + 1 < m->n && strcmp(path, m->v[i + 1].path) == 0) ||
		    (s->npaths && !is_below(path, s->paths, s->npaths)) ||
		    is_below(path, s->skip, s->nskip) || apply_memory_was_ours(m, path) <= 0)
			continue;
		r = diff_add_deleted(d, path);
	}
	if (r == 0)
		diff_sort(d);
	return r < 0 ? err_sys(e, -r, "compare what was applied before") : 0;
}

static void base_path(const struct apply_memory *m, const char *path, char out[128])
{
	char name[SHA256_HEX];

	sha256_name(path, name);
	(void)snprintf(out, 128, "base/%d/%s", m->mount, name);
}

int apply_memory_base(void *ctx, const char *path, struct buf *ret)
{
	char name[128];

	base_path(ctx, path, name);
	return io_read_file(((struct apply_memory *)ctx)->dir_fd, name, ret) == 0;
}

int apply_memory_open_copy(void *ctx, const char *path)
{
	char name[128];
	int fd;

	base_path(ctx, path, name);
	fd = openat(((struct apply_memory *)ctx)->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A later merge starts from the applied content. */
static void keep_base(const struct apply_memory *m, const char *path, struct str text)
{
	char name[128], dir[32];

	(void)snprintf(dir, sizeof dir, "base/%d", m->mount);
	(void)io_mkdir(m->dir_fd, "base", 0700);
	(void)io_mkdir(m->dir_fd, dir, 0700);
	base_path(m, path, name);
	/* An old base would be wrong: it is not what both sides have now. */
	if (io_replace_file(m->dir_fd, "base/applied.new", name, text) < 0)
		(void)unlinkat(m->dir_fd, name, 0);
}

/* Both sides have this content now. */
static void keep_host(const struct apply_memory *m, int host_fd, const char *path)
{
	auto_done(buf_done) struct buf b = BUF_INIT(BASE_BYTES);
	auto_close int fd = stack_open_at(host_fd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);

	if (fd >= 0 && io_read_all(fd, &b) == 0)
		keep_base(m, path, buf_str(&b));
}

/*
 * If the file no longer is what was merged, keep the previous base: the next merge repeats the same
 * changes.
 */
static void keep_theirs(const struct apply_memory *m, const struct diff *d,
			const struct apply_step *s)
{
	auto_done(buf_done) struct buf b = BUF_INIT(BASE_BYTES);
	auto_close int fd = d ? diff_open_new(d, &d->v[s->entry]) : FD_NONE;
	uint8_t hash[SHA256_SIZE];

	if (fd < 0 || io_read_all(fd, &b) < 0)
		return;
	sha256(b.data, b.len, hash);
	if (memcmp(hash, s->theirs, sizeof hash) == 0)
		keep_base(m, s->path, buf_str(&b));
}

static uint64_t ctime_of(const struct stat *st)
{
	return (uint64_t)st->st_ctim.tv_sec * NS_PER_S + (uint64_t)st->st_ctim.tv_nsec;
}

/* mark: "r" for a file that was put back, "m" for a merge, or "". */
static int put_line(const struct apply_memory *m, const char *mark, const struct stat *st,
		    uint64_t when, const char *path, struct buf *b)
{
	int r = buf_printf(b, "%s%d %llu %llu %llu ", mark, m->mount,
			   (unsigned long long)st->st_ino, (unsigned long long)when,
			   (unsigned long long)st->st_size);

	if (r == 0)
		r = put_path(b, path);
	return r < 0 ? r : buf_add_c(b, "\n");
}

static int put_record(const struct apply_memory *m, const struct apply *a, const struct diff *d,
		      const struct apply_step *s, struct buf *b)
{
	const char *last;
	auto_close int dir = apply_parent(a, s->path, &last);
	struct stat st = { 0 };
	uint64_t when = clock_real_ns();

	if (s->op == APPLY_ADD || s->op == APPLY_REPLACE) {
		if (dir < 0 || fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
		when = ctime_of(&st);
		if (s->merged)
			keep_theirs(m, d, s);
		else
			keep_host(m, a->dir_fd, s->path);
	} else if (s->op != APPLY_DELETE) {
		return 0;
	}
	return put_line(m, s->merged ? "m" : "", &st, when, s->path, b);
}

/* Skips files that were to be merged: the sandbox has not seen their content. */
static int put_restored(const struct apply_memory *m, const struct apply *a, const struct diff *d,
			const struct apply_step *s, struct buf *b)
{
	const char *last;
	auto_close int dir = FD_NONE;
	struct stat st;

	(void)d;
	if ((s->op != APPLY_REPLACE && s->op != APPLY_DELETE) || s->merged)
		return 0;
	dir = apply_parent(a, s->path, &last);
	if (dir < 0 || fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_ino != s->old.ino || (uint64_t)st.st_size != s->old.size)
		return 0;
	return put_line(m, "r", &st, ctime_of(&st), s->path, b);
}

/* Write everything or nothing: a partial line would be read as a different line. */
static int add_text(int fd, struct str text)
{
	off_t size = lseek(fd, 0, SEEK_END);
	int r = size < 0 ? -errno : io_write_all(fd, text.p, text.n);

	if (r < 0 && size >= 0)
		(void)!ftruncate(fd, size);
	return r;
}

static int append(const struct apply_memory *m, const struct apply *a, const struct diff *d,
		  int (*put)(const struct apply_memory *m, const struct apply *a,
			     const struct diff *d, const struct apply_step *s, struct buf *b),
		  struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOST);
	auto_close int fd = FD_NONE;
	int r = 0;

	for (size_t i = 0; i < a->n && r == 0; i++)
		r = put(m, a, d, &a->steps[i], &b);
	if (r == 0)
		fd = openat(m->dir_fd, "applied", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (r == 0)
		r = fd < 0 ? -errno : add_text(fd, buf_str(&b));
	return r < 0 ? err_sys(e, -r, "remember what was applied") : 0;
}

int apply_memory_add(struct apply_memory *m, const struct apply *a, const struct diff *d,
		     struct err *e)
{
	if (append(m, a, d, put_record, e) == 0)
		return 0;
	return err_code(e, "apply.not_remembered", NULL);
}

int apply_memory_undone(void *ctx, const struct apply *a, struct err *e)
{
	return append(ctx, a, NULL, put_restored, e);
}
