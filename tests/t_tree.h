/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small trees for tests of layers: made in a scratch directory, and described as text. Without a
 * shell where it happens often: a test that is cut off at each of a hundred steps makes as many.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/io.h"
#include "base/sha1.h"
#include "sys/files/rmtree.h"
#include "t.h"

static char t_top[64];

static inline void t_tree_begin(void)
{
	t_scratch(t_top, sizeof t_top);
}

static inline void t_tree_end(void)
{
	char *slash = strrchr(t_top, '/');
	int fd;

	*slash = '\0';
	fd = open(t_top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && rmtree_at(fd, slash + 1) == 0);
	(void)close(fd);
}

static inline void t_sh(const char *script)
{
	char cmd[4096];

	CHECK(snprintf(cmd, sizeof cmd, "cd %s && umask 022 && set -e && %s", t_top, script) <
	      (int)sizeof cmd);
	CHECK(system(cmd) == 0);
}

static inline const char *t_path(const char *rel)
{
	static char path[512];

	CHECK(snprintf(path, sizeof path, "%s/%s", t_top, rel) < (int)sizeof path);
	return path;
}

static inline int t_open(const char *rel)
{
	int fd = open(t_path(rel), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static inline void t_whiteout(const char *rel)
{
	CHECK(mknod(t_path(rel), S_IFCHR | 0600, makedev(0, 0)) == 0);
}

struct t_node {
	char kind; /* d, f, l for a link, w for a whiteout */
	const char *path, *text;
	mode_t mode; /* 0: the usual one */
};

static inline void t_plant_one(const struct t_node *x)
{
	const char *path = t_path(x->path);
	int fd;

	if (x->kind == 'w')
		t_whiteout(x->path);
	else if (x->kind == 'l')
		CHECK(symlink(x->text, path) == 0);
	else if (x->kind == 'd')
		CHECK(mkdir(path, 0755) == 0);
	else {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		CHECK(fd >= 0 && io_write_all(fd, x->text, strlen(x->text)) == 0);
		(void)close(fd);
	}
	if (x->mode)
		CHECK(chmod(path, x->mode) == 0);
}

/* Parents come before what is in them. */
static inline void t_plant(const struct t_node *v, size_t n)
{
	mode_t was = umask(022);

	for (size_t i = 0; i < n; i++)
		t_plant_one(&v[i]);
	(void)umask(was);
}

struct t_text {
	char *p;
	size_t n, size;
};

static inline int t_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static inline void t_describe_file(const char *path, char hex[SHA1_HEX])
{
	struct buf b = BUF_INIT(1 << 20);
	struct sha1 h;

	CHECK(io_read_file(AT_FDCWD, path, &b) == 0);
	sha1_init(&h);
	sha1_add(&h, b.data, b.len);
	sha1_end(&h, hex);
	buf_done(&b);
}

/* rel: within the scratch directory. One line each: name, mode with kind, and what it holds. */
static inline void t_describe_in(const char *rel, const char *skip, struct t_text *out)
{
	struct dirent **names = NULL;
	int n = scandir(t_path(rel), &names, NULL, t_by_name);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		char sub[256], what[256] = "";
		struct stat st;
		const char *name = names[i]->d_name;

		CHECK(snprintf(sub, sizeof sub, "%s/%s", rel, name) < (int)sizeof sub);
		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, skip) != 0) {
			CHECK(lstat(t_path(sub), &st) == 0);
			if (S_ISREG(st.st_mode))
				t_describe_file(t_path(sub), what);
			if (S_ISLNK(st.st_mode))
				CHECK(readlink(t_path(sub), what, sizeof what - 1) > 0);
			out->n += (size_t)snprintf(out->p + out->n, out->size - out->n,
						   "%s %o %s\n", sub, st.st_mode, what);
			CHECK(out->n < out->size);
			if (S_ISDIR(st.st_mode))
				t_describe_in(sub, skip, out);
		}
		free(names[i]);
	}
	free(names);
}

/* Names, kinds, modes and contents of a tree, as text; all but what is called `skip`. */
static inline void t_describe(const char *rel, const char *skip, char *out, size_t size)
{
	struct t_text t = { out, 0, size };

	out[0] = '\0';
	t_describe_in(rel, skip, &t);
	CHECK(t.n > 0);
}
