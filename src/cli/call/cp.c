/* SPDX-License-Identifier: Apache-2.0 */
/* cay cp: copies files between the host and sandboxes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "cli/context.h"
#include "cli/output.h"
#include "ops/json.h"

static const char *opt_user;
static uint64_t opt_max_size;

/* --- places --- */

/* A place as written, and its meaning. */
struct place {
	const char *arg;
	char name[LIMIT_NAME + 1];
	struct copy_place at;
};

static void place_done(struct place *p)
{
	if (p->at.kind == COPY_STREAM)
		fd_close(&p->at.fd);
}
DEFINE_AUTO(struct place, place_done)

static int take_sandbox(struct place *p, struct str ref, const char *path, struct err *e)
{
	if (ref.n == 0 || !str_copy(p->name, sizeof p->name, ref)) {
		err_set(e, ERR_INVALID, "'%.200s' names no sandbox", p->arg);
		return err_hint(e, "for a file with a colon in its name write ./%.200s", p->arg);
	}
	if (strlen(path) >= LIMIT_PATH)
		return err_set(e, ERR_INVALID, "the path in '%.40s...' is too long", p->arg);
	p->at = (struct copy_place){ .kind = COPY_SANDBOX,
				     .sandbox = p->name,
				     .path = path[0] ? path : "." };
	return 0;
}

/* "ID:path", "-", or a host path; a slash before the colon makes it a host path. */
static int parse_place(const char *arg, struct place *ret, struct err *e)
{
	const char *colon = strchr(arg, ':');
	struct stat st;

	ret->arg = arg;
	ret->at = (struct copy_place){ .path = arg, .fd = FD_NONE };
	if (arg[0] == '\0')
		return err_set(e, ERR_INVALID, "a path is empty");
	if (colon && !memchr(arg, '/', (size_t)(colon - arg)))
		return take_sandbox(ret, (struct str){ arg, (size_t)(colon - arg) }, colon + 1, e);
	/* Write to a device or fifo instead of replacing it. */
	if (strcmp(arg, "-") == 0 ||
	    (stat(arg, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode))))
		ret->at.kind = COPY_STREAM;
	return 0;
}

static int open_stream(struct place *p, int flags, int otherwise, struct err *e)
{
	if (p->at.kind != COPY_STREAM)
		return 0;
	p->at.fd = strcmp(p->arg, "-") == 0 ? fcntl(otherwise, F_DUPFD_CLOEXEC, 0)
					    : open(p->arg, flags | O_NOCTTY | O_CLOEXEC);
	return p->at.fd < 0 ? err_sys(e, errno, "open '%.200s'", p->arg) : 0;
}

static int open_places(struct cmd_ctx *ctx, struct place *from, struct place *to, struct err *e)
{
	if (ctx->nargs != 2)
		return err_set(e, ERR_INVALID, "cp needs a source and a destination");
	if (parse_place(ctx->args[0], from, e) < 0 || parse_place(ctx->args[1], to, e) < 0)
		return -1;
	if (ctx->json && to->at.kind == COPY_STREAM)
		return err_set(e, ERR_INVALID, "--json and '-' would both write to stdout");
	if (from->at.kind != COPY_SANDBOX && to->at.kind != COPY_SANDBOX) {
		err_set(e, ERR_INVALID, "neither '%.100s' nor '%.100s' is in a sandbox", from->arg,
			to->arg);
		return err_code(e, "copy.no_sandbox", NULL);
	}
	if (open_stream(from, O_RDONLY, STDIN_FILENO, e) < 0)
		return -1;
	return open_stream(to, O_WRONLY, STDOUT_FILENO, e);
}

/* --- what the user sees --- */

