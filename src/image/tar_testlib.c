/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tar_testlib.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "t.h"

static char dir[64];
static pid_t maker;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st;
	(void)flag;
	(void)f;
	(void)remove(path);
	return 0;
}

static int unlock_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)f;
	if (flag != FTW_SL && S_ISDIR(st->st_mode))
		(void)chmod(path, 0700);
	return 0;
}

static void remove_scratch(void)
{
	if (getpid() != maker)
		return;
	(void)nftw(dir, unlock_one, 16, FTW_PHYS);
	(void)nftw(dir, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

const char *scratch(void)
{
	if (dir[0])
		return dir;
	(void)snprintf(dir, sizeof dir, "/tmp/cay-test-XXXXXX");
	CHECK(mkdtemp(dir));
	maker = getpid();
	CHECK(atexit(remove_scratch) == 0);
	return dir;
}

const char *in_scratch(const char *rel)
{
	static char ring[16][4096];
	static unsigned at;
	char *p = ring[at++ % 16];

	(void)snprintf(p, sizeof ring[0], "%s/%s", scratch(), rel);
	return p;
}

void make_file(const char *path, const char *text, unsigned mode)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK(io_write_all(fd, text, strlen(text)) == 0);
	CHECK(fchmod(fd, mode) == 0);
}

const char *content(const char *path)
{
	static char text[65536];
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	CHECK(fd >= 0);
	n = read(fd, text, sizeof text - 1);
	CHECK(n >= 0);
	text[n] = '\0';
	return text;
}

bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

void raw_sum(struct buf *b, size_t at)
{
	unsigned char *h = (unsigned char *)b->data + at;
	unsigned sum = 0;
	char text[16];

	memset(h + 148, ' ', 8);
	for (int i = 0; i < 512; i++)
		sum += h[i];
	(void)snprintf(text, sizeof text, "%06o", sum);
	memcpy(h + 148, text, 7);
}

void raw_header(struct buf *b, struct raw h)
{
	static const char zeros[512];
	size_t at = b->len;
	char text[24];
	char *p;

	CHECK(buf_add(b, zeros, 512) == 0);
	p = b->data + at;
	if (h.name)
		memcpy(p, h.name, strnlen(h.name, 100));
	if (h.link)
		memcpy(p + 157, h.link, strnlen(h.link, 100));
	(void)snprintf(text, sizeof text, "%07o", h.mode ? h.mode : 0644);
	memcpy(p + 100, text, 8);
	memcpy(p + 108, "0000000", 8);
	memcpy(p + 116, "0000000", 8);
	(void)snprintf(text, sizeof text, "%011llo", h.size);
	memcpy(p + 124, text, 12);
	memcpy(p + 136, "00000000144", 12);
	p[156] = h.type ? h.type : '0';
	/* A field, not a string. NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(p + 257, "ustar\00000", 8);
	raw_sum(b, at);
}

void raw_entry(struct buf *b, struct raw h, const char *data, size_t n)
{
	static const char zeros[512];

	h.size = n;
	raw_header(b, h);
	CHECK(buf_add(b, data, n) == 0);
	CHECK(buf_add(b, zeros, (512 - n % 512) % 512) == 0);
}

void raw_text(struct buf *b, const char *name, const char *text)
{
	raw_entry(b, (struct raw){ .name = name }, text, strlen(text));
}

void raw_pax(struct buf *b, char type, const char *key, const char *value)
{
	char front[16];
	size_t body = strlen(key) + strlen(value) + 3;
	size_t n = body;
	auto_done(buf_done) struct buf rec = BUF_INIT(1 << 20);

	for (int i = 0; i < 3; i++)
		n = body + (size_t)snprintf(front, sizeof front, "%zu", n);
	CHECK(buf_printf(&rec, "%zu %s=%s\n", n, key, value) == 0);
	raw_entry(b, (struct raw){ .name = "pax", .type = type }, rec.data, rec.len);
}

void raw_end(struct buf *b)
{
	static const char zeros[1024];

	CHECK(buf_add(b, zeros, sizeof zeros) == 0);
}

int fd_of(const struct buf *b)
{
	int fd = memfd_create("tar", MFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(io_write_all(fd, b->data, b->len) == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void node_text(struct buf *out, const char *path, const char *rel, bool top)
{
	char link[4096] = "", xattr[256] = "";
	struct stat st;
	unsigned long sum = 5381;
	ssize_t n;

	CHECK(lstat(path, &st) == 0);
	if (S_ISLNK(st.st_mode)) {
		n = readlink(path, link, sizeof link - 1);
		CHECK(n > 0);
		link[n] = '\0';
	} else {
		n = getxattr(path, "user.note", xattr, sizeof xattr - 1);
		xattr[n > 0 ? n : 0] = '\0';
	}
	if (S_ISREG(st.st_mode))
		for (const char *c = content(path); *c; c++)
			sum = sum * 33 + (unsigned char)*c;
	CHECK(buf_printf(out, "%s mode=%o size=%lld nlink=%lu sum=%lx link=%s note=%s",
			 top ? "." : rel, st.st_mode & ~(S_ISLNK(st.st_mode) ? 0777u : 0u),
			 S_ISREG(st.st_mode) ? (long long)st.st_size : 0LL,
			 S_ISREG(st.st_mode) ? (unsigned long)st.st_nlink : 0ul, sum, link,
			 xattr) == 0);
	if (!top)
		CHECK(buf_printf(out, " mtime=%lld.%09ld", (long long)st.st_mtim.tv_sec,
				 st.st_mtim.tv_nsec) == 0);
	CHECK(buf_add(out, "\n", 1) == 0);
}

static void walk(struct buf *out, const char *path, const char *rel)
{
	struct dirent **names;
	struct stat st;
	int n;

	node_text(out, path, rel, rel[0] == '\0');
	CHECK(lstat(path, &st) == 0);
	if (!S_ISDIR(st.st_mode))
		return;
	n = scandir(path, &names, NULL, alphasort);
	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		auto_free char *child = NULL, *child_rel = NULL;

		CHECK(asprintf(&child, "%s/%s", path, name) > 0);
		CHECK(asprintf(&child_rel, "%s/%s", rel, name) > 0);
		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
			walk(out, child, child_rel);
		free(names[i]);
	}
	free(names);
}

char *tree_text(const char *path)
{
	auto_done(buf_done) struct buf out = BUF_INIT(16 << 20);

	walk(&out, path, "");
	return buf_take(&out, NULL);
}
