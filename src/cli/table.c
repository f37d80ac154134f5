/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2, COLS_MAX = 16, CUT_MIN = 8 };

void out_table_done(struct out_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->cells[i].text);
	free(t->cells);
	t->cells = NULL;
	t->n = t->cap = 0;
}

int out_cell(struct out_table *t, enum out_color color, const char *text)
{
	char *safe;

	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 64;
		struct out_cell *cells = reallocarray(t->cells, cap, sizeof *cells);

		if (!cells)
			return -ENOMEM;
		t->cells = cells;
		t->cap = cap;
	}
	safe = out_safe_dup(str_of(text && text[0] ? text : "-"));
	if (!safe)
		return -ENOMEM;
	t->cells[t->n++] = (struct out_cell){ safe, color };
	return 0;
}

int out_cellf(struct out_table *t, enum out_color color, const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return out_cell(t, color, text);
}

static void measure(const struct out_table *t, bool header, int width[COLS_MAX])
{
	for (int c = 0; c < t->ncols; c++)
		width[c] = header ? (int)strlen(t->cols[c].title) : 0;
	for (size_t i = 0; i < t->n; i++) {
		int c = (int)(i % (size_t)t->ncols);
		int w = out_columns(t->cells[i].text);

		if (w > width[c])
			width[c] = w;
	}
}

/* Take columns from the widest cuttable column, until the table fits or none can shrink further. */
static void shrink(const struct out_table *t, int width[COLS_MAX], int room)
{
	int total = GAP * (t->ncols - 1);

	for (int c = 0; c < t->ncols; c++)
		total += width[c];
	for (; total > room; total--) {
		int widest = -1;

		for (int c = 0; c < t->ncols; c++)
			if (t->cols[c].cut && width[c] > CUT_MIN &&
			    (widest < 0 || width[c] > width[widest]))
				widest = c;
		if (widest < 0)
			return;
		width[widest]--;
	}
}

/* Number of bytes of text that fill at most `columns`. */
static size_t fit(const char *text, int columns)
{
	size_t n = strlen(text), i = 0;

	while (i < n) {
		char one[5] = "";
		uint32_t u = 0;
		int len = out_utf8(text + i, n - i, &u);

		len = len ? len : 1;
		memcpy(one, text + i, (size_t)len);
		columns -= out_columns(one);
		if (columns < 0)
			break;
		i += (size_t)len;
	}
	return i;
}

static void print_cell(FILE *f, const char *text, int width, bool right, bool last)
{
	int columns = out_columns(text);
	int pad = width > columns ? width - columns : 0;

	if (right)
		fprintf(f, "%*s", pad, "");
	if (columns <= width)
		fputs(text, f);
	else
		fprintf(f, "%.*s…", (int)fit(text, width - 1), text);
	if (!right && !last)
		fprintf(f, "%*s", pad, "");
}

void out_table_print(const struct out_table *t, FILE *f, int width, bool header, bool color)
{
	int w[COLS_MAX] = { 0 };
	int last = t->ncols - 1;

	measure(t, header, w);
	if (width > 0)
		shrink(t, w, width);
	for (int c = 0; header && c <= last; c++) {
		fputs(out_sgr(color, OUT_BOLD), f);
		print_cell(f, t->cols[c].title, w[c], t->cols[c].right, c == last);
		fprintf(f, "%s%*s", out_sgr(color, OUT_PLAIN), c < last ? GAP : 0, "");
		if (c == last)
			putc('\n', f);
	}
	for (size_t i = 0; i < t->n; i++) {
		int c = (int)(i % (size_t)t->ncols);
		bool paint = color && t->cells[i].color != OUT_PLAIN;

		fputs(out_sgr(paint, t->cells[i].color), f);
		print_cell(f, t->cells[i].text, w[c], t->cols[c].right, c == last);
		fprintf(f, "%s%*s", out_sgr(paint, OUT_PLAIN), c < last ? GAP : 0, "");
		if (c == last)
			putc('\n', f);
	}
}
