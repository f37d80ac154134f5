/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes_base.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/sha256.h"
#include "warden/changes/changes_tree.h"

enum { FILES = 4096, BYTES = 64 << 20, FILE_BYTES = 1 << 20 };

#define UNDER_WAY "base/walked.new"

/* Write a temporary file, then link it. An existing file stays, because it is older. */
static int write_new(const struct changes_base *b, const char *path, struct str text)
{
	char hash[SHA256_HEX], dir[32], name[128];
	auto_close int fd = FD_NONE;
	int r;

	sha256_name(path, hash);
	(void)snprintf(dir, sizeof dir, "base/%d", b->mount);
	(void)snprintf(name, sizeof name, "%s/%s", dir, hash);
	if (b->files == 0 &&
	    (io_mkdir(b->dirfd, "base", 0700) < 0 || io_mkdir(b->dirfd, dir, 0700) < 0))
		return -EIO;
	fd = openat(b->dirfd, UNDER_WAY, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	r = fd < 0 ? -errno : io_write_all(fd, text.p, text.n);
	if (r == 0 && linkat(b->dirfd, UNDER_WAY, b->dirfd, name, 0) < 0)
		r = -errno;
	(void)unlinkat(b->dirfd, UNDER_WAY, 0);
	return r;
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
	auto_close int from = FD_NONE;

	if (!b)
		return;
	from = changes_tree_open_lower(t, name);
	if (from < 0 || !is_wanted(b, from))
		return;
	if (buf_printf(&path, "%.*s%s%.*s", STR_ARG(buf_str(&t->path)), t->path.len ? "/" : "",
		       STR_ARG(name)) < 0 ||
	    io_read_all(from, &text) < 0)
		return;
	if (write_new(b, path.data, buf_str(&text)) < 0)
		return;
	b->files++;
	b->bytes += text.len;
}
