/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a difference into steps: what may be applied, and in which order. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"
#include "diff/apply.h"
#include "diff/apply_origin.h"
#include "diff/content.h"
#include "diff/guard.h"
#include "diff/merge.h"

const char *apply_why_text(enum apply_why why)
{
	static const char *const texts[] = {
		[APPLY_HOST_CHANGED] = "changed on the host meanwhile",
		[APPLY_HOST_DELETED] = "deleted on the host meanwhile",
		[APPLY_HOST_CREATED] = "created on the host meanwhile",
		[APPLY_SPECIAL] = "a device, socket or pipe",
		[APPLY_OTHER_FS] = "on another file system than the directory",
		[APPLY_UNREADABLE] = "cannot be read",
		[APPLY_BINARY] =
			"changed on the host meanwhile, and is no text that could be merged",
		[APPLY_RENAMING] = "a directory is being renamed in the sandbox; try again later",
		[APPLY_GUARDED] = "could make git run a command on the host",
		[APPLY_GIT_BARE] = "part of a git repository that the host does not have, and that "
				   "could make git run a command",
		[APPLY_OTHER_TOOL] = "belongs to a version control tool, and could make it run a "
				     "command on the host",
		[APPLY_GIT_LINK] = "would lead git to files elsewhere; never taken over",
		[APPLY_GIT_INDEX] = "a git index that names files of .git, or cannot be checked; "
				    "rebuild it with: git reset",
		[APPLY_OWN] = "the name of cay's own directory; never taken over",
		[APPLY_BELOW] = "was replaced by what is left out",
		[APPLY_NOT_EMPTY] = "holds files that are left out",
	};

	return texts[why];
}

void apply_init(struct apply *a, int dir_fd, int state_fd, const char *id)
{
	*a = (struct apply){ .dir_fd = dir_fd, .state_fd = state_fd, .stage_fd = FD_NONE };
	(void)str_copy(a->id, sizeof a->id, str_of(id));
}

static void free_issues(struct apply_issue *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].path);
	free(v);
}

void apply_done(struct apply *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->steps[i].path);
	free(a->steps);
	free_issues(a->refused, a->nrefused);
	free_issues(a->left_out, a->nleft_out);
	fd_close(&a->stage_fd);
	*a = (struct apply){ .stage_fd = FD_NONE, .dir_fd = FD_NONE, .state_fd = FD_NONE };
}

int apply_add_step(struct apply *a, const struct apply_step *s, const char *path)
{
	if (a->n == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 32;
		void *p = reallocarray(a->steps, cap, sizeof *a->steps);

		if (!p)
			return -ENOMEM;
		a->steps = p;
		a->cap = cap;
	}
	a->steps[a->n] = *s;
	a->steps[a->n].path = strdup(path);
	return a->steps[a->n].path ? (a->n++, 0) : -ENOMEM;
}

static int add_issue(struct apply_issue **v, size_t *n, const char *path, enum apply_why why)
{
	struct apply_issue *p = reallocarray(*v, *n + 1, sizeof *p);

	if (!p)
		return -ENOMEM;
	*v = p;
	p[*n] = (struct apply_issue){ .path = strdup(path), .why = why };
	return p[*n].path ? (++*n, 0) : -ENOMEM;
}

int apply_parent(const struct apply *a, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	auto_free char *parent = slash ? strndup(path, (size_t)(slash - path)) : strdup("");

	*ret_name = slash ? slash + 1 : path;
	if (!parent)
		return -ENOMEM;
	return stack_open_at(a->dir_fd, parent, O_PATH | O_DIRECTORY);
}

static uint64_t ns_of(struct timespec t)
{
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static struct apply_file file_of(const struct stat *st)
{
	return (struct apply_file){
		.ino = st->st_ino,
		.size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
		.mtime_ns = S_ISDIR(st->st_mode) ? 0 : ns_of(st->st_mtim),
		.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
	};
}

int apply_look(int dirfd, const char *name, struct apply_file *ret)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*ret = file_of(&st);
	return 0;
}

