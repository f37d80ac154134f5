/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out and undoes steps. The inodes show whether a step is done. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/failpoint.h"
#include "diff/apply.h"
#include "sys/files/rmtree.h"
#include "sys/process/raw.h"

/* An opened step: its directory, and the names on both sides. */
struct place {
	const struct apply *a;
	const struct apply_step *s;
	int dir;
	const char *name;
	char new[40], old[40]; /* below the stage */
};

void apply_tick(struct apply *a)
{
	if (a->before)
		a->before(a->ctx, a->count++);
}

static int place_open(const struct apply *a, size_t i, struct place *ret)
{
	*ret = (struct place){ .a = a, .s = &a->steps[i] };
	apply_stage_name(ret->new, 'n', i);
	apply_stage_name(ret->old, 'o', i);
	ret->dir = apply_parent(a, a->steps[i].path, &ret->name);
	return ret->dir < 0 ? ret->dir : 0;
}

static void place_done(struct place *p)
{
	fd_close(&p->dir);
}
DEFINE_AUTO(struct place, place_done)

static bool is_same(const struct apply_file *a, const struct apply_file *b)
{
	return a->ino == b->ino && a->size == b->size && a->mtime_ns == b->mtime_ns;
}

/* True if the staged name has this inode. */
static bool has_ino(const struct apply *a, const char *name, uint64_t ino)
{
	struct apply_file f;

	return apply_look(a->stage_fd, name, &f) == 0 && f.ino == ino;
}

static int move(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	failpoint("apply.moving");
	return raw_renameat2(from_dir, from, to_dir, to, flags) < 0 ? -errno : 0;
}

static int do_replace(const struct place *p)
{
	const struct apply *a = p->a;
	struct apply_file old;
	int r;

	if (!has_ino(a, p->new, p->s->new_ino))
		return 0; /* already exchanged */
	r = move(a->stage_fd, p->new, p->dir, p->name, RAW_RENAME_EXCHANGE);
	if (r < 0)
		return r;
	r = apply_look(a->stage_fd, p->new, &old);
	if (r == 0 && is_same(&old, &p->s->old))
		return 0;
	(void)move(a->stage_fd, p->new, p->dir, p->name, RAW_RENAME_EXCHANGE);
	return -ESTALE;
}

static int do_delete(const struct place *p)
{
	const struct apply *a = p->a;
	struct apply_file old;
	int r = move(p->dir, p->name, a->stage_fd, p->old, RAW_RENAME_NOREPLACE);

	/* Already moved away; the present entry belongs to a later step. */
	if (r == -EEXIST || r == -ENOENT)
		return has_ino(a, p->old, p->s->old.ino) ? 0 : -ESTALE;
	if (r < 0)
		return r;
	r = apply_look(a->stage_fd, p->old, &old);
	if (r == 0 && is_same(&old, &p->s->old))
		return 0;
	(void)move(a->stage_fd, p->old, p->dir, p->name, RAW_RENAME_NOREPLACE);
	return -ESTALE;
}

static int do_add(const struct place *p)
{
	struct apply_file f;

	if (!has_ino(p->a, p->new, p->s->new_ino))
		return apply_look(p->dir, p->name, &f) == 0 && f.ino == p->s->new_ino ? 0 : -ESTALE;
	return move(p->a->stage_fd, p->new, p->dir, p->name, RAW_RENAME_NOREPLACE);
}

