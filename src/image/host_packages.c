/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_packages.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "base/io.h"
#include "base/limits.h"
#include "image/layer.h"

enum {
	LIST_MAX = 64 << 20,
	DIRS_MAX = 10000,
	SYSTEM_IDS = 1000, /* accounts of the system; others are people, who are hidden */
};

#define LISTS "/var/lib/dpkg/info"

/* Cut the next line off text. */
static bool next_line(struct str *text, struct str *ret)
{
	const char *end = text->n ? memchr(text->p, '\n', text->n) : NULL;

	if (!text->n)
		return false;
	*ret = (struct str){ text->p, end ? (size_t)(end - text->p) : text->n };
	text->p += ret->n + (end != NULL);
	text->n -= ret->n + (end != NULL);
	return true;
}

bool host_packages_path(struct str line, char *out, size_t size)
{
	const struct str top = STR("/var/");

	/* host_var.c copies the state of dpkg itself */
	if (!str_starts(line, top) || line.n == top.n || str_starts(line, STR("/var/lib/dpkg/")))
		return false;
	line.p++;
	line.n--;
	return str_copy(out, size, line) && !strstr(out, "//") && !strstr(out, "/.");
}

/* Only where the host has a directory too. Its content and its times are not copied. */
static int add_dir(int layer, const char *path, struct err *e)
{
	struct layer_attr attr = { .mode = 0755 };
	char host[LIMIT_PATH + 1] = "/";
	struct stat st;

	if (!str_copy(host + 1, sizeof host - 1, str_of(path)) || lstat(host, &st) < 0 ||
	    !S_ISDIR(st.st_mode) || fstatat(layer, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (lstat(host, &st) < 0)
		return 0;
	attr.mode = st.st_mode & 01777;
	attr.uid = st.st_uid < SYSTEM_IDS ? st.st_uid : 0;
	attr.gid = st.st_gid < SYSTEM_IDS ? st.st_gid : 0;
	if (layer_dir(layer, path, &attr, e) == 0)
		return 1;
	/* The host has a link in the place of a parent. */
	return e->sys == ENOENT ? 0 : -1;
}

static int add_list(int layer, int dir, const char *name, int *left, struct err *e)
{
	auto_done(buf_done) struct buf text = BUF_INIT(LIST_MAX);
	char path[LIMIT_PATH];
	struct str rest, line;

	if (io_read_file(dir, name, &text) < 0)
		return 0;
	rest = buf_str(&text);
	while (*left > 0 && next_line(&rest, &line)) {
		int r = host_packages_path(line, path, sizeof path) ? add_dir(layer, path, e) : 0;

		if (r < 0)
			return -1;
		*left -= r;
	}
	return 0;
}

int host_packages_make(int layer, struct err *e)
{
	auto_done(dir_free) DIR *d = dir_open_at(AT_FDCWD, LISTS);
	int r = 0, left = DIRS_MAX;
	struct dirent *de;

	while (d && r == 0 && (de = readdir(d))) {
		size_t n = strlen(de->d_name);

		if (n > 5 && strcmp(de->d_name + n - 5, ".list") == 0)
			r = add_list(layer, dirfd(d), de->d_name, &left, e);
	}
	return r;
}