struct planner {
	struct apply *a;
	const struct diff *d;
	const struct apply_rules *rules;
	struct guard guard;
	const char *replaced; /* a directory whose replacement is left out; borrowed from the
				 difference */
	dev_t dev;
	struct origin *seen; /* origins of the host files at the paths of the difference, sorted */
	size_t nseen;
	bool has_seen;
	struct origin_map origins;
	char *parent; /* last parent checked */
	bool parent_same;
};

static void planner_done(struct planner *p)
{
	free(p->seen);
	free(p->parent);
	origin_map_done(&p->origins);
}
DEFINE_AUTO(struct planner, planner_done)

static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, (size_t)(slash - path)) : strdup("");
}

/*
 * The host file that a sandbox's file was copied up from. The sandbox's own layers are above those
 * of the old side.
 */
static int find_origin(struct planner *p, const struct stack_node *n, const char *path,
		       struct origin *ret)
{
	int r = 0;

	*ret = (struct origin){ 0 };
	if (p->rules->frozen)
		return 0;
	*ret = origin_of(p->d->new, n->layer, path);
	if (ret->n && !p->origins.loaded)
		r = origin_map_load(&p->origins, p->d->new, p->d->new->n - p->d->old->n);
	if (r == 0)
		*ret = origin_resolve(&p->origins, *ret);
	return r;
}

/*
 * False if the host has a different directory at the path than the sandbox saw: its files may
 * differ despite old times. A renamed directory is created again, without an origin, so an origin
 * always was at this path.
 */
static bool is_dir_same(struct planner *p, const char *path)
{
	auto_free char *parent = parent_of(path);
	struct origin was, now;
	struct stack_node n;
	auto_close int host = FD_NONE;

	if (!parent || !parent[0] || p->rules->elsewhere)
		return true;
	if (p->parent && strcmp(p->parent, parent) == 0)
		return p->parent_same;
	p->parent_same = is_dir_same(p, parent);
	free(p->parent);
	p->parent = TAKE_PTR(parent);
	if (!p->parent_same || stack_find(p->d->new, p->parent, &n) <= 0 || !S_ISDIR(n.mode))
		return p->parent_same;
	if (find_origin(p, &n, p->parent, &was) < 0)
		return p->parent_same = false;
	host = stack_open_at(p->a->dir_fd, p->parent, O_PATH | O_DIRECTORY);
	if (!was.n || host < 0)
		return true;
	now = origin_handle(host, "");
	return p->parent_same = !now.n || origin_compare(&was, &now) == 0;
}

static int see_all(struct planner *p)
{
	p->has_seen = true;
	p->seen = calloc(p->d->n + 1, sizeof *p->seen);
	if (!p->seen)
		return -ENOMEM;
	for (size_t i = 0; i < p->d->n; i++) {
		const struct diff_entry *en = &p->d->v[i];
		const char *name;
		auto_close int dir =
			S_ISREG(en->old.mode) ? apply_parent(p->a, en->path, &name) : FD_NONE;

		if (dir >= 0)
			p->seen[p->nseen++] = origin_handle(dir, name);
	}
	if (p->nseen)
		qsort(p->seen, p->nseen, sizeof *p->seen, origin_compare);
	return 0;
}

/*
 * True if a file was copied up and its origin is gone: the host has deleted it. The origin of a
 * file that the sandbox renamed is at another path of the difference. 1, 0, or -errno.
 */
static int is_gone(struct planner *p, const struct diff_entry *en)
{
	const struct apply_rules *rules = p->rules;
	auto_done(buf_done) struct buf base = BUF_INIT(64 << 20);
	int ours = rules->was_ours ? rules->was_ours(rules->ctx, en->path) : 0;
	struct origin was;
	int r = 0;

	if (ours || rules->elsewhere)
		return ours > 0;
	/* Its content was saved when the sandbox first changed it, so the file existed. */
	if (rules->base && rules->base(rules->ctx, en->path, &base) > 0)
		return 1;
	r = find_origin(p, &en->new, en->path, &was);
	if (r < 0 || !was.n || rules->renewed || en->new.nlink > 1)
		return r;
	if (!p->has_seen)
		r = see_all(p);
	if (r < 0)
		return r;
	return !p->nseen || !bsearch(&was, p->seen, p->nseen, sizeof was, origin_compare);
}