/* ino: the expected directory; 0: one that we have just made. */
static int set_mode(const struct place *p, uint32_t mode, uint64_t ino)
{
	auto_close int fd =
		openat(p->dir, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (ino && st.st_ino != ino)
		return -ESTALE;
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int do_mkdir(const struct place *p)
{
	struct stat st;
	int r = mkdirat(p->dir, p->name, 0700) < 0 ? -errno : 0;

	if (r == -EEXIST && fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode))
		r = 0;
	if (r == 0 && geteuid() == 0 && fstat(p->dir, &st) == 0 &&
	    fchownat(p->dir, p->name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	return r < 0 ? r : set_mode(p, p->s->mode | 0700, 0);
}

static int do_rmdir(const struct place *p)
{
	return unlinkat(p->dir, p->name, AT_REMOVEDIR) < 0 && errno != ENOENT && errno != ENOTDIR
		       ? -errno
		       : 0;
}

static int do_step(const struct place *p)
{
	switch (p->s->op) {
	case APPLY_DELETE:
		return do_delete(p);
	case APPLY_RMDIR:
		return do_rmdir(p);
	case APPLY_MKDIR:
		return do_mkdir(p);
	case APPLY_ADD:
		return do_add(p);
	case APPLY_REPLACE:
		return do_replace(p);
	case APPLY_CHMOD:
		return set_mode(p, p->s->mode, p->s->old.ino);
	}
	return -EINVAL;
}

static int undo_replace(const struct place *p)
{
	struct apply_file f;

	if (has_ino(p->a, p->new, p->s->new_ino))
		return 0; /* never exchanged */
	if (apply_look(p->dir, p->name, &f) < 0 || f.ino != p->s->new_ino ||
	    !has_ino(p->a, p->new, p->s->old.ino))
		return -ESTALE; /* another process put a different file there, or into the stage */
	return move(p->a->stage_fd, p->new, p->dir, p->name, RAW_RENAME_EXCHANGE);
}

static int undo_add(const struct place *p)
{
	struct apply_file f;

	if (has_ino(p->a, p->new, p->s->new_ino))
		return 0;
	if (apply_look(p->dir, p->name, &f) < 0 || f.ino != p->s->new_ino)
		return -ESTALE;
	return move(p->dir, p->name, p->a->stage_fd, p->new, RAW_RENAME_NOREPLACE);
}

static int undo_delete(const struct place *p)
{
	struct apply_file f;

	if (apply_look(p->a->stage_fd, p->old, &f) < 0)
		return 0;
	if (f.ino != p->s->old.ino)
		return -ESTALE;
	return move(p->a->stage_fd, p->old, p->dir, p->name, RAW_RENAME_NOREPLACE);
}

static int undo_rmdir(const struct place *p)
{
	if (mkdirat(p->dir, p->name, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (geteuid() == 0 &&
	    fchownat(p->dir, p->name, p->s->old.uid, p->s->old.gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return set_mode(p, p->s->old.mode & 07777, 0);
}

static int undo_step(const struct place *p)
{
	switch (p->s->op) {
	case APPLY_DELETE:
		return undo_delete(p);
	case APPLY_RMDIR:
		return undo_rmdir(p);
	case APPLY_MKDIR:
		/* Keep what the user has put there meanwhile. */
		return unlinkat(p->dir, p->name, AT_REMOVEDIR) < 0 && errno != ENOENT &&
				       errno != ENOTDIR && errno != ENOTEMPTY
			       ? -errno
			       : 0;
	case APPLY_ADD:
		return undo_add(p);
	case APPLY_REPLACE:
		return undo_replace(p);
	case APPLY_CHMOD:
		return set_mode(p, p->s->old.mode & 07777, p->s->old.ino);
	}
	return -EINVAL;
}

static int fail(struct err *e, int r, const char *path)
{
	if (r == -ESTALE || r == -EEXIST || r == -ENOTEMPTY || r == -ELOOP)
		return err_set(e, ERR_CONFLICT, "'%.300s' changed on the host just now", path);
	return err_sys(e, -r, "change '%.300s'", path);
}

/* Runs the steps in order. *ret_done: how many were started, complete or partial. */
static int commit(struct apply *a, size_t *ret_done, struct err *e)
{
	for (size_t i = 0; i < a->n; i++) {
		auto_done(place_done) struct place p;
		int r = place_open(a, i, &p);

		apply_tick(a);
		*ret_done = i + 1;
		/* Below a directory that an earlier run has removed or replaced already. */
		if ((r == -ENOENT || r == -ENOTDIR) &&
		    (a->steps[i].op == APPLY_DELETE || a->steps[i].op == APPLY_RMDIR))
			continue;
		if (r == 0)
			r = do_step(&p);
		if (r < 0)
			return fail(e, r, a->steps[i].path);
	}
	return 0;
}

/* True if the stage holds a host file, which must not be lost with the stage. */
static bool is_half_done(const struct place *p)
{
	struct apply_file f;

	if (p->s->op == APPLY_REPLACE)
		return !has_ino(p->a, p->new, p->s->new_ino);
	return p->s->op == APPLY_DELETE && apply_look(p->a->stage_fd, p->old, &f) == 0;
}

static int undo(struct apply *a, size_t n, struct err *e)
{
	for (size_t i = n; i-- > 0;) {
		auto_done(place_done) struct place p;
		int r = place_open(a, i, &p);

		apply_tick(a);
		/* Its directory was never made. */
		if ((r == -ENOENT || r == -ENOTDIR) && !is_half_done(&p))
			continue;
		if (r == 0)
			r = undo_step(&p);
		if (r < 0)
			return fail(e, r, a->steps[i].path);
	}
	return 0;
}

/*
 * Without a journal the rest is garbage. If some of it cannot be removed now, the next run removes
 * it. That is no reason to report a completed run as failed.
 */
static int clean(struct apply *a, struct err *e)
{
	apply_tick(a);
	if (a->dir_fd >= 0 && syncfs(a->dir_fd) < 0)
		return err_sys(e, errno, "sync the directory");
	failpoint("apply.synced");
	if (unlinkat(a->stage_fd, "journal", 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "remove the journal");
	apply_tick(a);
	failpoint("apply.done");
	apply_note_drop(a);
	fd_close(&a->stage_fd);
	(void)rmtree_at(a->dir_fd, APPLY_DIR);
	return 0;
}

/* Without the journal we can no longer tell what was moved. */
static int clean_undone(struct apply *a, struct err *e)
{
	if (a->undone && a->undone(a->undone_ctx, a, e) < 0)
		return -1;
	return clean(a, e);
}

static int open_stage(struct apply *a)
{
	if (mkdirat(a->dir_fd, APPLY_DIR, 0700) < 0 && errno != EEXIST)
		return -errno;
	a->stage_fd = openat(a->dir_fd, APPLY_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return a->stage_fd < 0 ? -errno : 0;
}

int apply_lock(struct apply *a, struct err *e)
{
	struct stat st, there;
	int r = open_stage(a);

	if (r < 0)
		return err_sys(e, -r, "make " APPLY_DIR);
	if (flock(a->stage_fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(e, ERR_CONFLICT, "another cay apply is at work in this directory");
	/* A run that just ended removed the directory that we opened. */
	if (fstat(a->stage_fd, &st) < 0 ||
	    fstatat(a->dir_fd, APPLY_DIR, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_ino != there.st_ino)
		return err_set(e, ERR_CONFLICT, "another cay apply was at work; try again");
	if (st.st_uid != geteuid()) {
		(void)err_set(e, ERR_NOT_ALLOWED, APPLY_DIR " belongs to uid %u, not to you",
			      st.st_uid);
		return err_code(e, "apply.locked", APPLY_DIR);
	}
	r = apply_journal_read(a, e);
	if (r < 0)
		return -1;
	a->has_journal = r > 0;
	return 0;
}

/*
 * Removes leftovers of a run without a journal. After a run with a journal, the stage may hold the
 * only copy of host files. The removed directory stays locked: a process that has it open notices
 * that it was replaced.
 */
static int empty_stage(struct apply *a, struct err *e)
{
	int r;

	if (apply_lock(a, e) < 0)
		return -1;
	if (a->has_journal) {
		(void)err_set(e, ERR_CONFLICT, "a cay apply was cut off in this directory");
		return err_code(e, "apply.unfinished", NULL);
	}
	r = rmtree_at(a->dir_fd, APPLY_DIR);
	fd_close(&a->stage_fd);
	if (r < 0)
		return err_sys(e, -r, "remove " APPLY_DIR);
	return apply_lock(a, e);
}

int apply_run(struct apply *a, const struct diff *d, const struct apply_rules *rules, struct err *e)
{
	struct err why;
	size_t done = 0;

	if (empty_stage(a, e) < 0)
		return -1;
	if (apply_stage(a, d, rules, e) < 0 || apply_journal_write(a, e) < 0) {
		(void)clean(a, &why);
		return -1;
	}
	if (commit(a, &done, e) == 0)
		return clean(a, e);
	if (undo(a, done, &why) < 0) {
		struct err first = *e;

		(void)snprintf(e->msg, sizeof e->msg, "%.200s; then undoing it failed: %.200s",
			       first.msg, why.msg);
		return err_code(e, "apply.not_undone", NULL);
	}
	(void)clean_undone(a, &why);
	return err_code(e, "apply.undone", NULL);
}

int apply_resume(struct apply *a, struct err *e)
{
	size_t done = 0;

	if (commit(a, &done, e) < 0)
		return err_code(e, "apply.not_resumed", NULL);
	return clean(a, e);
}

int apply_undo(struct apply *a, struct err *e)
{
	return undo(a, a->n, e) < 0 ? -1 : clean_undone(a, e);
}
