/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers take directories from a stack, the last one first. They copy files at once and push
 * directories. A directory gets its times after all its names.
 */
#include "sys/freeze/freeze.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "sys/files/filecopy.h"
#include "sys/files/resolve.h"
#include "sys/freeze/freeze_parts.h"
#include "sys/ns/userns.h"

enum { WORKERS_MAX = 16 };

static DIR *dir_of(int fd)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		(void)close(fd);
	return d;
}

/* "" is the directory itself. */
static int open_dir(int root, const char *path)
{
	return resolve_beneath(root, path[0] ? path : ".", O_RDONLY | O_DIRECTORY, 0);
}

/* With the lock. */
static int push(struct freezing *z, const char *dir, const char *name)
{
	size_t n = strlen(dir) + strlen(name) + 2;
	char *path;

	if (n > LIMIT_PATH)
		return -ENAMETOOLONG;
	if (z->ndirs == z->room) {
		size_t room = z->room ? 2 * z->room : 256;
		char **more = reallocarray(z->dirs, room, sizeof *more);

		if (!more)
			return -ENOMEM;
		z->dirs = more;
		z->room = room;
	}
	path = malloc(n);
	if (!path)
		return -ENOMEM;
	(void)snprintf(path, n, "%s%s%s", dir, name, name[0] ? "/" : "");
	z->dirs[z->ndirs++] = path;
	(void)pthread_cond_signal(&z->more);
	return 0;
}

static int add_to_index(struct freeze_worker *w, const char *name, const struct frozen_key *key,
			bool is_dir)
{
	char path[LIMIT_PATH];
	int r = 0;

	if (snprintf(path, sizeof path, "%s%s", w->dir, name) >= LIMIT_PATH)
		return -ENAMETOOLONG;
	(void)pthread_mutex_lock(&w->z->lock);
	if (is_dir)
		r = push(w->z, w->dir, name);
	else
		r = frozen_index_add(w->z->index, path, key);
	(void)pthread_mutex_unlock(&w->z->lock);
	return r;
}

/* A directory that is a mount point stays empty in the copy. */
static int make_dir(struct freeze_worker *w, int to, const char *name, bool is_mount,
		    const struct frozen_key *key)
{
	struct frozen_key seen = *key;

	if (mkdirat(to, name, is_mount ? 0755 : 0700) < 0)
		return -errno;
	seen.nlink = 0; /* the content below the mount is unknown */
	return add_to_index(w, name, &seen, !is_mount);
}

static int copy_name(struct freeze_worker *w, int from, int to, const char *name)
{
	struct frozen_key key;
	bool is_mount;
	int r = freeze_look(from, name, &key, &is_mount);

	if (r == -EACCES) {
		freeze_note(&w->did.left_out, w->dir, name, EACCES);
		return 0;
	}
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	w->did.entries++;
	if (S_ISDIR(key.mode))
		return make_dir(w, to, name, is_mount, &key);
	if (is_mount) {
		freeze_note(&w->did.left_out, w->dir, name, EXDEV);
		return 0;
	}
	r = freeze_entry(w, from, to, name, &key);
	return r <= 0 ? r : add_to_index(w, name, &key, false);
}

/* Copies all names of one directory. *ret_settled: no name can have come or gone unnoticed. */
static int copy_names(struct freeze_worker *w, int from, int to, const struct frozen_key *before,
		      bool *ret_settled)
{
	auto_done(dir_free) DIR *d = dir_of(openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct frozen_key after;
	struct dirent *x;
	bool unused;
	int r = d ? 0 : -errno;

	while (r == 0 && (errno = 0, x = readdir(d))) {
		if (!dir_is_dots(x->d_name))
			r = copy_name(w, from, to, x->d_name);
		if (r < 0 && !w->did.where[0])
			(void)snprintf(w->did.where, sizeof w->did.where, "%.127s%.127s", w->dir,
				       x->d_name);
	}
	if (r == 0 && errno)
		r = -errno;
	if (r == 0)
		r = freeze_look(from, "", &after, &unused);
	*ret_settled = r == 0 && before->ctime_ns == after.ctime_ns;
	return r;
}

static int copy_dir(struct freeze_worker *w)
{
	auto_close int from = open_dir(w->z->f->from_fd, w->dir), to = FD_NONE;
	struct frozen_key key;
	uint64_t wait = 0;
	bool settled = false, unused;
	int r;

	if (from == -ENOENT || from == -ENOTDIR || from == -ELOOP)
		return 0; /* removed meanwhile: it stays empty */
	if (from == -EACCES || from == -EPERM) {
		freeze_note(&w->did.left_out, w->dir, "", -from);
		return 0;
	}
	to = from < 0 ? from : open_dir(w->z->to_fd, w->dir);
	if (to < 0)
		return to;
	r = freeze_look(from, "", &key, &unused);
	if (r == 0 && !freeze_is_settled(&key, &wait) && wait) {
		struct timespec t = { .tv_nsec = (long)wait };

		(void)nanosleep(&t, NULL);
		r = freeze_look(from, "", &key, &unused);
	}
	if (r == 0)
		r = copy_names(w, from, to, &key, &settled);
	if (r == 0)
		r = freeze_like(w->z->f, from, to, &key);
	if (!settled || !freeze_is_settled(&key, &wait))
		key.nlink = 0;
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&w->z->lock);
	r = frozen_index_add(w->z->index, w->dir, &key);
	(void)pthread_mutex_unlock(&w->z->lock);
	return r;
}