static bool is_like(int theirs, int dir, const char *name)
{
	auto_close int a = theirs;
	auto_close int b = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return a >= 0 && b >= 0 && content_same(a, b) == 1;
}

/* True if the file in another directory has the content that the sandbox saw. */
static bool is_like_old(const struct planner *p, const struct diff_entry *en, int dir,
			const char *name, const struct stat *st)
{
	if ((en->old.ctime_ns > p->rules->base_ns && !p->rules->frozen) ||
	    (st->st_mode & S_IFMT) != (en->old.mode & S_IFMT))
		return false;
	return S_ISREG(st->st_mode) && is_like(diff_open_old(p->d, en), dir, name);
}

/* Why the host file must not be replaced or removed; -1: it may be. */
static int conflict(const struct planner *p, const struct diff_entry *en, int dir, const char *name,
		    const struct stat *st)
{
	const struct apply_rules *r = p->rules;
	uint64_t ctime = ns_of(st->st_ctim);

	/* Changed names update a directory's times, so check its files one by one instead. */
	if (S_ISDIR(st->st_mode))
		return -1;
	if (r->is_ours && r->is_ours(r->ctx, en->path, st->st_ino, ctime, (uint64_t)st->st_size))
		return -1;
	if (!en->old.mode)
		return APPLY_HOST_CREATED;
	if (r->elsewhere)
		return is_like_old(p, en, dir, name, st) ? -1 : APPLY_HOST_CHANGED;
	return ctime > r->base_ns ? APPLY_HOST_CHANGED : -1;
}

static bool is_like_link(const struct planner *p, const struct diff_entry *en, int dir,
			 const char *name)
{
	auto_done(buf_done) struct buf new = BUF_INIT(LIMIT_PATH);
	char target[LIMIT_PATH];
	ssize_t n = readlinkat(dir, name, target, sizeof target);

	return n >= 0 && diff_read_link(p->d->new, &en->new, en->path, &new) == 0 &&
	       new.len == (size_t)n &&memcmp(new.data, target, new.len) == 0;
}

/* True if an earlier run already applied it. */
static bool is_done(const struct planner *p, const struct diff_entry *en, int dir, const char *name,
		    const struct stat *st)
{
	if (S_ISLNK(st->st_mode) && S_ISLNK(en->new.mode))
		return is_like_link(p, en, dir, name);
	return S_ISREG(st->st_mode) && S_ISREG(en->new.mode) &&
	       (st->st_mode & 0777) == (en->new.mode & 0777) &&
	       is_like(diff_open_new(p->d, en), dir, name);
}

/* For a file that changed on the host: -1 if it can be merged, else why it is refused. */
static int try_merge(const struct planner *p, const struct diff_entry *en, int dir,
		     const char *name, const struct stat *st)
{
	auto_done(buf_done) struct buf base = BUF_INIT(LIMIT_DIFF_TEXT);
	auto_done(buf_done) struct buf ours = BUF_INIT(LIMIT_DIFF_TEXT);
	auto_done(buf_done) struct buf theirs = BUF_INIT(LIMIT_DIFF_TEXT);
	auto_close int host = FD_NONE, box = FD_NONE;

	if (!p->rules->merge || !p->rules->base || !S_ISREG(st->st_mode) ||
	    !S_ISREG(en->new.mode) || p->rules->base(p->rules->ctx, en->path, &base) <= 0)
		return APPLY_HOST_CHANGED;
	host = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	box = diff_open_new(p->d, en);
	if (host < 0 || box < 0 || io_read_all(host, &ours) < 0 || io_read_all(box, &theirs) < 0)
		return APPLY_UNREADABLE;
	return merge_is_possible(buf_str(&base), buf_str(&ours), buf_str(&theirs)) ? -1
										   : APPLY_BINARY;
}

