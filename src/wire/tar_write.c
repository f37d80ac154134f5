/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wire/tar.h"
#include "wire/tar_header.h"

static const uint64_t octal_size_max = 077777777777; /* 11 digits */
static const uint64_t octal_id_max = 07777777;	     /* 7 digits */

int tar_put_record(struct buf *out, const char *key, struct str value)
{
	size_t body = strlen(key) + value.n + 3, len = body;
	char front[32];
	int digits = 0;
	int k;

	/* The length includes its own digits: repeat until it is stable. */
	while (digits != snprintf(front, sizeof front, "%zu", len)) {
		digits = snprintf(front, sizeof front, "%zu", len);
		len = body + (size_t)digits;
	}
	k = buf_printf(out, "%zu %s=", len, key);
	k = k < 0 ? k : buf_add_str(out, value);
	return k < 0 ? k : buf_add(out, "\n", 1);
}

int tar_put_xattr(struct buf *out, const char *name, struct str value)
{
	char key[sizeof TAR_XATTR_KEY + 256];

	if (!tar_xattr_ok(str_of(name)))
		return 0;
	(void)snprintf(key, sizeof key, "%s%s", TAR_XATTR_KEY, name);
	return tar_put_record(out, key, value);
}

int tar_put_pad(struct buf *out, uint64_t size)
{
	static const char zeros[TAR_BLOCK];

	return buf_add(out, zeros, (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

int tar_put_end(struct buf *out)
{
	static const char zeros[2 * TAR_BLOCK];

	return buf_add(out, zeros, sizeof zeros);
}

static void octal(unsigned char *p, size_t n, uint64_t v)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%0*" PRIo64, (int)n - 1, v);
	memcpy(p, text, n - 1);
}

static void copy_text(unsigned char *p, size_t n, struct str s)
{
	if (s.n)
		memcpy(p, s.p, s.n < n ? s.n : n);
}

static void fill_header(struct tar_header *h, char type, struct str name, const struct tar_entry *e)
{
	uint64_t mtime = e->mtime_s > 0 ? (uint64_t)e->mtime_s : 0;
	uint64_t sum = 0;

	memset(h, 0, sizeof *h);
	copy_text(h->name, sizeof h->name, name);
	copy_text(h->link, sizeof h->link, str_of(e->link));
	octal(h->mode, sizeof h->mode, e->mode & 07777);
	octal(h->uid, sizeof h->uid, e->uid <= octal_id_max ? e->uid : 0);
	octal(h->gid, sizeof h->gid, e->gid <= octal_id_max ? e->gid : 0);
	octal(h->size, sizeof h->size, e->size <= octal_size_max ? e->size : 0);
	octal(h->mtime, sizeof h->mtime, mtime <= octal_size_max ? mtime : 0);
	h->type[0] = (unsigned char)type;
	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	memset(h->sum, ' ', sizeof h->sum);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += ((const unsigned char *)h)[i];
	octal(h->sum, 7, sum);
	h->sum[6] = '\0';
}

static int put_u64(struct buf *out, const char *key, uint64_t v)
{
	char text[24];
	int n = snprintf(text, sizeof text, "%" PRIu64, v);

	return tar_put_record(out, key, (struct str){ text, (size_t)n });
}

static int put_mtime(struct buf *out, const struct tar_entry *e)
{
	bool minus = e->mtime_s < 0;
	bool borrow = minus && e->mtime_ns > 0;
	uint64_t s = minus ? -(uint64_t)e->mtime_s - borrow : (uint64_t)e->mtime_s;
	char text[48];
	int n = snprintf(text, sizeof text, "%s%" PRIu64 ".%09u", minus ? "-" : "", s,
			 borrow ? 1000000000 - e->mtime_ns : e->mtime_ns);

	return tar_put_record(out, "mtime", (struct str){ text, (size_t)n });
}

/* Write pax records for everything that does not fit into the header. */
static int put_records(struct buf *out, struct str path, const struct tar_entry *e)
{
	struct str link = str_of(e->link);
	int k = 0;

	if (path.n > 100)
		k = tar_put_record(out, "path", path);
	if (k == 0 && link.n > 100)
		k = tar_put_record(out, "linkpath", link);
	if (k == 0 && e->size > octal_size_max)
		k = put_u64(out, "size", e->size);
	if (k == 0 && e->uid > octal_id_max)
		k = put_u64(out, "uid", e->uid);
	if (k == 0 && e->gid > octal_id_max)
		k = put_u64(out, "gid", e->gid);
	if (k == 0 && (e->mtime_ns || e->mtime_s < 0 || e->mtime_s > (int64_t)octal_size_max))
		k = put_mtime(out, e);
	return k < 0 ? k : buf_add_str(out, e->records);
}

static int put_ext(struct buf *out, struct str path, const struct tar_entry *e)
{
	static const char room[TAR_BLOCK];
	struct tar_entry x = { .mode = 0644, .link = "" };
	size_t at = out->len;
	int k = buf_add(out, room, sizeof room);

	if (k == 0)
		k = put_records(out, path, e);
	if (k < 0)
		return k;
	x.size = out->len - at - TAR_BLOCK;
	if (x.size == 0) {
		out->len = at;
		return 0;
	}
	if (x.size > LIMIT_PAX)
		return -E2BIG;
	fill_header((void *)(out->data + at), 'x', STR("././@PaxHeader"), &x);
	return tar_put_pad(out, x.size);
}

int tar_put_header(struct buf *out, const struct tar_entry *e)
{
	static const char types[] = {
		[TAR_FILE] = '0', [TAR_DIR] = '5', [TAR_SYMLINK] = '2', [TAR_HARDLINK] = '1'
	};
	char path[LIMIT_PATH + 1];
	struct tar_header h;
	size_t before = out->len;
	int n = snprintf(path, sizeof path, "%s%s", e->path, e->type == TAR_DIR ? "/" : "");
	struct str name = { path, (size_t)n };
	int k;

	if (name.n >= LIMIT_PATH || strlen(e->link) >= LIMIT_PATH)
		return -E2BIG;
	k = put_ext(out, name, e);
	fill_header(&h, types[e->type], name, e);
	if (k == 0)
		k = buf_add(out, &h, sizeof h);
	if (k < 0 && out->data) {
		out->len = before;
		out->data[before] = '\0';
	}
	return k;
}
