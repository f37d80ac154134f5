/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/limits.h"
#include "sys/files/attrs.h"
#include "warden/changes/changes_list.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* O_NONBLOCK: a name that has become a pipe meanwhile must not block us. */
#define FILE_FLAGS     (O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
#define IS(mode, type) (((mode)&S_IFMT) == (type))

enum { COMPARE_CHUNK = 16 * 1024 };

void changes_tree_init(struct changes_tree *t)
{
	*t = (struct changes_tree){
		.text = BUF_INIT(LIMIT_WALK_TEXT),
		.path = BUF_INIT((size_t)LIMIT_WALK_DEPTH * 256),
	};
}

static void close_frame(struct changes_frame *f)
{
	fd_close(&f->fd);
	fd_close(&f->lower_fd);
	if (f->lower == LOWER_OPEN)
		f->lower = LOWER_UNKNOWN;
}

void changes_tree_done(struct changes_tree *t)
{
	for (uint32_t i = 0; i < t->nframes; i++)
		close_frame(&t->frames[i]);
	free(t->frames);
	free(t->names);
	buf_done(&t->text);
	buf_done(&t->path);
	t->frames = NULL;
	t->names = NULL;
	t->nframes = t->nnames = 0;
}

static uint64_t ns_of(struct statx_timestamp s)
{
	return (uint64_t)s.tv_sec * NS_PER_S + s.tv_nsec;
}

static int stat_at(int fd, const char *name, struct statx *ret)
{
	int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (name[0] ? 0 : AT_EMPTY_PATH);
	long r = syscall(SYS_statx, fd, name, flags, STATX_BASIC_STATS | STATX_BTIME, ret);

	return r < 0 ? -errno : 0;
}

static struct changes_rec rec_of(const struct statx *s)
{
	return (struct changes_rec){
		.ino = s->stx_ino,
		.btime_ns = s->stx_mask & STATX_BTIME ? ns_of(s->stx_btime) : 0,
		.ctime_ns = ns_of(s->stx_ctime),
		.mtime_ns = ns_of(s->stx_mtime),
		.size = s->stx_size,
		.mode = s->stx_mode,
	};
}

static bool is_whiteout(const struct statx *s)
{
	return IS(s->stx_mode, S_IFCHR) && s->stx_rdev_major == 0 && s->stx_rdev_minor == 0;
}

/* The first byte of an overlay xattr, 0 if it is empty, or -1 if there is none. */
static int overlay_xattr(const struct changes_tree *t, int fd, const char *name)
{
	char full[64], value[8] = "";

	(void)snprintf(full, sizeof full, "%s%s", attrs_overlay_prefix(t->root.privileged), name);
	/* -ERANGE: the xattr exists and is longer than any known value. */
	if (fgetxattr(fd, full, value, sizeof value) >= 0 || errno == ERANGE)
		return value[0];
	return -1;
}

static bool has_whiteout_xattr(const struct changes_tree *t, int dirfd, const char *name)
{
	auto_close int fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char link[32], full[64];

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	(void)snprintf(full, sizeof full, "%swhiteout", attrs_overlay_prefix(t->root.privileged));
	return fd >= 0 && getxattr(link, full, NULL, 0) >= 0;
}

bool changes_tree_is_copy(const struct changes_tree *t, const struct changes_node *node)
{
	return overlay_xattr(t, node->fd, "origin") >= 0;
}

static uint32_t dir_flags(const struct changes_tree *t, int fd)
{
	int opaque = overlay_xattr(t, fd, "opaque");

	return opaque == 'y' ? CHANGES_OPAQUE : opaque == 'x' ? CHANGES_XWHITEOUTS : 0;
}

int changes_tree_root(struct changes_tree *t, const struct changes_root *root,
		      struct changes_node *ret)
{
	auto_close int fd = openat(root->upper_fd, ".", DIR_FLAGS);
	struct statx s = { 0 };
	int r = fd < 0 ? -errno : stat_at(fd, "", &s);

	if (r < 0)
		return r;
	t->root = *root;
	t->lowest_open = 1;
	*ret = (struct changes_node){ .rec = rec_of(&s), .name = STR("") };
	ret->dev_major = s.stx_dev_major;
	ret->dev_minor = s.stx_dev_minor;
	ret->fd = TAKE_FD(fd);
	return 0;
}

