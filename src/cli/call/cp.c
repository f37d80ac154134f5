/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay cp: files between the host and sandboxes. Each end in a sandbox is a call there, run by
 * the sandbox's user; trees travel as tar streams, a single file to or from "-" as bytes.
 * What happens on the host happens in a child (cli/call/side.h), below a descriptor of the
 * destination, since the stream comes from inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/limits.h"
#include "cli/call/file_op.h"
#include "cli/call/side.h"
#include "cli/cmd.h"
#include "image/tar_pack.h"
#include "image/tar_unpack.h"
#include "store/catalog.h"

enum { STDERR_MAX = 64 * 1024, FILE_MODE = 0644 };

static const char *opt_user;
static uint64_t opt_max_size;

enum place_kind { PLACE_LOCAL, PLACE_SANDBOX, PLACE_STREAM };

struct place {
	enum place_kind kind;
	const char *arg;  /* as given */
	const char *path; /* local, or inside */
	char id[ID_SIZE];
};

struct copy {
	struct state *state;
	struct place from, to;
	struct tree_progress progress;
	struct tree_counts n;
	bool quiet;
};

struct meter {
	uint64_t start_ns, shown_ns;
};

/* --- places --- */

static int find_sandbox(struct state *s, struct place *p, struct str ref, struct err *e)
{
	struct sandbox_row row = { 0 };
	struct catalog *c;
	char name[LIMIT_NAME + 1];
	int k;

	if (ref.n == 0 || !str_copy(name, sizeof name, ref)) {
		err_set(e, ERR_INVALID, "'%.200s' names no sandbox", p->arg);
		return err_hint(e, "for a file with a colon in its name write ./%.200s", p->arg);
	}
	if (catalog_open(s, &c, e) < 0)
		return -1;
	k = catalog_find(c, name, &row, e);
	if (k == 0)
		memcpy(p->id, row.id, sizeof p->id);
	sandbox_row_done(&row);
	catalog_close(c);
	return k;
}

/* "ID:path", "-", or a local path; a slash before the colon makes it local. */
static int parse_place(struct state *s, const char *arg, struct place *ret, struct err *e)
{
	const char *colon = strchr(arg, ':');
	struct stat st;

	*ret = (struct place){ .arg = arg, .path = arg };
	if (strcmp(arg, "-") == 0) {
		ret->kind = PLACE_STREAM;
		return 0;
	}
	if (arg[0] == '\0')
		return err_set(e, ERR_INVALID, "a path is empty");
	if (!colon || memchr(arg, '/', (size_t)(colon - arg))) {
		/* A device or fifo is written to, not replaced. */
		if (stat(arg, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)))
			ret->kind = PLACE_STREAM;
		return 0;
	}
	ret->kind = PLACE_SANDBOX;
	ret->path = colon[1] ? colon + 1 : ".";
	if (strlen(ret->path) >= LIMIT_PATH)
		return err_set(e, ERR_INVALID, "the path in '%.40s...' is too long", arg);
	return find_sandbox(s, ret, (struct str){ arg, (size_t)(colon - arg) }, e);
}

/* --- calls --- */

/* Text from inside for a terminal: names may hold control sequences. */
static void make_printable(struct buf *b)
{
	while (b->len > 0 && b->data[b->len - 1] == '\n')
		b->data[--b->len] = '\0';
	for (size_t i = 0; i < b->len; i++)
		if ((unsigned char)b->data[i] < 0x20 || (unsigned char)b->data[i] >= 0x7f)
			b->data[i] = '?';
}

/* An error inside that only says that the stream broke off: see side_is_echo(). */
static int echo_of(const char *text)
{
	if (strstr(text, "the tar stream ended"))
		return ENODATA;
	return strstr(text, strerror(EPIPE)) ? EPIPE : 0;
}

static int run_op(struct copy *c, const struct place *p, enum call_op op, struct client_io io,
		  struct err *e)
{
	auto_done(buf_done) struct buf text = BUF_INIT(STDERR_MAX);
	int code = 0;

