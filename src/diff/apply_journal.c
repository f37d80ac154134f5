/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: "cay-apply 2\0NONCE\0ID\0", then per step its numbers and its path, each ended by
 * NUL, then "end\0". It is written under another name and renamed, so it is complete or missing. It
 * counts only if the state directory knows it (apply_note.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/failpoint.h"
#include "base/io.h"
#include "diff/apply.h"

#define HEAD "cay-apply 2"

enum { MOST = 1 << 30, MERGED = 'R' };

int apply_journal_put(const struct apply *a, struct buf *b)
{
	int r = buf_printf(b, "%s%c%s%c%s%c", HEAD, 0, a->nonce, 0, a->id, 0);

	for (size_t i = 0; i < a->n && r == 0; i++) {
		const struct apply_step *s = &a->steps[i];

		r = buf_printf(b, "%c %llu %llu %llu %u %u %u %llu %u%c%s%c",
			       s->merged && s->op == APPLY_REPLACE ? MERGED : (char)s->op,
			       (unsigned long long)s->old.ino, (unsigned long long)s->old.size,
			       (unsigned long long)s->old.mtime_ns, s->old.mode, s->old.uid,
			       s->old.gid, (unsigned long long)s->new_ino, s->mode, 0, s->path, 0);
	}
	return r < 0 ? r : buf_printf(b, "end%c", 0);
}

int apply_journal_write(struct apply *a, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOST);
	auto_close int fd = FD_NONE;
	int r = apply_nonce_new(a);

	if (r == 0)
		r = apply_journal_put(a, &b);
	if (r == 0)
		r = apply_note_write(a, buf_str(&b));
	apply_tick(a);
	fd = openat(a->stage_fd, "journal.new", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	if (r == 0 && fd < 0)
		r = -errno;
	if (r == 0)
		r = io_write_all(fd, b.data, b.len);
	if (r == 0 && (fsync(fd) < 0 || fsync(a->stage_fd) < 0))
		r = -errno;
	apply_tick(a);
	failpoint("apply.staged");
	if (r == 0 && renameat(a->stage_fd, "journal.new", a->stage_fd, "journal") < 0)
		r = -errno;
	failpoint("apply.journal");
	if (r == 0 && fsync(a->stage_fd) < 0)
		r = -errno;
	return r < 0 ? err_sys(e, -r, "write the journal") : 0;
}

static const char *next(const char **at, const char *end)
{
	const char *p = *at;
	const char *nul = p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;

	if (!nul)
		return NULL;
	*at = nul + 1;
	return p;
}

/* The journal is in the user's directory, so its content is untrusted. */
static bool is_plain(const char *path)
{
	if (!path[0] || path[0] == '/')
		return false;
	for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
	}
	return true;
}

static int parse_step(const char *text, struct apply_step *s)
{
	unsigned long long ino, size, mtime, new_ino;
	char op, end;
	int n = sscanf(text, "%c %llu %llu %llu %u %u %u %llu %u%c", &op, &ino, &size, &mtime,
		       &s->old.mode, &s->old.uid, &s->old.gid, &new_ino, &s->mode, &end);

	/* Our plans never set other bits. */
	if (n == 9 && op == MERGED) {
		s->merged = true;
		op = APPLY_REPLACE;
	}
	if (n != 9 || !strchr("xzdarm", op) || (s->mode & ~0777u) != 0)
		return -EBADMSG;
	s->op = (enum apply_op)op;
	s->old.ino = ino;
	s->old.size = size;
	s->old.mtime_ns = mtime;
	s->new_ino = new_ino;
	return 0;
}

int apply_journal_parse(struct apply *a, struct str body)
{
	const char *at = body.p, *end = body.p + body.n, *text = next(&at, end);

	if (!text || strcmp(text, HEAD) != 0 || !(text = next(&at, end)) ||
	    !apply_nonce_take(a, text) || !(text = next(&at, end)) ||
	    !str_copy(a->id, sizeof a->id, str_of(text)))
		return -EBADMSG;
	while ((text = next(&at, end)) && strcmp(text, "end") != 0) {
		struct apply_step s = { 0 };
		const char *path = next(&at, end);
		int r = path && is_plain(path) ? parse_step(text, &s) : -EBADMSG;

		if (r == 0)
			r = apply_add_step(a, &s, path);
		if (r < 0)
			return r;
	}
	return text && at == end ? 0 : -EBADMSG;
}

/*
 * A journal that came with the directory, as a file of a repository or as a link, is not ours: only
 * the owner may read what we write.
 */
static int open_own(const struct apply *a)
{
	auto_close int fd = openat(a->stage_fd, "journal",
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ELOOP ? -EBADMSG : -errno;
	if (!S_ISREG(st.st_mode) || (st.st_mode & 0777) != 0600 || st.st_nlink != 1)
		return -EBADMSG;
	return TAKE_FD(fd);
}

static int journal_unknown(struct err *e)
{
	(void)err_set(e, ERR_NOT_ALLOWED,
		      APPLY_DIR "/journal is not known to cay's state directory; nothing was done");
	return err_code(e, "apply.foreign", APPLY_DIR);
}

int apply_journal_read(struct apply *a, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOST);
	auto_close int fd = open_own(a);
	int r = fd;

	if (r == -ENOENT)
		return 0;
	if (r >= 0)
		r = io_read_all(fd, &b);
	if (r == 0)
		r = b.len ? apply_journal_parse(a, buf_str(&b)) : -EBADMSG;
	if (r == 0 && !apply_note_check(a, buf_str(&b)))
		r = -EBADMSG;
	if (r == 0)
		return 1;
	if (r == -EBADMSG)
		return journal_unknown(e);
	return err_sys(e, -r, "read the journal in " APPLY_DIR);
}
