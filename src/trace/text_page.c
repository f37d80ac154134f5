/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/text_page.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/safe.h"

enum { ARGV_MOST = 320 }; /* maximum of a command */

void page_say(struct page *p, const char *text)
{
	if (p->err == 0)
		p->err = buf_add_c(p->out, text);
}

void page_sayf(struct page *p, const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	page_say(p, text);
}

void page_say_safe(struct page *p, struct str text, size_t most)
{
	if (p->err == 0)
		p->err = text_safe_cut(p->out, text, most);
}

const json_t *page_field(const struct page *p, const char *key)
{
	return json_object_get(p->fields, key);
}

int64_t page_number(const struct page *p, const char *key)
{
	return json_integer_value(page_field(p, key));
}

bool page_has_num(const struct page *p, const char *key)
{
	return json_is_integer(page_field(p, key));
}

bool page_is_set(const struct page *p, const char *key)
{
	return json_is_true(page_field(p, key));
}

/* True if the field is a non-empty text or list. */
bool page_has(const struct page *p, const char *key)
{
	const json_t *v = page_field(p, key);

	return json_string_length(v) > 0 || json_object_size(v) > 0 || json_array_size(v) > 0;
}

bool page_text_is(const struct page *p, const char *key, const char *want)
{
	const char *v = json_string_value(page_field(p, key));

	return v && strcmp(v, want) == 0;
}

void page_say_value(struct page *p, const json_t *v)
{
	auto_done(buf_done) struct buf raw = BUF_INIT(LIMIT_EVENT);
	auto_free char *dump = NULL;

	if (trace_value_text(v, &raw) == 0) {
		page_say_safe(p, buf_str(&raw), PAGE_TEXT);
		return;
	}
	dump = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
	page_say_safe(p, str_of(dump), PAGE_TEXT);
}

void page_say_field(struct page *p, const char *key)
{
	if (page_field(p, key))
		page_say_value(p, page_field(p, key));
}

/* Notes are in parentheses after the main part: page_note() opens or separates them. */
void page_note(struct page *p)
{
	page_say(p, p->notes++ ? ", " : "  (");
}

void page_note_field(struct page *p, const char *before, const char *key)
{
	if (!page_has(p, key))
		return;
	page_note(p);
	page_say(p, before);
	page_say_field(p, key);
}

void page_notes_end(struct page *p)
{
	if (p->notes)
		page_say(p, ")");
}

void page_say_size(struct page *p, int64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	double v = (double)bytes / 1024;
	size_t u = 0;

	if (bytes < 1024) {
		page_sayf(p, "%" PRId64 " byte%s", bytes, bytes == 1 ? "" : "s");
		return;
	}
	for (; v >= 1024 && u + 1 < ARRAY_LEN(units); u++)
		v /= 1024;
	page_sayf(p, v < 10 ? "%.1f %s" : "%.0f %s", v, units[u]);
}

void page_say_duration(struct page *p, int64_t us)
{
	int64_t s = us / 1000000;

	if (us < 1000)
		page_sayf(p, "%" PRId64 " us", us);
	else if (s == 0)
		page_sayf(p, us < 10000 ? "%.1f ms" : "%.0f ms", (double)us / 1e3);
	else if (s < 60)
		page_sayf(p, s < 10 ? "%.2f s" : "%.1f s", (double)us / 1e6);
	else if (s < 3600)
		page_sayf(p, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
	else
		page_sayf(p, "%" PRId64 " h %" PRId64 " min", s / 3600, s / 60 % 60);
}

/* text_safe_cut() handles bytes above ASCII. */
static bool needs_quotes(struct str arg)
{
	for (size_t i = 0; i < arg.n; i++) {
		unsigned char c = (unsigned char)arg.p[i];

		if (c < 0x80 && !isalnum(c) && (c == 0 || !strchr("_@%+=:,./-", c)))
			return true;
	}
	return arg.n == 0;
}

/* One argument, quoted for a shell. */
static int add_arg(struct buf *line, struct str arg)
{
	int r = 0;

	if (!needs_quotes(arg))
		return buf_add_str(line, arg);
	r = buf_add_c(line, "'");
	for (size_t i = 0; i < arg.n && r == 0; i++)
		r = arg.p[i] == '\'' ? buf_add_c(line, "'\\''") : buf_add(line, arg.p + i, 1);
	return r < 0 ? r : buf_add_c(line, "'");
}

void page_say_argv(struct page *p, const json_t *argv)
{
	auto_done(buf_done) struct buf line = BUF_INIT(4 * LIMIT_EVENT);
	size_t n = json_array_size(argv);
	int r = 0;

	for (size_t i = 0; i < n && r == 0 && line.len <= ARGV_MOST; i++) {
		auto_done(buf_done) struct buf arg = BUF_INIT(LIMIT_EVENT);

		if (i > 0)
			r = buf_add_c(&line, " ");
		if (r == 0 && trace_value_text(json_array_get(argv, i), &arg) == 0)
			r = add_arg(&line, buf_str(&arg));
	}
	if (p->err == 0)
		p->err = r;
	page_say_safe(p, buf_str(&line), ARGV_MOST);
}

void page_say_list(struct page *p, const char *key)
{
	const json_t *list = page_field(p, key);
	size_t n = json_array_size(list);

	for (size_t i = 0; i < n && i < PAGE_LIST; i++) {
		if (i > 0)
			page_say(p, " ");
		page_say_value(p, json_array_get(list, i));
	}
	if (n > PAGE_LIST)
		page_sayf(p, " and %zu more", n - PAGE_LIST);
}