	if (client_file_op(c->state, p->id, op, p->path, FILE_MODE, opt_user, io, &text, &code, e) <
	    0)
		return -1;
	if (code == 0 && text.len == 0)
		return 0;
	make_printable(&text);
	if (code != 0 && text.len) {
		err_set(e, ERR_FAILED, "%s: %s", p->id, text.data);
		e->sys = echo_of(text.data);
		return -1;
	}
	if (code != 0)
		return err_set(e, ERR_FAILED, "%s: the copy failed inside with code %d", p->id,
			       code);
	if (!c->quiet)
		(void)fprintf(stderr, "warning: %s: %s\n", p->id, text.data);
	return 0;
}

/*
 * End a copy that had a local side: of two errors the one that is not merely the echo of the
 * other is what the user needs.
 */
static int settle(struct copy *c, struct side *s, int op_rc, struct err *e)
{
	struct err side_err = { 0 };
	int rc = side_wait(s, &c->n, &side_err);

	if (rc < 0 && (op_rc == 0 || !side_is_echo(&side_err)))
		*e = side_err;
	return op_rc < 0 || rc < 0 ? -1 : 0;
}

/* --- the local sides --- */

static int pack_side(void *ctx, int fd, struct tree_counts *n, struct err *e)
{
	struct copy *c = ctx;

	return tar_pack(&(struct tar_pack){ .out_fd = fd,
					    .dir_fd = AT_FDCWD,
					    .path = c->from.path,
					    .max_bytes = opt_max_size,
					    .progress = c->progress },
			n, e);
}

struct landing {
	struct copy *c;
	int dir_fd;
	const char *want, *as;
};

static int unpack_side(void *ctx, int fd, struct tree_counts *n, struct err *e)
{
	struct landing *l = ctx;

	/*
	 * These end the copy, so that the stream ends early. Then a half-written file is removed,
	 * where the file system could not do without a name for it.
	 */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	return tar_unpack(&(struct tar_unpack){ .in_fd = fd,
						.dir_fd = l->dir_fd,
						.want = l->want,
						.as = l->as,
						.mode_mask = 0777,
						.max_bytes = opt_max_size,
						.progress = l->c->progress },
			  n, e);
}

static int open_stream(const struct place *p, int flags, int otherwise, struct err *e)
{
	int fd = strcmp(p->arg, "-") == 0 ? fcntl(otherwise, F_DUPFD_CLOEXEC, 0)
					  : open(p->path, flags | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? err_sys(e, errno, "open '%.200s'", p->arg) : fd;
}

static int stdin_side(void *ctx, int fd, struct tree_counts *n, struct err *e)
{
	struct copy *c = ctx;
	auto_close int in = open_stream(&c->from, O_RDONLY, STDIN_FILENO, e);

	return in < 0 ? -1 : side_relay_bytes(in, fd, opt_max_size, &c->progress, n, e);
}

static int stdout_side(void *ctx, int fd, struct tree_counts *n, struct err *e)
{
	struct copy *c = ctx;
	auto_close int out = open_stream(&c->to, O_WRONLY, STDOUT_FILENO, e);

	return out < 0 ? -1 : side_relay_bytes(fd, out, opt_max_size, &c->progress, n, e);
}

static int source_side(void *ctx, int fd, struct tree_counts *n, struct err *e)
{
	struct copy *c = ctx;

	(void)n;
	return run_op(c, &c->from, OP_READ_TREE,
		      (struct client_io){ .in_fd = FD_NONE, .out_fd = fd }, e);
}

struct relay {
	struct copy *c;
	int in_fd;
	const char *want;
};

static int relay_side(void *ctx, int fd, struct tree_counts *n, struct err *e)
{
	struct relay *r = ctx;

	return side_relay_tar(r->in_fd, fd, r->want, opt_max_size, &r->c->progress, n, e);
}

/* --- the five ways --- */

static int copy_in(struct copy *c, side_fn *fn, enum call_op op, struct err *e)
{
	struct side s;
	int k;

	if (side_start(&s, fn, c, true, e) < 0)
		return -1;
	k = run_op(c, &c->to, op, (struct client_io){ s.fd, FD_NONE, side_is_whole, &s }, e);
	return settle(c, &s, k, e);
}

static int copy_out(struct copy *c, side_fn *fn, void *ctx, enum call_op op, struct err *e)
{
	struct side s;
	int k;

	if (side_start(&s, fn, ctx, false, e) < 0)
		return -1;
	k = run_op(c, &c->from, op, (struct client_io){ .in_fd = FD_NONE, .out_fd = s.fd }, e);
	return settle(c, &s, k, e);
}

/* The name that a stream from path must begin with; NULL in *ret where that is free. */
static int wanted(const char *path, char top[256], const char **ret, struct err *e)
{
	if (!tar_pack_top(path, top))
		return err_set(e, ERR_INVALID, "'%.200s': name is too long", path);
	*ret = strcmp(top, ".") == 0 ? NULL : top;
	return 0;
}

/* What is there is replaced by rename(2): a device or fifo would be gone, not written to. */
static int refuse_device(const struct landing *l, const char *dest, struct err *e)
{
	struct stat st;

	if (fstatat(l->dir_fd, l->as, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) || S_ISFIFO(st.st_mode) ||
	      S_ISSOCK(st.st_mode)))
		return 0;
	err_set(e, ERR_INVALID, "'%.200s' is a device, fifo or socket", dest);
	return err_hint(e, "copy to '-' and redirect it: cay cp ID:PATH - > %.150s", dest);
}

