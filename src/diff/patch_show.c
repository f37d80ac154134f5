/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/patch_show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/safe.h"

enum { LINE_MAX = 64 * 1024 };

struct patch_show {
	FILE *to;
	struct buf line; /* the current line so far: a character is never split */
};

static int show_line(struct patch_show *s)
{
	auto_done(buf_done) struct buf out = BUF_INIT(8ul * LINE_MAX);
	struct str rest = buf_str(&s->line);
	int r = 0;

	while (rest.n && r == 0) {
		size_t n = 0;

		while (n < rest.n && rest.p[n] != '\n' && rest.p[n] != '\t')
			n++;
		r = text_safe(&out, (struct str){ rest.p, n });
		if (r == 0 && n < rest.n)
			r = buf_add(&out, rest.p + n++, 1);
		rest = (struct str){ rest.p + n, rest.n - n };
	}
	buf_clear(&s->line);
	if (r == 0 && out.len && fwrite(out.data, 1, out.len, s->to) != out.len)
		r = -EIO;
	return r;
}

static ssize_t show_write(void *ctx, const char *p, size_t n)
{
	struct patch_show *s = ctx;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		r = buf_add(&s->line, p + i, 1);
		if (r == 0 && (p[i] == '\n' || s->line.len == LINE_MAX))
			r = show_line(s);
	}
	errno = r < 0 ? -r : 0;
	return r < 0 ? 0 : (ssize_t)n;
}

static int show_close(void *ctx)
{
	struct patch_show *s = ctx;
	int r = show_line(s);

	buf_done(&s->line);
	free(s);
	return r;
}

FILE *patch_show_open(FILE *to)
{
	static const cookie_io_functions_t io = { .write = show_write, .close = show_close };
	struct patch_show *s = calloc(1, sizeof *s);
	FILE *f;

	if (!s)
		return NULL;
	*s = (struct patch_show){ .to = to, .line = BUF_INIT(LINE_MAX) };
	f = fopencookie(s, "w", io);
	if (!f)
		free(s);
	return f;
}
