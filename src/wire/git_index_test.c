/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/git_index.h"

#include "base/buf.h"
#include "base/sha1.h"
#include "t.h"

static void put_u32(struct buf *b, uint32_t v)
{
	const uint8_t bytes[] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8),
				  (uint8_t)v };

	CHECK(buf_add(b, bytes, sizeof bytes) == 0);
}

static void put_head(struct buf *b, uint32_t version, uint32_t count)
{
	CHECK(buf_add_c(b, "DIRC") == 0);
	put_u32(b, version);
	put_u32(b, count);
}

/* name: the bytes stored; len: length of the whole name; drop: for version 4, else -1. */
static void put_entry(struct buf *b, const char *name, size_t len, int drop)
{
	static const char zeros[62];
	uint8_t flags[] = { (uint8_t)(len >> 8), (uint8_t)len };
	size_t start = b->len;

	CHECK(buf_add(b, zeros, 60) == 0 && buf_add(b, flags, 2) == 0);
	if (drop >= 0)
		CHECK(buf_add(b, &(uint8_t){ (uint8_t)drop }, 1) == 0);
	CHECK(buf_add(b, name, strlen(name) + 1) == 0);
	while (drop < 0 && (b->len - start) % 8)
		CHECK(buf_add(b, zeros, 1) == 0);
}

static void put_sum(struct buf *b)
{
	char hex[SHA1_HEX];
	struct sha1 s;
	unsigned byte;

	sha1_init(&s);
	sha1_add(&s, b->data, b->len);
	sha1_end(&s, hex);
	for (int i = 0; i < SHA1_SIZE; i++) {
		CHECK(sscanf(hex + 2 * i, "%2x", &byte) == 1);
		CHECK(buf_add(b, &(uint8_t){ (uint8_t)byte }, 1) == 0);
	}
}

static bool is_fine(struct buf *b)
{
	const char *why;

	put_sum(b);
	why = git_index_fault(buf_str(b));
	buf_done(b);
	return !why;
}

static bool takes(const char *name)
{
	struct buf b = BUF_INIT(4096);

	put_head(&b, 2, 2);
	put_entry(&b, "README", 6, -1);
	put_entry(&b, name, strlen(name), -1);
	return is_fine(&b);
}

static void ordinary_paths_pass(void)
{
	CHECK(takes("a") && takes("src/main.c") && takes(".gitignore") && takes("x/.github/y"));
	CHECK(takes("sparse/"));
}

static void paths_into_git_and_out_of_the_tree_are_found(void)
{
	static const char *const bad[] = { ".git/hooks/post-checkout",
					   "sub/.git/config",
					   "git~1/hooks/post-checkout",
					   ".git./config",
					   ".g\xe2\x80\x8cit/config",
					   ".GIT/config",
					   ".git",
					   "../x",
					   "a/../../x",
					   "/etc/profile",
					   "a//b",
					   "./a",
					   "" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(!takes(bad[i]));
}

static void a_prefix_compressed_name_is_checked(void)
{
	struct buf b = BUF_INIT(4096);

	put_head(&b, 4, 2);
	put_entry(&b, ".gix/hooks/a", 12, 0);
	put_entry(&b, "t/hooks/a", 12, 9);
	CHECK(!is_fine(&b));
	put_head(&b, 4, 2);
	put_entry(&b, "src/a", 5, 0);
	put_entry(&b, "b", 5, 1);
	CHECK(is_fine(&b));
	put_head(&b, 4, 1);
	put_entry(&b, "b", 1, 7); /* more bytes than the previous name has */
	CHECK(!is_fine(&b));
}

static void a_wrong_checksum_length_or_count_is_found(void)
{
	struct buf b = BUF_INIT(4096);

	put_head(&b, 2, 1);
	put_entry(&b, "a", 1, -1);
	put_sum(&b);
	CHECK(!git_index_fault(buf_str(&b)));
	b.data[b.len - 1] ^= 1;
	CHECK(git_index_fault(buf_str(&b)));
	buf_done(&b);
	put_head(&b, 2, 1);
	put_entry(&b, "ab", 1, -1);
	CHECK(!is_fine(&b));
	put_head(&b, 2, 2);
	put_entry(&b, "a", 1, -1);
	CHECK(!is_fine(&b));
	put_head(&b, 5, 0);
	CHECK(!is_fine(&b));
	CHECK(git_index_fault(STR("")) && git_index_fault(STR("DIRC")));
}

/* git's threads start reading where this table says. */
static bool takes_table(uint32_t offset, uint32_t n, uint32_t end)
{
	struct buf b = BUF_INIT(4096);

	put_head(&b, 2, 2);
	put_entry(&b, "a", 1, -1);
	put_entry(&b, "b", 1, -1);
	CHECK(b.len == 12 + 2 * 64);
	CHECK(buf_add_c(&b, "IEOT") == 0);
	put_u32(&b, 4 + 16);
	put_u32(&b, 1);
	put_u32(&b, 12);
	put_u32(&b, 1);
	put_u32(&b, offset);
	put_u32(&b, n);
	CHECK(buf_add_c(&b, "EOIE") == 0);
	put_u32(&b, 4);
	put_u32(&b, end);
	return is_fine(&b);
}

static void offset_tables_must_agree_with_the_entries(void)
{
	CHECK(takes_table(76, 1, 140));
	CHECK(!takes_table(84, 1, 140));
	CHECK(!takes_table(76, 2, 140));
	CHECK(!takes_table(76, 0, 140));
	CHECK(!takes_table(76, 1, 148));
}

static void put_eoie(struct buf *b, uint32_t end)
{
	static const char hash[SHA1_SIZE];

	CHECK(buf_add_c(b, "EOIE") == 0);
	put_u32(b, 4 + sizeof hash);
	put_u32(b, end);
	CHECK(buf_add(b, hash, sizeof hash) == 0);
}

/* The place where git finds it, and from there a block table with other entries. */
static void an_end_of_entries_inside_another_extension_is_found(void)
{
	for (int hidden = 0; hidden < 2; hidden++) {
		struct buf b = BUF_INIT(4096);

		put_head(&b, 2, 1);
		put_entry(&b, "a", 1, -1);
		if (hidden) {
			CHECK(buf_add_c(&b, "ZZZZ") == 0);
			put_u32(&b, 32);
		}
		put_eoie(&b, 12 + 64);
		CHECK(is_fine(&b) == !hidden);
	}
}

static void a_second_table_of_blocks_is_found(void)
{
	for (int n = 1; n < 3; n++) {
		struct buf b = BUF_INIT(4096);

		put_head(&b, 2, 1);
		put_entry(&b, "a", 1, -1);
		for (int i = 0; i < n; i++) {
			CHECK(buf_add_c(&b, "IEOT") == 0);
			put_u32(&b, 4 + 8);
			put_u32(&b, 1);
			put_u32(&b, 12);
			put_u32(&b, 1);
		}
		CHECK(is_fine(&b) == (n == 1));
	}
}

T_MAIN(T(ordinary_paths_pass), T(paths_into_git_and_out_of_the_tree_are_found),
       T(a_prefix_compressed_name_is_checked), T(a_wrong_checksum_length_or_count_is_found),
       T(offset_tables_must_agree_with_the_entries),
       T(an_end_of_entries_inside_another_extension_is_found), T(a_second_table_of_blocks_is_found))
