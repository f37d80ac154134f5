/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static FILE *chosen;   /* --json-file, --json-fd */
static char about[64]; /* the sandbox; empty: none */

/* A descriptor of our own, for whatever happens to the user's. */
static int open_chosen(const struct cmd_ctx *ctx, struct err *e)
{
	int fd = (int)ctx->json_fd, flags;

	if (ctx->json_file && ctx->json_fd)
		return err_set(e, ERR_INVALID, "--json-file and --json-fd exclude each other");
	if (ctx->json_file) {
		fd = open(ctx->json_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		return fd < 0 ? err_sys(e, errno, "--json-file '%s'", ctx->json_file) : fd;
	}
	flags = ctx->json_fd > INT_MAX ? -1 : fcntl(fd, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return err_set(e, ERR_INVALID, "--json-fd %llu is not open for writing",
			       (unsigned long long)ctx->json_fd);
	/* No process that we start may write to it. */
	if (fd > STDERR_FILENO)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return fd < 0 ? err_sys(e, errno, "--json-fd %d", (int)ctx->json_fd) : fd;
}

int out_json_to(const struct cmd_ctx *ctx, struct err *e)
{
	int fd;

	chosen = NULL;
	about[0] = '\0';
	if (!ctx->json_file && !ctx->json_fd)
		return 0;
	fd = open_chosen(ctx, e);
	if (fd < 0)
		return -1;
	chosen = fdopen(fd, "w");
	if (chosen)
		return 0;
	(void)close(fd);
	return err_sys(e, ENOMEM, "write JSON");
}

FILE *out_json_stream(FILE *otherwise)
{
	return chosen ? chosen : otherwise;
}

void out_json_about(const char *sandbox)
{
	(void)str_copy(about, sizeof about, str_of(sandbox));
}

int out_json_finish(void)
{
	FILE *f = chosen;
	bool failed = f && ferror(f);

	chosen = NULL;
	about[0] = '\0';
	errno = 0;
	if (!f || (fclose(f) == 0 && !failed))
		return 0;
	return errno ? -errno : -EIO;
}

static void put_quoted(FILE *f, struct str s)
{
	putc('"', f);
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(f, "\\u%04x", c);
		else
			putc(c, f);
	}
	putc('"', f);
}

static void put_base64(FILE *f, struct str s)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < s.n; i += 3) {
		uint32_t v = 0;

		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (i + k < s.n ? (unsigned char)s.p[i + k] : 0);
		putc(digits[v >> 18 & 63], f);
		putc(digits[v >> 12 & 63], f);
		putc(i + 1 < s.n ? digits[v >> 6 & 63] : '=', f);
		putc(i + 2 < s.n ? digits[v & 63] : '=', f);
	}
}

static bool is_utf8(struct str s)
{
	uint32_t u;

	for (size_t i = 0; i < s.n;) {
		int len = out_utf8(s.p + i, s.n - i, &u);

		if (len == 0)
			return false;
		i += (size_t)len;
	}
	return true;
}

static void put_key(struct out_json *j, const char *key)
{
	if (j->comma)
		putc(',', j->f);
	j->comma = true;
	if (!key)
		return;
	put_quoted(j->f, str_of(key));
	putc(':', j->f);
}

void out_json_open(struct out_json *j, const char *key, char bracket)
{
	bool top = j->depth++ == 0;

	if (top)
		j->f = out_json_stream(j->f);
	put_key(j, key);
	putc(bracket, j->f);
	j->comma = false;
	if (top && bracket == '{' && about[0])
		out_json_c(j, "sandbox", about);
}

void out_json_close(struct out_json *j, char bracket)
{
	j->depth--;
	putc(bracket, j->f);
	j->comma = true;
}

void out_json_text(struct out_json *j, const char *key, struct str value)
{
	put_key(j, key);
	if (is_utf8(value)) {
		put_quoted(j->f, value);
		return;
	}
	fputs("{\"b64\":\"", j->f);
	put_base64(j->f, value);
	fputs("\"}", j->f);
}

void out_json_c(struct out_json *j, const char *key, const char *value)
{
	if (value && value[0])
		out_json_text(j, key, str_of(value));
	else
		out_json_raw(j, key, NULL);
}

void out_json_num(struct out_json *j, const char *key, int64_t value)
{
	put_key(j, key);
	fprintf(j->f, "%lld", (long long)value);
}

void out_json_bool(struct out_json *j, const char *key, bool value)
{
	out_json_raw(j, key, value ? "true" : "false");
}

void out_json_ms(struct out_json *j, const char *key, uint64_t us)
{
	put_key(j, key);
	fprintf(j->f, "%llu.%03u", (unsigned long long)(us / 1000), (unsigned)(us % 1000));
}

void out_json_time(struct out_json *j, const char *key, uint64_t real_ns)
{
	char text[CLOCK_TEXT_SIZE];

	clock_text(real_ns, text);
	out_json_c(j, key, text);
}

void out_json_raw(struct out_json *j, const char *key, const char *value)
{
	put_key(j, key);
	fputs(value ? value : "null", j->f);
}

void out_json_line(struct out_json *j)
{
	putc('\n', j->f);
	j->comma = false;
}

void json_line_begin(struct json_line *l)
{
	enum { LINE_MAX_BYTES = 64 << 20 };

	l->text = (struct buf)BUF_INIT(LINE_MAX_BYTES);
	json_init(&l->json, &l->text);
}

void json_line_print(struct json_line *l)
{
	FILE *f = out_json_stream(stdout);

	if (json_done(&l->json) < 0)
		fputs("{\"error\":{\"code\":\"failed\",\"message\":\"out of memory\"}}", f);
	else
		(void)fwrite(l->text.data, 1, l->text.len, f);
	putc('\n', f);
	buf_done(&l->text);
}
