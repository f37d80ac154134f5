/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tar reader: no crash, the same events whatever the steps in which input arrives, what
 * it accepts can be written and read again, and a cleaned path stays below its root.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/tar.h"

#define MUST(cond) ((cond) ? (void)0 : abort())

static void mix(uint64_t *sum, const void *p, size_t n)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < n; i++)
		*sum = (*sum ^ b[i]) * 0x100000001b3ull;
}

static void check_path(const char *path)
{
	char clean[LIMIT_PATH], again[LIMIT_PATH];
	const char *why;

	if (tar_path_clean(path, clean, &why) < 0) {
		MUST(why != NULL);
		return;
	}
	MUST(clean[0] != '/' && strlen(clean) <= strlen(path));
	for (const char *at = clean; *at;) {
		size_t n = strcspn(at, "/");

		MUST(n > 0 && n < 256 && !(n == 1 && at[0] == '.') &&
		     !(n == 2 && memcmp(at, "..", 2) == 0));
		at += n + (at[n] == '/');
	}
	MUST(tar_path_clean(clean, again, &why) == 0 && strcmp(clean, again) == 0);
}

static void check_rewrite(const struct tar_entry *e)
{
	struct buf b = BUF_INIT(1 << 20);
	struct tar_entry copy = *e;
	struct tar_reader r;
	struct str in, data;

	copy.records = STR_NONE;
	tar_reader_init(&r);
	/* A directory's name gets a slash more, for which there may be no room. */
	if (tar_put_header(&b, &copy) == 0) {
		in = buf_str(&b);
		MUST(tar_read(&r, &in, &data) == TAR_ENTRY && in.n == 0);
		MUST(r.entry.type == e->type && r.entry.mode == e->mode);
		MUST(r.entry.size == e->size && strcmp(r.entry.link, e->link) == 0);
		MUST(strncmp(r.entry.path, e->path, strlen(e->path)) == 0);
		MUST(r.entry.mtime_ns == e->mtime_ns);
	}
	tar_reader_done(&r);
	buf_done(&b);
}

static void check_entry(const struct tar_entry *e, uint64_t *sum)
{
	struct str rest = e->records, name, value;
	int64_t far = (int64_t)1 << 60;

	MUST(e->path[0] && strlen(e->path) < LIMIT_PATH && strlen(e->link) < LIMIT_PATH);
	MUST((e->type == TAR_SYMLINK || e->type == TAR_HARDLINK) == (e->link[0] != '\0'));
	MUST(e->size == 0 || e->type == TAR_FILE);
	MUST(e->mtime_ns < 1000000000);
	mix(sum, e->path, strlen(e->path));
	mix(sum, e->link, strlen(e->link));
	mix(sum, &e->size, sizeof e->size);
	mix(sum, &e->mtime_s, sizeof e->mtime_s);
	check_path(e->path);
	if (e->mtime_s > -far && e->mtime_s < far && e->uid <= UINT32_MAX && e->gid <= UINT32_MAX)
		check_rewrite(e);
	while (tar_xattr_next(&rest, &name, &value))
		MUST(tar_xattr_ok(name));
}

static uint64_t read_by(const uint8_t *p, size_t n, size_t step)
{
	uint64_t sum = 0xcbf29ce484222325ull;
	struct tar_reader r;
	int ev = TAR_MORE;

	tar_reader_init(&r);
	for (size_t at = 0; at < n && ev == TAR_MORE; at += step) {
		struct str in = { (const char *)p + at, n - at < step ? n - at : step }, data;

		while ((ev = tar_read(&r, &in, &data)) > TAR_MORE && ev != TAR_END) {
			if (ev == TAR_ENTRY)
				check_entry(&r.entry, &sum);
			mix(&sum, data.p, data.n);
		}
	}
	mix(&sum, &ev, sizeof ev);
	tar_reader_done(&r);
	return sum;
}

static void check(const uint8_t *p, size_t n)
{
	uint64_t whole = read_by(p, n, n ? n : 1);

	if (n > 0)
		MUST(read_by(p, n, 1u + p[n - 1]) == whole);
}

/* Any block can be a header: make all checksums right, or the fuzzer never gets past them. */
static void fix_sums(uint8_t *p, size_t n)
{
	for (size_t at = 0; at + TAR_BLOCK <= n; at += TAR_BLOCK) {
		unsigned sum = 8 * ' ';
		bool zero = true;

		for (size_t i = 0; i < TAR_BLOCK; i++) {
			zero = zero && p[at + i] == 0;
			sum += i >= 148 && i < 156 ? 0 : p[at + i];
		}
		for (size_t i = 0; i < 6 && !zero; i++, sum /= 8)
			p[at + 153 - i] = (uint8_t)('0' + sum % 8);
		if (!zero)
			memcpy(p + at + 154, "\0 ", 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	uint8_t *fixed = malloc(n + 1);

	check(p, n);
	if (fixed) {
		if (n)
			memcpy(fixed, p, n);
		fix_sums(fixed, n);
		check(fixed, n);
	}
	free(fixed);
	return 0;
}