/* True if it was merged, and the sandbox has changed nothing since: the host's content is right. */
static bool is_merged_already(const struct planner *p, const struct diff_entry *en)
{
	const struct apply_rules *r = p->rules;
	auto_done(buf_done) struct buf merged = BUF_INIT(LIMIT_DIFF_TEXT);
	auto_done(buf_done) struct buf now = BUF_INIT(LIMIT_DIFF_TEXT);
	auto_close int fd = FD_NONE;

	if (!S_ISREG(en->new.mode) || !r->was_merged || !r->was_merged(r->ctx, en->path) ||
	    r->base(r->ctx, en->path, &merged) <= 0)
		return false;
	fd = diff_open_new(p->d, en);
	return fd >= 0 && io_read_all(fd, &now) == 0 && str_eq(buf_str(&merged), buf_str(&now));
}

/* Adds the steps of one entry. `st` is the host's file (NULL: none). */
static int add_steps(struct planner *p, const struct diff_entry *en, const struct stat *st,
		     bool merge, bool git_index)
{
	struct apply_step s = {
		.entry = (size_t)(en - p->d->v),
		.mode = en->new.mode & 0777,
		.merged = merge,
		.git_index = git_index,
	};
	bool to_dir = S_ISDIR(en->new.mode), to_file = en->new.mode && !to_dir;
	bool from_dir = st && S_ISDIR(st->st_mode), from_file = st && !from_dir;
	int r = 0;

	if (st)
		s.old = file_of(st);
	if (from_file && !to_file) {
		s.op = APPLY_DELETE;
		r = apply_add_step(p->a, &s, en->path);
	} else if (from_dir && !to_dir) {
		s.op = APPLY_RMDIR;
		r = apply_add_step(p->a, &s, en->path);
	} else if (from_dir && to_dir) {
		s.op = APPLY_CHMOD;
		return (st->st_mode & 0777) == s.mode ? 0 : apply_add_step(p->a, &s, en->path);
	}
	if (r < 0 || !en->new.mode)
		return r;
	s.op = to_dir ? APPLY_MKDIR : from_file ? APPLY_REPLACE : APPLY_ADD;
	if (s.op != APPLY_REPLACE)
		s.old.ino = 0;
	return apply_add_step(p->a, &s, en->path);
}

static int refuse(struct planner *p, const struct diff_entry *en, enum apply_why why)
{
	return add_issue(&p->a->refused, &p->a->nrefused, en->path, why);
}

static int leave_out(struct planner *p, const struct diff_entry *en, enum apply_why why)
{
	if (S_ISDIR(en->old.mode) && en->new.mode && !S_ISDIR(en->new.mode))
		p->replaced = en->path;
	return add_issue(&p->a->left_out, &p->a->nleft_out, en->path, why);
}

/* Why an entry is left out; -1: it is not. *ret_index: it is an index and was checked. */
static int why_left_out(struct planner *p, const struct diff_entry *en, bool *ret_index)
{
	size_t n = p->replaced ? strlen(p->replaced) : 0;
	int why = guard_check(&p->guard, en);

	if (why >= 0)
		return why;
	if (n && strncmp(en->path, p->replaced, n) == 0 && en->path[n] == '/')
		return APPLY_BELOW;
	*ret_index = S_ISREG(en->new.mode) && !p->rules->git_config &&
		     guard_is_index(&p->guard, en->path);
	if (*ret_index) {
		auto_close int fd = diff_open_new(p->d, en);

		if (fd < 0 || !guard_index_has_sha1(&p->guard, en->path) || !guard_index_ok(fd))
			return APPLY_GIT_INDEX;
	}
	return -1;
}

/* init/mover.c: entries there are missing at their own place, so nothing may be applied. */
static bool is_half_renamed(const char *path)
{
	static const char stage[] = ".cay-mv.";
	const char *at = strstr(path, stage);

	return at && (at == path || at[-1] == '/');
}

