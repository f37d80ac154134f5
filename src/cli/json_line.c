/* SPDX-License-Identifier: Apache-2.0 */
/* Writes lines of JSON to the chosen destination. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "cli/output.h"

static FILE *chosen;   /* --json-file, --json-fd */
static char about[64]; /* sandbox id; empty: none */

/* Duplicate the user's descriptor, so that later changes to it do not matter. */
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
	/* Child processes must not inherit it. */
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

void json_line_begin(struct json_line *l)
{
	enum { LINE_MAX_BYTES = 64 << 20 };

	l->text = (struct buf)BUF_INIT(LINE_MAX_BYTES);
	json_init(&l->json, &l->text);
}

/* Each top-level object starts with the id of its sandbox. */
static void write_object(struct str text, FILE *f)
{
	if (about[0] && text.n > 2 && text.p[0] == '{') {
		fprintf(f, "{\"sandbox\":\"%s\",", about);
		text = (struct str){ text.p + 1, text.n - 1 };
	}
	(void)fwrite(text.p, 1, text.n, f);
}

void json_line_print_to(struct json_line *l, FILE *f)
{
	f = out_json_stream(f);
	if (json_done(&l->json) < 0)
		fputs("{\"error\":{\"code\":\"failed\",\"message\":\"out of memory\"}}", f);
	else
		write_object(buf_str(&l->text), f);
	putc('\n', f);
	buf_done(&l->text);
}

void json_line_print(struct json_line *l)
{
	json_line_print_to(l, stdout);
}
