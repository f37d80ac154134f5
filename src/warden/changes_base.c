/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes_base.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "warden/changes_tree.h"

enum { FILES = 4096, BYTES = 64 << 20, FILE_BYTES = 1 << 20 };

static int open_new(const struct changes_base *b, const char *path, char name[128])
{
	char hash[SHA256_HEX], dir[32];

	sha256_name(path, hash);
	(void)snprintf(dir, sizeof dir, "base/%d", b->mount);
	(void)snprintf(name, 128, "%s/%s", dir, hash);
	if (b->files == 0 &&
	    (io_mkdir(b->dirfd, "base", 0700) < 0 || io_mkdir(b->dirfd, dir, 0700) < 0))
		return FD_NONE;
	return openat(b->dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static bool is_wanted(const struct changes_base *b, int fd)
{
	struct stat st;

	return b->files < FILES && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size <= FILE_BYTES && b->bytes + (uint64_t)st.st_size <= BYTES &&
	       (uint64_t)st.st_ctim.tv_sec * NS_PER_S + (uint64_t)st.st_ctim.tv_nsec <= b->made_ns;
}

void changes_base_save(struct changes_tree *t, struct str name)
{
	struct changes_base *b = t->root.base;
	auto_done(buf_done) struct buf path = BUF_INIT((size_t)LIMIT_WALK_DEPTH * 256);
	auto_done(buf_done) struct buf text = BUF_INIT(FILE_BYTES);
	auto_close int from = FD_NONE, to = FD_NONE;
	char file[128];

	if (!b)
		return;
	from = changes_tree_open_lower(t, name);
	if (from < 0 || !is_wanted(b, from))
		return;
	if (buf_printf(&path, "%.*s%s%.*s", STR_ARG(buf_str(&t->path)), t->path.len ? "/" : "",
		       STR_ARG(name)) < 0 ||
	    io_read_all(from, &text) < 0)
		return;
	to = open_new(b, path.data, file);
	if (to < 0)
		return;
	b->files++;
	b->bytes += text.len;
	if (io_write_all(to, text.data, text.len) < 0)
		(void)unlinkat(b->dirfd, file, 0);
}