static int plan_entry(struct planner *p, const struct diff_entry *en)
{
	const char *name;
	auto_close int dir = apply_parent(p->a, en->path, &name);
	const mode_t m = en->new.mode;
	bool there, merge = false, index = false;
	struct stat st;
	int why, gone = 0;

	/* The host decides its own directory's mode, and owners. */
	if (!en->path[0] || (en->kind == DIFF_CHANGED && !en->content && !en->mode))
		return 0;
	if (is_half_renamed(en->path))
		return refuse(p, en, APPLY_RENAMING);
	why = why_left_out(p, en, &index);
	if (why >= 0)
		return leave_out(p, en, (enum apply_why)why);
	if (m && !S_ISREG(m) && !S_ISDIR(m) && !S_ISLNK(m))
		return refuse(p, en, APPLY_SPECIAL);
	if (en->unread)
		return refuse(p, en, APPLY_UNREADABLE);
	/*
	 * Nothing can be below a file or link that becomes a directory; that entry itself is
	 * checked.
	 */
	if (dir < 0 && dir != -ENOENT && (en->old.mode || (dir != -ENOTDIR && dir != -ELOOP)))
		return refuse(p, en, APPLY_HOST_CHANGED);
	there = dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (there && st.st_dev != p->dev)
		return refuse(p, en, APPLY_OTHER_FS);
	if (there && (p->rules->elsewhere || p->rules->frozen) && is_done(p, en, dir, name, &st))
		return 0;
	if (there && is_merged_already(p, en))
		return 0;
	if (there)
		why = conflict(p, en, dir, name, &st);
	else if (S_ISREG(m))
		gone = is_gone(p, en);
	if (gone < 0)
		return gone;
	if (gone)
		why = APPLY_HOST_DELETED;
	else if (there && why < 0 && !is_dir_same(p, en->path))
		why = APPLY_HOST_CHANGED;
	if (why == APPLY_HOST_CHANGED) {
		why = there ? try_merge(p, en, dir, name, &st) : why;
		merge = why < 0;
	}
	if (why >= 0)
		return refuse(p, en, why);
	return add_steps(p, en, there ? &st : NULL, merge, index);
}

static int rank(enum apply_op op)
{
	static const char order[] = { APPLY_DELETE, APPLY_RMDIR,   APPLY_MKDIR,
				      APPLY_ADD,    APPLY_REPLACE, APPLY_CHMOD };

	return (int)((const char *)memchr(order, (int)op, sizeof order) - order);
}

static int by_order(const void *a, const void *b)
{
	const struct apply_step *x = a, *y = b;

	if (x->op != y->op)
		return rank(x->op) - rank(y->op);
	/* Remove from the inside out; do the rest from the outside in. */
	return x->op == APPLY_RMDIR ? strcmp(y->path, x->path) : strcmp(x->path, y->path);
}

/* Keep a directory that contains an entry that is left out. */
static int keep_parents(struct apply *a)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < a->n; i++) {
		struct apply_step *s = &a->steps[i];
		size_t n = strlen(s->path);
		bool holds = false;

		for (size_t k = 0; s->op == APPLY_RMDIR && k < a->nleft_out; k++)
			holds |= strncmp(a->left_out[k].path, s->path, n) == 0 &&
				 a->left_out[k].path[n] == '/';
		if (holds) {
			r = add_issue(&a->left_out, &a->nleft_out, s->path, APPLY_NOT_EMPTY);
			free(s->path);
			if (r < 0)
				return r;
			continue;
		}
		a->steps[kept++] = *s;
	}
	a->n = kept;
	return 0;
}

int apply_plan(struct apply *a, const struct diff *d, const struct apply_rules *rules,
	       struct err *e)
{
	auto_done(planner_done) struct planner p = {
		.a = a,
		.d = d,
		.rules = rules,
		.guard = { a->dir_fd, d, rules->git_config },
	};
	struct stat st;
	int r = 0;

	if (fstat(a->dir_fd, &st) < 0)
		return err_sys(e, errno, "look at the directory");
	p.dev = st.st_dev;
	for (size_t i = 0; i < d->n && r == 0; i++)
		r = plan_entry(&p, &d->v[i]);
	if (r == 0)
		r = keep_parents(a);
	if (r < 0)
		return err_sys(e, -r, "plan the changes");
	if (a->n)
		qsort(a->steps, a->n, sizeof *a->steps, by_order);
	return 0;
}
