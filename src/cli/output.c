/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/safe.h"

enum { WRAP_AT = 80 };

static bool wants_color(const struct cmd_ctx *ctx, int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (ctx->color && strcmp(ctx->color, "auto") != 0)
		return strcmp(ctx->color, "always") == 0;
	if (no && no[0])
		return false;
	return term && strcmp(term, "dumb") != 0 && isatty(fd);
}

void out_colors(struct cmd_ctx *ctx)
{
	ctx->color_out = wants_color(ctx, STDOUT_FILENO);
	ctx->color_err = wants_color(ctx, STDERR_FILENO);
}

const char *out_sgr(bool on, enum out_color c)
{
	static const char *const sgr[] = {
		[OUT_PLAIN] = "\033[0m", [OUT_BOLD] = "\033[1m",   [OUT_DIM] = "\033[2m",
		[OUT_RED] = "\033[31m",	 [OUT_GREEN] = "\033[32m", [OUT_YELLOW] = "\033[33m",
	};

	return on ? sgr[c] : "";
}

int out_width(void)
{
	struct winsize w = { 0 };

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col == 0)
		return WRAP_AT;
	return w.ws_col;
}

int out_utf8(const char *p, size_t n, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char c = (unsigned char)p[0];
	int len = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
	uint32_t u = c;

	if (len == 0 || (size_t)len > n)
		return 0;
	if (len > 1)
		u = c & (0xffu >> (len + 1));
	for (int i = 1; i < len; i++) {
		if (((unsigned char)p[i] & 0xc0) != 0x80)
			return 0;
		u = u << 6 | ((unsigned char)p[i] & 0x3f);
	}
	if (u < least[len] || u > 0x10ffff || (u >= 0xd800 && u < 0xe000))
		return 0;
	*ret = u;
	return len;
}

void out_safe_to(FILE *f, struct str text)
{
	for (size_t i = 0; i < text.n;) {
		uint32_t u = 0;
		int len = out_utf8(text.p + i, text.n - i, &u);

		if (len == 0)
			fprintf(f, "\\x%02x", (unsigned char)text.p[i]);
		else if (u == '\n' || u == '\t' || u == '\r')
			fprintf(f, "\\%c", u == '\n' ? 'n' : u == '\t' ? 't' : 'r');
		else if (text_is_hostile(u))
			fprintf(f, u < 0x100 ? "\\x%02x" : u < 0x10000 ? "\\u%04x" : "\\U%08x", u);
		else
			fwrite(text.p + i, 1, (size_t)len, f);
		i += len ? (size_t)len : 1;
	}
}

void out_safe(const char *text)
{
	out_safe_to(stdout, str_of(text));
}

char *out_safe_dup(struct str text)
{
	char *out = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&out, &n);

	if (!f)
		return NULL;
	out_safe_to(f, text);
	if (fclose(f) == 0)
		return out;
	free(out);
	return NULL;
}

/* Works without locale tables: combining marks take no column, wide scripts two. */
static int columns_of(uint32_t u)
{
	if ((u >= 0x300 && u < 0x370) || (u >= 0x200b && u <= 0x200d) ||
	    (u >= 0xfe00 && u <= 0xfe0f))
		return 0;
	if ((u >= 0x1100 && u < 0x1160) || (u >= 0x2e80 && u < 0xa4d0) ||
	    (u >= 0xac00 && u < 0xd7a4) || (u >= 0xf900 && u < 0xfb00) ||
	    (u >= 0xff00 && u < 0xff61) || (u >= 0x1f300 && u < 0x1f650) ||
	    (u >= 0x1f900 && u < 0x1fa00) || (u >= 0x20000 && u < 0x40000))
		return 2;
	return 1;
}

int out_columns(const char *text)
{
	size_t n = strlen(text);
	int columns = 0;

	for (size_t i = 0; i < n;) {
		uint32_t u = 0;
		int len = out_utf8(text + i, n - i, &u);

		columns += len ? columns_of(u) : 1;
		i += len ? (size_t)len : 1;
	}
	return columns;
}

void out_wrap(FILE *f, const char *text, int indent, int at)
{
	bool fresh = true;

	while (*text) {
		size_t n = strcspn(text, " \n");
		int width = (int)n;

		if (!fresh && at + 1 + width > WRAP_AT) {
			fprintf(f, "\n%*s", indent, "");
			at = indent;
			fresh = true;
		}
		fprintf(f, "%s%.*s", fresh ? "" : " ", (int)n, text);
		at += width + !fresh;
		fresh = false;
		text += n;
		if (text[0] == '\n' && (text[1] == ' ' || text[1] == '\n' || text[1] == '\0')) {
			size_t keep = 1 + strspn(text + 1, "\n");

			for (size_t i = 0; i < keep; i++)
				putc('\n', f);
			text += keep;
			n = strspn(text, " ");
			if (*text)
				fprintf(f, "%*s", indent + (int)n, "");
			at = indent + (int)n;
			fresh = true;
		}
		text += strspn(text, " \n");
	}
	if (!fresh)
		putc('\n', f);
}

const char *out_size(uint64_t bytes, char out[OUT_NUMBER])
{
	return number_short(bytes, out);
}

const char *out_duration(uint64_t us, char out[OUT_NUMBER])
{
	uint64_t s = us / 1000000;

	if (us < 1000)
		(void)snprintf(out, OUT_NUMBER, "%uus", (unsigned)us);
	else if (us < 1000000)
		(void)snprintf(out, OUT_NUMBER, "%ums", (unsigned)(us / 1000));
	else if (s < 60)
		(void)snprintf(out, OUT_NUMBER, "%u.%us", (unsigned)s,
			       (unsigned)(us % 1000000 / 100000));
	else if (s < 3600)
		(void)snprintf(out, OUT_NUMBER, "%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
	else if (s < 86400)
		(void)snprintf(out, OUT_NUMBER, "%uh%02um", (unsigned)(s / 3600),
			       (unsigned)(s % 3600 / 60));
	else
		(void)snprintf(out, OUT_NUMBER, "%llud%02uh", (unsigned long long)(s / 86400),
			       (unsigned)(s % 86400 / 3600));
	return out;
}

const char *out_age(uint64_t since_ns, uint64_t now_ns, char out[OUT_NUMBER])
{
	/* If the clock was set back, the age is 0. */
	unsigned long long s = now_ns > since_ns ? (now_ns - since_ns) / NS_PER_S : 0;

	if (s < 60)
		(void)snprintf(out, OUT_NUMBER, "%llus", s);
	else if (s < 3600)
		(void)snprintf(out, OUT_NUMBER, "%llum", s / 60);
	else if (s < 86400)
		(void)snprintf(out, OUT_NUMBER, "%lluh", s / 3600);
	else
		(void)snprintf(out, OUT_NUMBER, "%llud", s / 86400);
	return out;
}