static void size_text(uint64_t bytes, char out[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)bytes;
	size_t u = 0;

	while (v >= 1024 && u + 1 < ARRAY_LEN(units)) {
		v /= 1024;
		u++;
	}
	(void)snprintf(out, 32, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

struct meter {
	uint64_t start_ns;
	bool shown;
};

static void show_progress(void *ctx, const struct progress *p)
{
	struct meter *m = ctx;
	char size[32];

	if (clock_mono_ns() - m->start_ns < NS_PER_S)
		return;
	m->shown = true;
	size_text(p->done, size);
	(void)fprintf(stderr, "\r\033[K%" PRIu64 " files, %s", p->items, size);
	(void)fflush(stderr);
}

static void report(const struct cmd_ctx *ctx, const struct copy_result *r)
{
	char size[32];

	size_text(r->n.bytes, size);
	if (ctx->json)
		PRINT_JSON(json_copied, r);
	if (!ctx->quiet)
		cli_print_warnings(&r->warnings);
	if (ctx->json || ctx->quiet)
		return;
	if (r->n.skipped)
		(void)fprintf(stderr,
			      "warning: skipped %" PRIu64
			      " sockets, fifos, devices or attributes\n",
			      r->n.skipped);
	if (r->n.changed)
		(void)fprintf(stderr, "warning: %" PRIu64 " files changed while they were read\n",
			      r->n.changed);
	(void)fprintf(stderr, "copied %" PRIu64 " %s, %s\n", r->n.files,
		      r->n.files == 1 ? "file" : "files", size);
}

static int copy(struct cmd_ctx *ctx, const struct copy_spec *spec, struct copy_result *ret,
		struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	struct meter m = { .start_ns = clock_mono_ns() };
	int r;

	if (cli_open_state(&c, e) < 0)
		return -1;
	if (!ctx->quiet && !ctx->json && isatty(STDERR_FILENO)) {
		c.progress = show_progress;
		c.progress_ctx = &m;
	}
	r = op_copy(&c, spec, ret, e);
	if (m.shown)
		(void)fputs("\r\033[K", stderr);
	return r;
}

static int cp_run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(place_done) struct place from = { 0 }, to = { 0 };
	struct copy_spec spec = { .user = opt_user, .max_bytes = opt_max_size };
	struct copy_result got;

	if (open_places(ctx, &from, &to, e) < 0)
		return -1;
	spec.from = from.at;
	spec.to = to.at;
	if (copy(ctx, &spec, &got, e) < 0)
		return -1;
	report(ctx, &got);
	if (got.n.unreadable)
		return err_set(e, ERR_FAILED, "%" PRIu64 " could not be read, the first: %s",
			       got.n.unreadable, got.n.unreadable_first);
	return 0;
}

static struct opt opts[] = {
	{ "user", 'u', OPT_TEXT, "USER", "Act inside as this user (name, uid or uid:gid)",
	  &opt_user },
	{ "max-size", 0, OPT_SIZE, "SIZE",
	  "Copy at most this much, such as 500M; with more the copy fails. Holes count",
	  &opt_max_size },
	{ 0 },
};

const struct cmd cmd_cp = {
	.name = "cp",
	.synopsis = "[options] SRC DST",
	.summary = "Copy files between the host and a sandbox",
	.details =
		"SRC and DST are paths on the host, ID:path for a path in a sandbox, or - for stdin\n"
		"or stdout. Directories are copied with all they hold. An existing directory as DST\n"
		"receives the copy; any other DST becomes the copy; a slash at its end says that it\n"
		"must be a directory. SRC/. copies what is in SRC, not SRC itself. A path inside\n"
		"without a leading slash starts from the sandbox's working directory. A host file\n"
		"with a colon in its name is written ./a:b. Blocks of zeros become holes. A file that\n"
		"was not copied completely is not left behind.\n",
	.examples = "cay cp ./src web:/app\n"
		    "cay cp web:/app/report.html .\n"
		    "cay cp web:/var/log/app.log - | grep error\n"
		    "echo hello | cay cp - web:notes/hello.txt\n"
		    "cay cp one:/data two:/data\n",
	.run = cp_run,
	.opts = opts,
	.data = true,
	.complete = "file",
};