/* Where on the host the copy goes: into a directory, or beside others under a new name. */
static int find_landing(const char *dest, struct landing *l, struct err *e)
{
	const char *slash = strrchr(dest, '/');
	auto_free char *parent = NULL;

	l->dir_fd = open(dest, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->dir_fd >= 0)
		return 0;
	if (errno != ENOENT && errno != ENOTDIR)
		return err_sys(e, errno, "cannot open '%.200s'", dest);
	if (slash && slash[1] == '\0') {
		err_set(e, ERR_NOT_FOUND, "'%.200s' is not a directory", dest);
		return err_hint(e, "make it first, or leave out the slash at its end");
	}
	parent = slash ? strndup(dest, (size_t)(slash - dest) + 1) : strdup(".");
	if (!parent)
		return err_sys(e, ENOMEM, "cannot open '%.200s'", dest);
	l->dir_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->dir_fd < 0)
		return err_sys(e, errno, "cannot open '%.200s'", parent);
	l->as = slash ? slash + 1 : dest;
	return 0;
}

static int copy_to_host(struct copy *c, struct err *e)
{
	struct landing l = { .c = c, .dir_fd = FD_NONE };
	char top[256];
	int k;

	if (wanted(c->from.path, top, &l.want, e) < 0)
		return -1;
	k = find_landing(c->to.path, &l, e);
	if (k == 0 && l.as)
		k = refuse_device(&l, c->to.path, e);
	if (k == 0)
		k = copy_out(c, unpack_side, &l, OP_READ_TREE, e);
	/* It was there when it was looked for: whoever moves it meanwhile does not make a success.
	 */
	if (k == 0 && c->n.files + c->n.dirs + c->n.skipped + c->n.unreadable == 0)
		k = err_set(e, ERR_NOT_FOUND, "'%.200s' went away while it was copied",
			    c->from.arg);
	fd_close(&l.dir_fd);
	return k;
}

static int copy_to_stdout(struct copy *c, struct err *e)
{
	static const char dir[] = "is a directory";
	size_t n;

	if (copy_out(c, stdout_side, c, OP_READ_FILE, e) == 0)
		return 0;
	n = strlen(e->msg);
	if (n >= sizeof dir && strcmp(e->msg + n - (sizeof dir - 1), dir) == 0)
		err_hint(e, "only a file can go to stdout; copy it to a directory: cay cp %.150s .",
			 c->from.arg);
	return -1;
}

static int copy_between(struct copy *c, struct err *e)
{
	struct relay r = { .c = c };
	struct tree_counts none;
	struct side source, relay;
	struct err source_err = { 0 };
	char top[256];
	int k;

	if (wanted(c->from.path, top, &r.want, e) < 0 ||
	    side_start(&source, source_side, c, true, e) < 0)
		return -1;
	r.in_fd = source.fd;
	if (side_start(&relay, relay_side, &r, true, e) < 0) {
		(void)side_wait(&source, &none, &source_err);
		return -1;
	}
	fd_close(&source.fd);
	k = run_op(c, &c->to, OP_WRITE_TREE,
		   (struct client_io){ relay.fd, FD_NONE, side_is_whole, &relay }, e);
	k = settle(c, &relay, k, e);
	/* Had the source failed, the others would have seen no more than an early end. */
	if (side_wait(&source, &none, &source_err) < 0) {
		if (k == 0 || !side_is_echo(&source_err))
			*e = source_err;
		return -1;
	}
	return k;
}