/* Takes the next directory into w->dir; false: there will be no more. */
static bool take_dir(struct freeze_worker *w)
{
	struct freezing *z = w->z;
	bool got;

	(void)pthread_mutex_lock(&z->lock);
	while (!z->ndirs && z->busy && !z->err)
		(void)pthread_cond_wait(&z->more, &z->lock);
	got = z->ndirs && !z->err;
	if (got) {
		char *path = z->dirs[--z->ndirs];

		(void)snprintf(w->dir, sizeof w->dir, "%s", path);
		free(path);
		z->busy++;
	}
	(void)pthread_mutex_unlock(&z->lock);
	return got;
}

static void put_back(struct freeze_worker *w, int r)
{
	struct freezing *z = w->z;

	(void)pthread_mutex_lock(&z->lock);
	z->busy--;
	if (r < 0 && !z->err) {
		z->err = r;
		(void)snprintf(z->ret->where, sizeof z->ret->where, "%.255s",
			       w->did.where[0] ? w->did.where : w->dir);
	}
	(void)pthread_cond_broadcast(&z->more);
	(void)pthread_mutex_unlock(&z->lock);
}

static void add_names(struct freeze_names *to, const struct freeze_names *more)
{
	uint64_t n = to->n + more->n;

	if (!to->n)
		*to = *more;
	to->n = n;
}

static void add_result(struct freezing *z, const struct freeze_result *did)
{
	(void)pthread_mutex_lock(&z->lock);
	z->ret->entries += did->entries;
	z->ret->copied += did->copied;
	z->ret->linked += did->linked;
	z->ret->bytes += did->bytes;
	add_names(&z->ret->left_out, &did->left_out);
	add_names(&z->ret->unsteady, &did->unsteady);
	(void)pthread_mutex_unlock(&z->lock);
}

static void *work(void *arg)
{
	struct freezing *z = arg;
	struct freeze_worker *w = calloc(1, sizeof *w);
	int r = 0;

	if (w) {
		w->z = z;
		w->clone = true;
		w->chunk = malloc(FILECOPY_CHUNK);
	}
	if (!w || !w->chunk) {
		(void)pthread_mutex_lock(&z->lock);
		z->err = -ENOMEM;
		(void)pthread_mutex_unlock(&z->lock);
		free(w);
		return NULL;
	}
	while (r == 0 && take_dir(w)) {
		r = copy_dir(w);
		put_back(w, r);
	}
	add_result(z, &w->did);
	free(w->chunk);
	free(w);
	return NULL;
}

int freeze_begin(void)
{
	(void)umask(0);
	return userns_become_root();
}

int freeze_copy(const struct freeze *f, int to_fd, struct frozen_index *index,
		struct freeze_result *ret)
{
	auto_free struct freezing *z = calloc(1, sizeof *z);
	pthread_t threads[WORKERS_MAX];
	int n = 0, r;

	*ret = (struct freeze_result){ 0 };
	if (!z)
		return -ENOMEM;
	*z = (struct freezing){ .f = f, .to_fd = to_fd, .index = index, .ret = ret };
	(void)pthread_mutex_init(&z->lock, NULL);
	(void)pthread_mutex_init(&z->twins_lock, NULL);
	(void)pthread_cond_init(&z->more, NULL);
	r = push(z, "", "");
	while (r == 0 && n < f->workers - 1 && n < WORKERS_MAX &&
	       pthread_create(&threads[n], NULL, work, z) == 0)
		n++;
	if (r == 0)
		(void)work(z);
	for (int i = 0; i < n; i++)
		(void)pthread_join(threads[i], NULL);
	while (z->ndirs)
		free(z->dirs[--z->ndirs]);
	free(z->dirs);
	twins_done(&z->twins);
	return r < 0 ? r : z->err;
}

struct comparing {
	const struct freeze *f;
	uint64_t n;
	char path[LIMIT_PATH];
	int depth;
};

static int same_dir(struct comparing *c, int fd, size_t len);

/* 1, 0 or -errno; len: length of the directory's path, with its '/'. */
static int same_name(struct comparing *c, int dir, const char *name, size_t len)
{
	struct frozen_key key;
	bool is_mount;
	size_t more = strlen(name);
	int fd, r = freeze_look(dir, name, &key, &is_mount);

	if (r < 0 || is_mount || len + more + 2 > sizeof c->path || c->depth == LIMIT_TREE_DEPTH)
		return 0;
	memcpy(c->path + len, name, more + 1);
	if (!S_ISDIR(key.mode)) {
		c->n++;
		return frozen_index_has(c->f->last, c->path, &key);
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	memcpy(c->path + len + more, "/", 2);
	c->depth++;
	r = same_dir(c, fd, len + more + 1);
	c->depth--;
	return r;
}

/* Takes fd. Directories are in the index with a '/' at the end. */
static int same_dir(struct comparing *c, int fd, size_t len)
{
	auto_done(dir_free) DIR *d = NULL;
	struct frozen_key key;
	struct dirent *x;
	bool unused;
	int r = freeze_look(fd, "", &key, &unused);

	d = dir_of(fd);
	c->path[len] = '\0';
	c->n++;
	if (!d || r < 0 || !frozen_index_has(c->f->last, c->path, &key))
		return 0;
	r = 1;
	while (r > 0 && (errno = 0, x = readdir(d)))
		if (!dir_is_dots(x->d_name))
			r = same_name(c, dirfd(d), x->d_name, len);
	return errno && r > 0 ? -errno : r;
}

int freeze_is_same(const struct freeze *f)
{
	auto_free struct comparing *c = calloc(1, sizeof *c);
	int fd = c && f->last ? open_dir(f->from_fd, "") : -ENOMEM, r;

	if (!c || !f->last)
		return c ? 0 : -ENOMEM;
	if (fd < 0)
		return fd;
	c->f = f;
	r = same_dir(c, fd, 0);
	return r > 0 ? c->n == f->last->n : r;
}
