/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/git_index.h"

#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/sha1.h"
#include "wire/name_alias.h"

enum {
	HEADER = 12,
	ENTRY_FIXED = 62, /* ten numbers, a SHA-1, flags */
	FLAG_EXTENDED = 0x4000,
	FLAG_NAME = 0x0fff, /* the length of the name; this value: or longer */
	EOIE_WHOLE = 32,    /* name, length, an offset, a SHA-1 */
};

struct index_reader {
	struct str all; /* without the checksum */
	size_t at;
	uint32_t version, count, done;
	char name[LIMIT_PATH]; /* name of the last entry */
	size_t name_len;
};

static uint32_t number_at(struct str s, size_t at)
{
	const uint8_t *p = (const uint8_t *)s.p + at;

	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static size_t bytes_left(const struct index_reader *r)
{
	return r->all.n - r->at;
}

/* git refuses these components when it adds a path, but not when it reads an index. */
static bool is_path_safe(const char *path)
{
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");

		/* The name of a directory in a sparse index ends with a slash. */
		if (n == 0)
			return p != path && !*p;
		if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.') ||
		    name_is_git((struct str){ p, n }))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}

/* Version 4: how many bytes to drop from the previous name. False if the input ends. */
static bool read_varint(struct index_reader *r, uint64_t *ret)
{
	uint64_t v = 0;

	for (int i = 0; i < 5 && bytes_left(r); i++) {
		uint8_t c = (uint8_t)r->all.p[r->at++];

		v = (v << 7) | (c & 0x7f);
		if (!(c & 0x80)) {
			*ret = v;
			return true;
		}
		v++;
	}
	return false;
}

/* Read the name into r->name. False if it is malformed. */
static bool read_name(struct index_reader *r)
{
	uint64_t drop = r->name_len;
	const char *nul;
	size_t n, keep;

	if (r->version == 4 && (!read_varint(r, &drop) || drop > r->name_len))
		return false;
	keep = r->version == 4 ? r->name_len - (size_t)drop : 0;
	nul = memchr(r->all.p + r->at, 0, bytes_left(r));
	if (!nul)
		return false;
	n = (size_t)(nul - (r->all.p + r->at));
	if (keep + n >= sizeof r->name)
		return false;
	memcpy(r->name + keep, r->all.p + r->at, n + 1);
	r->name_len = keep + n;
	r->at += n + 1;
	return true;
}

static const char *read_entry(struct index_reader *r)
{
	size_t start = r->at, length;
	uint32_t flags;

	if (bytes_left(r) < ENTRY_FIXED + 2)
		return "ends in the middle of an entry";
	flags = number_at(r->all, r->at + ENTRY_FIXED - 2) >> 16;
	r->at += ENTRY_FIXED;
	if (flags & FLAG_EXTENDED)
		r->at += r->version >= 3 ? 2 : bytes_left(r) + 1;
	if (r->at >= r->all.n || !read_name(r))
		return "has a malformed entry";
	length = flags & FLAG_NAME;
	if (length != (r->name_len < FLAG_NAME ? r->name_len : FLAG_NAME))
		return "has an entry with a wrong length";
	if (!is_path_safe(r->name))
		return "names a file of .git, or one outside the work tree";
	/* Up to version 3, one to eight NULs pad the entry to a multiple of eight. */
	if (r->version < 4)
		r->at = start + ((r->at - start + 7) & ~(size_t)7);
	return r->at > r->all.n ? "ends in the middle of an entry" : NULL;
}

/*
 * The table of blocks that git's threads read: an offset and a number of entries each. The blocks
 * must match the entries read above, in order. Accepted only without prefix compression, where an
 * entry means the same wherever reading starts.
 */
static const char *check_blocks(const struct index_reader *r, struct str body)
{
	struct index_reader again = { .all = r->all, .at = HEADER, .version = r->version };

	if (r->version == 4 || body.n < 4 || (body.n - 4) % 8 || number_at(body, 0) != 1)
		return "has a block table that cay cannot check";
	for (size_t i = 4; i < body.n; i += 8) {
		uint32_t n = number_at(body, i + 4);

		if (number_at(body, i) != again.at || n > r->count - again.done)
			return "has a wrong block table";
		for (uint32_t k = 0; k < n; k++, again.done++)
			(void)read_entry(&again);
	}
	return again.done == r->count ? NULL : "has a wrong block table";
}

/*
 * git looks for EOIE in the last bytes of the file, without reading the extensions before. There
 * the bytes can also be the end of another extension's body, and name other entries. at: where the
 * last extension begins.
 */
static const char *check_last_bytes(const struct index_reader *r, size_t at)
{
	size_t eoie = r->all.n > EOIE_WHOLE ? r->all.n - EOIE_WHOLE : 0;

	if (at != eoie && memcmp(r->all.p + eoie, "EOIE", 4) == 0)
		return "hides an end of its entries in another extension";
	return NULL;
}

static const char *check_extensions(struct index_reader *r)
{
	size_t entries_end = r->at, last = 0;
	bool has_blocks = false;

	while (bytes_left(r)) {
		struct str kind, body;
		const char *why = NULL;

		if (bytes_left(r) < 8 || number_at(r->all, r->at + 4) > bytes_left(r) - 8)
			return "has a malformed extension";
		kind = (struct str){ r->all.p + r->at, 4 };
		body = (struct str){ r->all.p + r->at + 8, number_at(r->all, r->at + 4) };
		last = r->at;
		r->at += 8 + body.n;
		if (str_is(kind, "EOIE") && (body.n < 4 || number_at(body, 0) != entries_end))
			return "has a wrong end of its entries";
		/* Once: each check reads all entries again. */
		if (str_is(kind, "IEOT"))
			why = has_blocks ? "has two tables of blocks" : check_blocks(r, body);
		has_blocks |= str_is(kind, "IEOT");
		if (why)
			return why;
	}
	return check_last_bytes(r, last);
}

static bool is_checksum_right(struct str bytes)
{
	char hex[SHA1_HEX];
	struct sha1 s;

	sha1_init(&s);
	sha1_add(&s, bytes.p, bytes.n - SHA1_SIZE);
	sha1_end(&s, hex);
	for (size_t i = 0; i < SHA1_SIZE; i++) {
		static const char digits[] = "0123456789abcdef";
		uint8_t c = (uint8_t)bytes.p[bytes.n - SHA1_SIZE + i];

		if (hex[2 * i] != digits[c >> 4] || hex[2 * i + 1] != digits[c & 15])
			return false;
	}
	return true;
}

const char *git_index_fault(struct str bytes)
{
	struct index_reader r = { .at = HEADER };
	const char *why = NULL;

	if (bytes.n < HEADER + SHA1_SIZE || memcmp(bytes.p, "DIRC", 4) != 0)
		return "is not a git index";
	if (!is_checksum_right(bytes))
		return "has no SHA-1 checksum, or a wrong one";
	r.all = (struct str){ bytes.p, bytes.n - SHA1_SIZE };
	r.version = number_at(bytes, 4);
	r.count = number_at(bytes, 8);
	if (r.version < 2 || r.version > 4)
		return "has a version that cay does not know";
	for (; r.done < r.count && !why; r.done++)
		why = read_entry(&r);
	return why ? why : check_extensions(&r);
}