static int copy(struct copy *c, struct err *e)
{
	enum place_kind from = c->from.kind, to = c->to.kind;

	if (from == PLACE_SANDBOX && to == PLACE_SANDBOX)
		return copy_between(c, e);
	if (from == PLACE_SANDBOX && to == PLACE_LOCAL)
		return copy_to_host(c, e);
	if (from == PLACE_SANDBOX)
		return copy_to_stdout(c, e);
	if (to == PLACE_SANDBOX && from == PLACE_LOCAL)
		return copy_in(c, pack_side, OP_WRITE_TREE, e);
	if (to == PLACE_SANDBOX)
		return copy_in(c, stdin_side, OP_WRITE_FILE, e);
	err_set(e, ERR_INVALID, "neither '%.100s' nor '%.100s' is in a sandbox", c->from.arg,
		c->to.arg);
	return err_hint(e, "write ID:/path for a path in a sandbox");
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

/* Runs in the side's process, which alone knows how far it is. */
static void show_progress(void *ctx, const struct tree_counts *n)
{
	struct meter *m = ctx;
	uint64_t now = clock_mono_ns();
	char size[32];

	if (now - m->start_ns < NS_PER_S || now - m->shown_ns < 100 * NS_PER_MS)
		return;
	m->shown_ns = now;
	size_text(n->bytes, size);
	(void)fprintf(stderr, "\r\033[K%" PRIu64 " files, %s", n->files, size);
	(void)fflush(stderr);
}

static void report(const struct cmd_ctx *ctx, const struct tree_counts *n)
{
	char size[32];

	size_text(n->bytes, size);
	if (ctx->json)
		(void)printf("{\"files\":%" PRIu64 ",\"directories\":%" PRIu64 ",\"bytes\":%" PRIu64
			     ",\"skipped\":%" PRIu64 ",\"changed\":%" PRIu64 "}\n",
			     n->files, n->dirs, n->bytes, n->skipped, n->changed);
	if (ctx->json || ctx->quiet)
		return;
	if (n->skipped)
		(void)fprintf(stderr,
			      "warning: skipped %" PRIu64
			      " sockets, fifos, devices or attributes\n",
			      n->skipped);
	if (n->changed)
		(void)fprintf(stderr, "warning: %" PRIu64 " files changed while they were read\n",
			      n->changed);
	(void)fprintf(stderr, "copied %" PRIu64 " %s, %s\n", n->files,
		      n->files == 1 ? "file" : "files", size);
}

static int parse_places(struct cmd_ctx *ctx, struct copy *c, struct err *e)
{
	if (ctx->nargs != 2)
		return err_set(e, ERR_INVALID, "cp needs a source and a destination");
	if (parse_place(c->state, ctx->args[0], &c->from, e) < 0 ||
	    parse_place(c->state, ctx->args[1], &c->to, e) < 0)
		return -1;
	if (ctx->json && c->to.kind == PLACE_STREAM)
		return err_set(e, ERR_INVALID, "--json and '-' would both write to stdout");
	return 0;
}

static int copy_and_report(struct cmd_ctx *ctx, struct copy *c, struct err *e)
{
	struct meter m = { .start_ns = clock_mono_ns() };
	bool live = !ctx->quiet && !ctx->json && isatty(STDERR_FILENO);
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);
	int k;

	if (live)
		c->progress = (struct tree_progress){ show_progress, &m };
	c->quiet = ctx->quiet;
	k = copy(c, e);
	c->progress = (struct tree_progress){ 0 };
	(void)signal(SIGPIPE, old);
	if (live && clock_mono_ns() - m.start_ns >= NS_PER_S)
		(void)fputs("\r\033[K", stderr);
	if (k < 0)
		return -1;
	report(ctx, &c->n);
	if (c->n.unreadable)
		return err_set(e, ERR_FAILED, "%" PRIu64 " could not be read, the first: %s",
			       c->n.unreadable, c->n.unreadable_first);
	return 0;
}

static int cp_run(struct cmd_ctx *ctx, struct err *e)
{
	struct state s;
	struct copy c = { .state = &s };
	int k;

	if (state_open(&s, e) < 0)
		return -1;
	k = parse_places(ctx, &c, e);
	if (k == 0)
		k = copy_and_report(ctx, &c, e);
	state_done(&s);
	return k;
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
