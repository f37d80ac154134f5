/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tar.h"

#include <errno.h>

#include "t.h"

struct got {
	char path[LIMIT_PATH], link[LIMIT_PATH];
	struct tar_entry e;
	char data[256];
	size_t n;
	int entries, result;
	char why[TAR_WHY];
};

/* Read b in steps of `step` bytes; the last entry stays in got. */
static struct got *read_by(const struct buf *b, size_t step)
{
	static struct got g;
	static struct tar_reader r;
	int ev = TAR_MORE;

	g = (struct got){ 0 };
	tar_reader_init(&r);
	for (size_t at = 0; at < b->len && ev == TAR_MORE; at += step) {
		struct str in = { b->data + at, b->len - at < step ? b->len - at : step }, data;

		while ((ev = tar_read(&r, &in, &data)) > TAR_MORE && ev != TAR_END) {
			if (ev == TAR_DATA && g.n + data.n <= sizeof g.data) {
				memcpy(g.data + g.n, data.p, data.n);
				g.n += data.n;
			}
			if (ev != TAR_ENTRY)
				continue;
			g.entries++;
			g.n = 0;
			g.e = r.entry;
			(void)snprintf(g.path, sizeof g.path, "%s", r.entry.path);
			(void)snprintf(g.link, sizeof g.link, "%s", r.entry.link);
		}
	}
	g.result = ev;
	(void)snprintf(g.why, sizeof g.why, "%s", r.why);
	tar_reader_done(&r);
	return &g;
}

static void put(struct buf *b, struct tar_entry e, const char *data)
{
	e.link = e.link ? e.link : "";
	e.size = data ? strlen(data) : 0;
	CHECK(tar_put_header(b, &e) == 0);
	CHECK(buf_add(b, data ? data : "", e.size) == 0);
	CHECK(tar_put_pad(b, e.size) == 0);
}

static void patch_sum(struct buf *b, size_t at)
{
	unsigned char *h = (unsigned char *)b->data + at;
	unsigned sum = 0;

	memset(h + 148, ' ', 8);
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += h[i];
	sprintf((char *)h + 148, "%06o", sum);
}

static void archives_round_trip_in_steps_of_any_size(void)
{
	static const size_t steps[] = { 1, 7, 511, 512, 513, 1 << 20 };
	struct buf b = BUF_INIT(1 << 20), rec = BUF_INIT(4096);
	char long_path[2000], long_link[300];

	memset(long_path, 'p', sizeof long_path - 1);
	long_path[sizeof long_path - 1] = '\0';
	memset(long_link, 'l', sizeof long_link - 1);
	long_link[sizeof long_link - 1] = '\0';
	CHECK(tar_put_xattr(&rec, "user.a", STR("1=\n2")) == 0);
	CHECK(tar_put_xattr(&rec, "user.overlay.opaque", STR("y")) == 0);
	CHECK(tar_put_xattr(&rec, "security.capability", STR("y")) == 0);
	put(&b, (struct tar_entry){ .path = "short", .mode = 0640 }, "hello");
	put(&b, (struct tar_entry){ .type = TAR_DIR, .path = "d", .mode = 01755 }, NULL);
	put(&b,
	    (struct tar_entry){ .type = TAR_SYMLINK,
				.path = long_path,
				.link = long_link,
				.uid = 1u << 30,
				.gid = 7,
				.mode = 04777,
				.mtime_s = -5,
				.mtime_ns = 123456789,
				.records = buf_str(&rec) },
	    NULL);
	CHECK(tar_put_end(&b) == 0);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct got *g = read_by(&b, steps[i]);

		CHECK(g->result == TAR_END && g->entries == 3);
		CHECK(g->e.type == TAR_SYMLINK);
		CHECK_STR(g->path, long_path);
		CHECK_STR(g->link, long_link);
		CHECK(g->e.uid == 1u << 30 && g->e.gid == 7 && g->e.mode == 04777);
		CHECK(g->e.mtime_s == -5 && g->e.mtime_ns == 123456789);
	}
	buf_done(&b);
	put(&b,
	    (struct tar_entry){
		    .path = "f", .mode = 0640, .mtime_s = 1ll << 40, .records = buf_str(&rec) },
	    "hello");
	CHECK(tar_put_end(&b) == 0);
	CHECK(read_by(&b, 3)->n == 5 && memcmp(read_by(&b, 3)->data, "hello", 5) == 0);
	CHECK(read_by(&b, 3)->e.mtime_s == 1ll << 40);
	buf_done(&b);
	buf_done(&rec);
}