struct str changes_tree_peek(const struct changes_tree *t)
{
	const struct changes_frame *f = changes_tree_top(t);
	const struct changes_name *n;

	if (f->next >= t->nnames)
		return STR_NONE;
	n = &t->names[f->next];
	return (struct str){ t->text.data + n->off, n->len };
}

/*
 * Open first, then stat the descriptor, so that both concern the same directory. A directory that
 * cannot be opened is still examined. 1, 0 if it is no longer a directory, -errno.
 */
static int look_dir(int dirfd, const char *name, struct changes_node *ret, struct statx *s)
{
	auto_close int fd = openat(dirfd, name, DIR_FLAGS);
	int r;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return -errno;
	r = fd < 0 ? stat_at(dirfd, name, s) : stat_at(fd, "", s);
	if (r < 0 || !IS(s->stx_mode, S_IFDIR))
		return r == -ENOMEM ? r : 0;
	ret->fd = TAKE_FD(fd);
	return 1;
}

static bool is_same_dir(const struct changes_rec *old, const struct changes_rec *now)
{
	return IS(old->mode, S_IFDIR) && old->ino == now->ino && old->ctime_ns == now->ctime_ns;
}

/* Entries of a directory that can be neither opened nor searched count as vanished. */
int changes_tree_look(struct changes_tree *t, const struct changes_rec *old,
		      struct changes_node *ret)
{
	struct changes_frame *f = changes_tree_top(t);
	const struct changes_name *n = &t->names[f->next++];
	const char *name = t->text.data + n->off;
	struct statx s = { 0 };
	int r = 0;

	*ret = (struct changes_node){ .fd = FD_NONE, .name = { name, n->len } };
	if (n->type != DT_DIR)
		r = stat_at(f->fd, name, &s);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (n->type == DT_DIR || IS(s.stx_mode, S_IFDIR)) {
		r = look_dir(f->fd, name, ret, &s);
		if (r <= 0)
			return r;
	}
	ret->rec = rec_of(&s);
	ret->dev_major = s.stx_dev_major;
	ret->dev_minor = s.stx_dev_minor;
	if (is_whiteout(&s) || (f->flags & CHANGES_XWHITEOUTS && IS(s.stx_mode, S_IFREG) &&
				s.stx_size == 0 && has_whiteout_xattr(t, f->fd, name)))
		/* Many whiteouts can share one inode, so its numbers say nothing about this one. */
		ret->rec = (struct changes_rec){ .mode = S_IFCHR, .flags = CHANGES_WHITEOUT };
	else if (IS(s.stx_mode, S_IFDIR) && old && is_same_dir(old, &ret->rec))
		ret->rec.flags = old->flags;
	else if (ret->fd >= 0)
		ret->rec.flags = dir_flags(t, ret->fd);
	ret->rec.depth = t->nframes;
	ret->rec.name_len = n->len;
	return 1;
}

static int grow_frames(struct changes_tree *t)
{
	uint32_t cap = t->cap_frames ? 2 * t->cap_frames : 16;
	void *p;

	if (t->nframes < t->cap_frames)
		return 0;
	p = realloc(t->frames, cap * sizeof *t->frames);
	if (!p)
		return -ENOMEM;
	t->frames = p;
	t->cap_frames = cap;
	return 0;
}

static int add_path(struct changes_tree *t, struct str name)
{
	int r = t->path.len && name.n ? buf_add_c(&t->path, "/") : 0;

	return r < 0 ? r : buf_add_str(&t->path, name);
}

static struct changes_frame frame_of(const struct changes_tree *t, const struct changes_node *node)
{
	bool up_none = t->nframes ? changes_tree_top(t)->lower == LOWER_NONE : t->root.lower_fd < 0;
	bool none = up_none || node->rec.flags & CHANGES_OPAQUE;

	return (struct changes_frame){
		.fd = FD_NONE,
		.lower_fd = FD_NONE,
		.lower = none ? LOWER_NONE : LOWER_UNKNOWN,
		.dev_major = node->dev_major,
		.dev_minor = node->dev_minor,
		.ino = node->rec.ino,
		.flags = node->rec.flags,
		.first = t->nnames,
		.next = t->nnames,
		.text = (uint32_t)t->text.len,
		.path = (uint32_t)t->path.len,
		.name = (uint32_t)(t->path.len + (t->path.len && node->name.n)),
	};
}

