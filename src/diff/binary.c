/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/binary.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

enum { LINE = 52, CHUNK = 16 * 1024 };

struct packer {
	FILE *f;
	z_stream z;
	uint8_t line[LINE];
	size_t n;
	uint8_t out[CHUNK];
};

static void put_line(struct packer *p)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
	char text[2 + LINE / 4 * 5 + 1];
	size_t at = 0;

	text[at++] = (char)(p->n <= 26 ? 'A' + p->n - 1 : 'a' + p->n - 27);
	for (size_t i = 0; i < p->n; i += 4) {
		uint32_t v = 0;

		for (size_t k = 0; k < 4; k++)
			v = v << 8 | (i + k < p->n ? p->line[i + k] : 0);
		for (int k = 4; k >= 0; k--, v /= 85)
			text[at + (size_t)k] = digits[v % 85];
		at += 5;
	}
	text[at++] = '\n';
	(void)fwrite(text, 1, at, p->f);
	p->n = 0;
}

static int deflate_some(struct packer *p, int flush)
{
	int rc;

	do {
		size_t n;

		p->z.next_out = p->out;
		p->z.avail_out = CHUNK;
		rc = deflate(&p->z, flush);
		if (rc == Z_STREAM_ERROR)
			return -EIO;
		n = CHUNK - p->z.avail_out;
		for (size_t i = 0; i < n; i++) {
			p->line[p->n++] = p->out[i];
			if (p->n == LINE)
				put_line(p);
		}
	} while (p->z.avail_out == 0);
	return 0;
}

static int add(void *ctx, const void *data, size_t n)
{
	struct packer *p = ctx;

	while (n) {
		uInt part = n < CHUNK ? (uInt)n : CHUNK;
		int r;

		p->z.next_in = (Bytef *)(uintptr_t)data;
		p->z.avail_in = part;
		r = deflate_some(p, Z_NO_FLUSH);
		if (r < 0)
			return r;
		data = (const char *)data + part;
		n -= part;
	}
	return 0;
}

int binary_literal(FILE *f, const struct blob *b)
{
	auto_free struct packer *p = calloc(1, sizeof *p);
	int r;

	if (!p)
		return -ENOMEM;
	p->f = f;
	if (deflateInit(&p->z, Z_DEFAULT_COMPRESSION) != Z_OK)
		return -ENOMEM;
	fprintf(f, "literal %llu\n", (unsigned long long)b->size);
	r = blob_each(b, add, p);
	if (r == 0)
		r = deflate_some(p, Z_FINISH);
	(void)deflateEnd(&p->z);
	if (r == 0 && p->n)
		put_line(p);
	putc('\n', f);
	return r;
}