static void only_user_attributes_are_returned(void)
{
	struct buf rec = BUF_INIT(4096);
	struct str rest, name, value;

	CHECK(tar_put_record(&rec, "SCHILY.xattr.user.overlay.opaque", STR("y")) == 0);
	CHECK(tar_put_record(&rec, "SCHILY.xattr.trusted.x", STR("y")) == 0);
	CHECK(tar_put_record(&rec, "comment", STR("y")) == 0);
	CHECK(tar_put_xattr(&rec, "user.a", STR("1=\n2")) == 0);
	rest = buf_str(&rec);
	CHECK(tar_xattr_next(&rest, &name, &value));
	CHECK(str_is(name, "user.a") && str_is(value, "1=\n2"));
	CHECK(!tar_xattr_next(&rest, &name, &value));
	buf_done(&rec);
}

static void a_wrong_checksum_is_refused(void)
{
	struct buf b = BUF_INIT(1 << 20);

	put(&b, (struct tar_entry){ .path = "x" }, "1");
	b.data[0] = 'y';
	CHECK(read_by(&b, 512)->result == -EBADMSG);
	CHECK_STR(read_by(&b, 512)->why, "header with a wrong checksum");
	buf_done(&b);
}

static void sizes_in_base_256_are_parsed_and_checked(void)
{
	struct buf b = BUF_INIT(1 << 20);

	put(&b, (struct tar_entry){ .path = "x" }, NULL);
	memcpy(b.data + 124, "\x80\0\0\0\0\0\0\x02\0\0\0\0", 12);
	patch_sum(&b, 0);
	CHECK(read_by(&b, 512)->e.size == 1ull << 33);
	memset(b.data + 124, 0xff, 12);
	patch_sum(&b, 0);
	CHECK(read_by(&b, 512)->result == -EBADMSG);
	memcpy(b.data + 124, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12);
	patch_sum(&b, 0);
	CHECK(read_by(&b, 512)->result == -EBADMSG);
	CHECK_STR(read_by(&b, 512)->why, "has an impossible size");
	memcpy(b.data + 124, "\xbf\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
	patch_sum(&b, 0);
	CHECK(read_by(&b, 512)->result == -EBADMSG);
	memcpy(b.data + 124, "0000000009\0", 12);
	patch_sum(&b, 0);
	CHECK(read_by(&b, 512)->result == -EBADMSG);
	buf_done(&b);
}

static void gnu_long_names_are_parsed(void)
{
	struct buf b = BUF_INIT(1 << 20);
	char name[301];

	memset(name, 'n', 300);
	name[300] = '\0';
	put(&b, (struct tar_entry){ .path = "././@LongLink" }, name);
	b.data[156] = 'L';
	patch_sum(&b, 0);
	put(&b, (struct tar_entry){ .path = "cut" }, "data");
	CHECK(tar_put_end(&b) == 0);
	CHECK_STR(read_by(&b, 100)->path, name);
	CHECK(read_by(&b, 100)->result == TAR_END);
	buf_done(&b);
}

static void a_prefix_counts_only_with_the_posix_magic(void)
{
	struct buf b = BUF_INIT(1 << 20);

	put(&b, (struct tar_entry){ .path = "name" }, NULL);
	memcpy(b.data + 345, "prefix", 6);
	patch_sum(&b, 0);
	CHECK_STR(read_by(&b, 512)->path, "prefix/name");
	memcpy(b.data + 257, "ustar  ", 8);
	patch_sum(&b, 0);
	CHECK_STR(read_by(&b, 512)->path, "name");
	buf_done(&b);
}

static void the_longest_path_fits_and_one_more_does_not(void)
{
	struct buf b = BUF_INIT(1 << 20);
	char path[LIMIT_PATH + 1];

	memset(path, 'p', sizeof path);
	path[LIMIT_PATH - 1] = '\0';
	put(&b, (struct tar_entry){ .path = path }, NULL);
	CHECK(tar_put_end(&b) == 0);
	CHECK_STR(read_by(&b, 512)->path, path);
	path[LIMIT_PATH - 1] = 'p';
	path[LIMIT_PATH] = '\0';
	CHECK(tar_put_header(&b, &(struct tar_entry){ .path = path, .link = "" }) == -E2BIG);
	buf_done(&b);
}

static void a_pax_header_of_the_limit_passes_and_one_byte_more_is_refused(void)
{
	static char value[LIMIT_PAX + 16];

	for (int over = 0; over < 2; over++) {
		struct buf b = BUF_INIT(1 << 20);

		memset(value, 'v', sizeof value);
		/* "65536 comment=" and the newline take 15 bytes. */
		put(&b, (struct tar_entry){ .path = "pax" }, NULL);
		b.data[156] = 'x';
		sprintf(b.data + 124, "%011o", LIMIT_PAX + over);
		patch_sum(&b, 0);
		CHECK(tar_put_record(&b, "comment",
				     (struct str){ value, (size_t)(LIMIT_PAX - 15 + over) }) == 0);
		CHECK(tar_put_pad(&b, (uint64_t)(LIMIT_PAX + over)) == 0);
		put(&b, (struct tar_entry){ .path = "file" }, "x");
		CHECK(tar_put_end(&b) == 0);
		CHECK(read_by(&b, 1000)->result == (over ? -E2BIG : TAR_END));
		buf_done(&b);
	}
}

static void malformed_pax_records_are_refused(void)
{
	static const char *const bad[] = {
		"path=x\n",
		"9 path=x",
		"99 path=x\n",
		"0 path=x\n",
		"3 a\n",
		"5 =x\n",
		"6 abc\n",
		"18446744073709551617 a=b\n",
		"-9 path=x\n",
		"11 size=-1\n",
		"13 size=1e3\n",
		"10 mtime=\n",
		"13 mtime=1.x\n",
		"12 mtime=--1\n",
		"30 size=99999999999999999999\n",
		"26 uid=4294967296\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct buf b = BUF_INIT(1 << 20);

		put(&b, (struct tar_entry){ .path = "pax" }, bad[i]);
		b.data[156] = 'x';
		patch_sum(&b, 0);
		put(&b, (struct tar_entry){ .path = "file" }, "x");
		CHECK(tar_put_end(&b) == 0);
		CHECK(read_by(&b, 1000)->result < 0);
		buf_done(&b);
	}
}

static void paths_are_cleaned_or_refused(void)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "a", "a" },
		{ "./a//b/./c/", "a/b/c" },
		{ ".", "" },
		{ "./", "" },
		{ "a/..b/c..", "a/..b/c.." },
		{ "/a", NULL },
		{ "..", NULL },
		{ "a/..", NULL },
		{ "a/../b", NULL },
		{ "./..", NULL },
		{ "//", NULL },
		{ "...", "..." },
	};
	char out[LIMIT_PATH], deep[2 * LIMIT_TREE_DEPTH + 3];
	const char *why;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int k = tar_path_clean(rows[i].in, out, &why);

		CHECK((k == 0) == (rows[i].out != NULL) && (k == 0) == (why == NULL));
		if (rows[i].out)
			CHECK_STR(out, rows[i].out);
	}
	for (int i = 0; i <= LIMIT_TREE_DEPTH; i++)
		memcpy(deep + 2 * i, "a/", 3);
	CHECK(tar_path_clean(deep, out, &why) == -EBADMSG);
	deep[2 * LIMIT_TREE_DEPTH] = '\0';
	CHECK(tar_path_clean(deep, out, &why) == 0);
}

T_MAIN(T(archives_round_trip_in_steps_of_any_size), T(only_user_attributes_are_returned),
       T(a_wrong_checksum_is_refused), T(sizes_in_base_256_are_parsed_and_checked),
       T(gnu_long_names_are_parsed), T(a_prefix_counts_only_with_the_posix_magic),
       T(the_longest_path_fits_and_one_more_does_not),
       T(a_pax_header_of_the_limit_passes_and_one_byte_more_is_refused),
       T(malformed_pax_records_are_refused), T(paths_are_cleaned_or_refused))