int changes_tree_push(struct changes_tree *t, struct changes_node *node)
{
	struct changes_frame f = frame_of(t, node);
	auto_close int fd = TAKE_FD(node->fd);
	int r = fd < 0 || t->nframes == LIMIT_WALK_DEPTH ? -EACCES : add_path(t, node->name);

	if (r == 0)
		r = changes_list(t, fd);
	if (r == 0)
		r = grow_frames(t);
	if (r < 0) {
		t->path.len = f.path;
		t->unlisted += r != -ENOMEM;
		return r == -ENOMEM ? r : 0;
	}
	f.fd = TAKE_FD(fd);
	t->frames[t->nframes++] = f;
	if (t->nframes - t->lowest_open > CHANGES_OPEN)
		close_frame(&t->frames[t->lowest_open++]);
	return 1;
}

/* Takes fd if it is the frame's directory. */
static bool adopt(struct changes_frame *f, int fd)
{
	struct statx s = { 0 };

	if (fd < 0)
		return false;
	if (stat_at(fd, "", &s) == 0 && s.stx_ino == f->ino && s.stx_dev_major == f->dev_major &&
	    s.stx_dev_minor == f->dev_minor) {
		f->fd = fd;
		return true;
	}
	(void)close(fd);
	return false;
}

/* Mark the frame and all frames within it: they are no longer where they were listed. */
static void bury(struct changes_tree *t, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i <= to; i++) {
		close_frame(&t->frames[i]);
		t->frames[i].dead = true;
		t->frames[i].next = t->frames[i + 1].first;
	}
}

/* Reopen frame `to` by name from the top. */
static void descend(struct changes_tree *t, uint32_t to)
{
	for (uint32_t i = 1; i <= to; i++) {
		struct changes_frame *f = &t->frames[i];
		char *name = t->path.data + f->name, *end = t->path.data + t->frames[i + 1].path;
		char saved = *end;
		bool ok;

		*end = '\0';
		ok = adopt(f, openat(t->frames[i - 1].fd, name, DIR_FLAGS));
		*end = saved;
		if (i > 1)
			close_frame(&t->frames[i - 1]);
		if (!ok) {
			bury(t, i, to);
			return;
		}
	}
}

void changes_tree_pop(struct changes_tree *t)
{
	struct changes_frame *f = changes_tree_top(t);
	uint32_t up = t->nframes - 2;

	if (t->nframes > 1 && !f[-1].dead && f[-1].fd < 0) {
		if (f->fd < 0 || !adopt(&f[-1], openat(f->fd, "..", DIR_FLAGS)))
			descend(t, up);
		t->lowest_open = up;
	}
	close_frame(f);
	t->nnames = f->first;
	t->text.len = f->text;
	t->path.len = f->path;
	t->nframes--;
}

static int open_beneath(int dirfd, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how);
}

/*
 * The innermost directory in the lower. Opened by path, because most directories never need it. A
 * directory whose path is too long for openat2 counts as missing.
 */
static int lower_dir(struct changes_tree *t, struct changes_frame *f)
{
	if (f->lower == LOWER_NONE || t->nframes == 1)
		return f->lower == LOWER_NONE ? FD_NONE : t->root.lower_fd;
	if (f->lower == LOWER_OPEN)
		return f->lower_fd;
	t->path.data[t->path.len] = '\0';
	f->lower_fd = open_beneath(t->root.lower_fd, t->path.data);
	f->lower = f->lower_fd < 0 ? LOWER_NONE : LOWER_OPEN;
	return f->lower_fd;
}

/* True if a directory on the path to the innermost one hides the layers below this one. */
static bool is_opaque_on_way(struct changes_tree *t, int layer_fd)
{
	char *path = t->path.data;
	bool opaque = false;

	for (size_t i = 0; i <= t->path.len && !opaque; i++) {
		auto_close int fd = FD_NONE;
		char was = path[i];

		if (was != '/' && was != '\0')
			continue;
		path[i] = '\0';
		fd = open_beneath(layer_fd, i ? path : ".");
		opaque = fd >= 0 && attrs_is_opaque(fd, t->root.privileged);
		path[i] = was;
	}
	return opaque;
}

/* Find the topmost layer with this name in the innermost directory; *own: descriptor to close. */
static int dir_below(struct changes_tree *t, const char *name, int *own)
{
	struct statx s = { 0 };

	for (int i = 0; i < t->root.nlayers && changes_tree_top(t)->lower != LOWER_NONE; i++) {
		if (buf_reserve(&t->path, 1) < 0)
			return FD_NONE;
		t->path.data[t->path.len] = '\0';
		*own = open_beneath(t->root.layers[i], t->path.len ? t->path.data : ".");
		if (*own < 0 && errno == ENOENT)
			continue;
		if (*own < 0 || stat_at(*own, name, &s) == 0)
			return *own;
		fd_close(own);
		if (is_opaque_on_way(t, t->root.layers[i]))
			return FD_NONE;
	}
	return lower_dir(t, changes_tree_top(t));
}

int changes_tree_lower(struct changes_tree *t, struct str name, struct changes_rec *ret)
{
	auto_close int own = FD_NONE;
	int fd = dir_below(t, name.p, &own);
	struct statx s = { 0 };

	if (fd < 0 || stat_at(fd, name.p, &s) < 0 || is_whiteout(&s))
		return 0;
	*ret = rec_of(&s);
	return 1;
}

int changes_tree_open_lower(struct changes_tree *t, struct str name)
{
	int dir = lower_dir(t, changes_tree_top(t));

	return dir < 0 ? FD_NONE : openat(dir, name.p, FILE_FLAGS);
}

static enum changes_content compare_links(int upper, int lower, const char *name)
{
	char a[PATH_MAX], b[PATH_MAX];
	ssize_t na = readlinkat(upper, name, a, sizeof a),
		nb = readlinkat(lower, name, b, sizeof b);

	if (na < 0 || nb < 0)
		return CONTENT_UNKNOWN;
	return na == nb && memcmp(a, b, (size_t)na) == 0 ? CONTENT_SAME : CONTENT_OTHER;
}

static int open_file(int dirfd, const char *name, uint64_t size)
{
	auto_close int fd = openat(dirfd, name, FILE_FLAGS);
	struct statx s = { 0 };

	if (fd < 0 || stat_at(fd, "", &s) < 0 || !IS(s.stx_mode, S_IFREG) || s.stx_size != size)
		return FD_NONE;
	return TAKE_FD(fd);
}

/* If one file grows while it is read, the comparison ends with the other file. */
static enum changes_content compare_files(int upper, int lower)
{
	auto_free char *a = malloc(2 * COMPARE_CHUNK);
	off_t at = 0;

	if (!a)
		return CONTENT_UNKNOWN;
	for (;;) {
		ssize_t na = pread(upper, a, COMPARE_CHUNK, at);
		ssize_t nb = pread(lower, a + COMPARE_CHUNK, COMPARE_CHUNK, at);

		if (na < 0 || nb < 0)
			return CONTENT_UNKNOWN;
		if (na != nb || memcmp(a, a + COMPARE_CHUNK, (size_t)na) != 0)
			return CONTENT_OTHER;
		if (na == 0)
			return CONTENT_SAME;
		at += na;
	}
}

enum changes_content changes_compare_at(int upper_dir, int lower_dir, const char *name,
					uint32_t mode, uint64_t size, uint64_t *compared)
{
	auto_close int upper = FD_NONE, lower = FD_NONE;

	if (upper_dir < 0 || lower_dir < 0)
		return CONTENT_UNKNOWN;
	if (IS(mode, S_IFLNK))
		return compare_links(upper_dir, lower_dir, name);
	if (!IS(mode, S_IFREG) || size > CHANGES_COMPARE_FILE ||
	    size > CHANGES_COMPARE_WALK - *compared)
		return CONTENT_UNKNOWN;
	upper = open_file(upper_dir, name, size);
	lower = upper < 0 ? FD_NONE : open_file(lower_dir, name, size);
	if (lower < 0)
		return CONTENT_UNKNOWN;
	*compared += size;
	return compare_files(upper, lower);
}

enum changes_content changes_tree_compare(struct changes_tree *t, const struct changes_node *node)
{
	auto_close int own = FD_NONE;
	int dir = dir_below(t, node->name.p, &own);

	return changes_compare_at(changes_tree_top(t)->fd, dir, node->name.p, node->rec.mode,
				  node->rec.size, &t->compared);
}

uint64_t changes_tree_ctime(const struct changes_tree *t)
{
	struct statx s = { 0 };

	if (changes_tree_top(t)->fd < 0 || stat_at(changes_tree_top(t)->fd, "", &s) < 0)
		return clock_real_ns();
	return ns_of(s.stx_ctime);
}
