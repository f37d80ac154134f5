/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/copy/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/tar_pack.h"
#include "image/tar_unpack.h"
#include "ops/copy/copy_helper.h"
#include "ops/copy/file_call.h"

enum { FILE_MODE = 0644 };

struct copy {
	struct cay *c;
	const struct copy_spec *spec;
	char from_id[ID_SIZE], to_id[ID_SIZE];
	struct copy_result *ret;
};

/* --- calls --- */

/* Text from the sandbox: names may contain control sequences. */
static void make_printable(struct buf *b)
{
	while (b->len > 0 && b->data[b->len - 1] == '\n')
		b->data[--b->len] = '\0';
	for (size_t i = 0; i < b->len; i++)
		if ((unsigned char)b->data[i] < 0x20 || (unsigned char)b->data[i] >= 0x7f)
			b->data[i] = '?';
}

/* Non-zero if an error from inside only says that the stream broke off: see copy_is_echo(). */
static int echo_of(const char *text)
{
	if (strstr(text, "the tar stream ended"))
		return ENODATA;
	return strstr(text, strerror(EPIPE)) ? EPIPE : 0;
}

static int call_start(struct copy *k, struct file_call *f, bool to, enum call_op op, int fd,
		      struct copy_helper *whole, struct err *e)
{
	const struct copy_place *p = to ? &k->spec->to : &k->spec->from;
	const struct file_call_spec spec = {
		.id = to ? k->to_id : k->from_id,
		.op = op,
		.path = p->path,
		.user = k->spec->user,
		.mode = FILE_MODE,
		.in_fd = to ? fd : FD_NONE,
		.out_fd = to ? FD_NONE : fd,
		.in_whole = to ? copy_helper_is_whole : NULL,
		.in_ctx = whole,
	};

	return file_call_start(f, k->c, &spec, e);
}

/* Waits until the call ends. Output on stderr of a successful call becomes a warning. */
static int call_wait(struct copy *k, struct file_call *f, struct err *e)
{
	char text[200];

	if (file_call_wait(f, e) < 0)
		return -1;
	if (f->code == 0 && f->text.len == 0)
		return 0;
	make_printable(&f->text);
	if (f->code != 0 && f->text.len) {
		err_set(e, ERR_FAILED, "%s: %s", f->spec.id, f->text.data);
		e->sys = echo_of(f->text.data);
		return -1;
	}
	if (f->code != 0)
		return err_set(e, ERR_FAILED, "%s: the copy failed inside with code %d", f->spec.id,
			       f->code);
	(void)snprintf(text, sizeof text, "%s: %.180s", f->spec.id, f->text.data);
	warnings_add(&k->ret->warnings, "copy.inside", str_of(text));
	return 0;
}

/* --- what the helpers do --- */

static int pack_host(void *ctx, int fd, const struct tree_progress *p, struct tree_counts *n,
		     struct err *e)
{
	const struct copy_spec *s = ((struct copy *)ctx)->spec;

	return tar_pack(&(struct tar_pack){ .out_fd = fd,
					    .dir_fd = AT_FDCWD,
					    .path = s->from.path,
					    .max_bytes = s->max_bytes,
					    .progress = *p },
			n, e);
}

/* The destination on the host. */
struct destination {
	struct copy *k;
	int dir_fd;
	const char *want, *as; /* want: the required name; as: the new name, NULL: unchanged */
};

static int unpack_host(void *ctx, int fd, const struct tree_progress *p, struct tree_counts *n,
		       struct err *e)
{
	struct destination *d = ctx;

	return tar_unpack(&(struct tar_unpack){ .in_fd = fd,
						.dir_fd = d->dir_fd,
						.want = d->want,
						.as = d->as,
						.mode_mask = 0777,
						.max_bytes = d->k->spec->max_bytes,
						.progress = *p },
			  n, e);
}

static int read_stream(void *ctx, int fd, const struct tree_progress *p, struct tree_counts *n,
		       struct err *e)
{
	const struct copy_spec *s = ((struct copy *)ctx)->spec;

	return copy_bytes(s->from.fd, fd, s->max_bytes, p, n, e);
}

static int write_stream(void *ctx, int fd, const struct tree_progress *p, struct tree_counts *n,
			struct err *e)
{
	const struct copy_spec *s = ((struct copy *)ctx)->spec;

	return copy_bytes(fd, s->to.fd, s->max_bytes, p, n, e);
}

struct relay {
	struct copy *k;
	int in_fd;
	int parents_fd; /* the other end; the child must close it */
	const char *want;
};

static int relay_tree(void *ctx, int fd, const struct tree_progress *p, struct tree_counts *n,
		      struct err *e)
{
	struct relay *r = ctx;

	fd_close(&r->parents_fd);
	return copy_tar(r->in_fd, fd, r->want, r->k->spec->max_bytes, p, n, e);
}

/* --- the five ways --- */

/*
 * End a copy that had a helper. Of two errors, report the one that is not merely an echo of the
 * other.
 */
static int join_helper(struct copy *k, struct copy_helper *h, int rc, struct err *e)
{
	struct err of_helper = { 0 };
	int r = copy_helper_wait(h, &k->ret->n, &of_helper);

	if (r < 0 && (rc == 0 || !copy_is_echo(&of_helper)))
		*e = of_helper;
	return rc < 0 || r < 0 ? -1 : 0;
}

static int copy_in(struct copy *k, copy_helper_fn *fn, enum call_op op, struct err *e)
{
	auto_done(file_call_done) struct file_call f = { 0 };
	struct copy_helper h;
	int r;

	if (copy_helper_start(&h, k->c, fn, k, COPY_WRITES, e) < 0)
		return -1;
	r = call_start(k, &f, true, op, h.fd, &h, e);
	if (r == 0)
		r = call_wait(k, &f, e);
	file_call_done(&f);
	return join_helper(k, &h, r, e);
}

static int copy_out(struct copy *k, copy_helper_fn *fn, void *ctx, enum copy_way way,
		    enum call_op op, struct err *e)
{
	auto_done(file_call_done) struct file_call f = { 0 };
	struct copy_helper h;
	int r;

	if (copy_helper_start(&h, k->c, fn, ctx, way, e) < 0)
		return -1;
	r = call_start(k, &f, false, op, h.fd, NULL, e);
	if (r == 0)
		r = call_wait(k, &f, e);
	file_call_done(&f);
	return join_helper(k, &h, r, e);
}

/* Returns the name that a stream from path must begin with; NULL in *ret if any name is allowed. */
static int wanted(const char *path, char top[256], const char **ret, struct err *e)
{
	if (!tar_pack_top(path, top))
		return err_set(e, ERR_INVALID, "'%.200s': name is too long", path);
	*ret = strcmp(top, ".") == 0 ? NULL : top;
	return 0;
}

/*
 * The copy replaces an existing entry by rename(2). That would remove a device or fifo instead of
 * writing to it.
 */
static int refuse_device(const struct destination *d, const char *path, struct err *e)
{
	struct stat st;

	if (fstatat(d->dir_fd, d->as, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) || S_ISFIFO(st.st_mode) ||
	      S_ISSOCK(st.st_mode)))
		return 0;
	err_set(e, ERR_INVALID, "'%.200s' is a device, fifo or socket", path);
	return err_code(e, "copy.device", path);
}

/* Opens the destination: into a directory, or under a new name beside other entries. */
static int open_destination(const char *path, struct destination *d, struct err *e)
{
	const char *slash = strrchr(path, '/');
	auto_free char *parent = NULL;

	d->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->dir_fd >= 0)
		return 0;
	if (errno != ENOENT && errno != ENOTDIR)
		return err_sys(e, errno, "cannot open '%.200s'", path);
	if (slash && slash[1] == '\0') {
		err_set(e, ERR_NOT_FOUND, "'%.200s' is not a directory", path);
		return err_code(e, "copy.no_directory", NULL);
	}
	parent = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	if (!parent)
		return err_sys(e, ENOMEM, "cannot open '%.200s'", path);
	d->dir_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->dir_fd < 0)
		return err_sys(e, errno, "cannot open '%.200s'", parent);
	d->as = slash ? slash + 1 : path;
	return refuse_device(d, path, e);
}

static int copy_to_host(struct copy *k, struct err *e)
{
	struct destination d = { .k = k, .dir_fd = FD_NONE };
	const struct tree_counts *n = &k->ret->n;
	char top[256];
	int r = wanted(k->spec->from.path, top, &d.want, e);

	if (r == 0)
		r = open_destination(k->spec->to.path, &d, e);
	if (r == 0)
		r = copy_out(k, unpack_host, &d, COPY_READS_ON, CALL_READ_TREE, e);
	/*
	 * The source existed at the first check. If it was moved away meanwhile, an empty copy is a
	 * failure.
	 */
	if (r == 0 && n->files + n->dirs + n->skipped + n->unreadable == 0)
		r = err_set(e, ERR_NOT_FOUND, "'%.40s:%.200s' went away while it was copied",
			    k->spec->from.sandbox, k->spec->from.path);
	fd_close(&d.dir_fd);
	return r;
}

static int copy_to_stream(struct copy *k, struct err *e)
{
	static const char dir[] = "is a directory";
	char about[sizeof e->about];
	size_t n;

	if (copy_out(k, write_stream, k, COPY_READS, CALL_READ_FILE, e) == 0)
		return 0;
	n = strlen(e->msg);
	if (n < sizeof dir || strcmp(e->msg + n - (sizeof dir - 1), dir) != 0)
		return -1;
	(void)snprintf(about, sizeof about, "%s:%s", k->spec->from.sandbox, k->spec->from.path);
	return err_code(e, "copy.is_directory", about);
}

/* source call -> pipe -> helper, which checks the stream -> pipe -> destination call */
static int run_between(struct copy *k, struct copy_helper *h, int *out_fd, struct err *e)
{
	auto_done(file_call_done) struct file_call from = { 0 }, to = { 0 };
	struct err of_source = { 0 };
	int r = call_start(k, &to, true, CALL_WRITE_TREE, h->fd, h, e), s = 0;

	if (r == 0)
		s = call_start(k, &from, false, CALL_READ_TREE, *out_fd, NULL, &of_source);
	if (r == 0 && s == 0)
		s = call_wait(k, &from, &of_source);
	file_call_done(&from);
	fd_close(out_fd);
	if (r == 0)
		r = call_wait(k, &to, e);
	file_call_done(&to);
	r = join_helper(k, h, r, e);
	/* If the source failed, the other processes only saw an early end of the stream. */
	if (s < 0 && (r == 0 || !copy_is_echo(&of_source)))
		*e = of_source;
	return s < 0 ? -1 : r;
}

static int copy_between(struct copy *k, struct err *e)
{
	struct relay relay = { .k = k };
	struct copy_helper h;
	char top[256];
	int pair[2], r;

	if (wanted(k->spec->from.path, top, &relay.want, e) < 0)
		return -1;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, errno, "cannot make a pipe");
	relay.in_fd = pair[0];
	relay.parents_fd = pair[1];
	r = copy_helper_start(&h, k->c, relay_tree, &relay, COPY_WRITES, e);
	(void)close(pair[0]);
	if (r == 0)
		r = run_between(k, &h, &pair[1], e);
	fd_close(&pair[1]);
	return r;
}

static int copy(struct copy *k, struct err *e)
{
	enum copy_kind from = k->spec->from.kind, to = k->spec->to.kind;

	if (from == COPY_SANDBOX && to == COPY_SANDBOX)
		return copy_between(k, e);
	if (from == COPY_SANDBOX && to == COPY_HOST)
		return copy_to_host(k, e);
	if (from == COPY_SANDBOX)
		return copy_to_stream(k, e);
	if (from == COPY_HOST)
		return copy_in(k, pack_host, CALL_WRITE_TREE, e);
	return copy_in(k, read_stream, CALL_WRITE_FILE, e);
}

static int find(struct cay *c, const struct copy_place *p, char ret[ID_SIZE], struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };

	if (p->kind != COPY_SANDBOX)
		return 0;
	if (cay_catalog(c, e) < 0 || catalog_find(c->catalog, p->sandbox, &row, e) < 0)
		return -1;
	(void)str_copy(ret, ID_SIZE, str_of(row.id));
	return 0;
}

int op_copy(struct cay *c, const struct copy_spec *spec, struct copy_result *ret, struct err *e)
{
	struct copy_result result = { 0 };
	struct copy k = { .c = c, .spec = spec, .ret = &result };

	if (spec->from.kind != COPY_SANDBOX && spec->to.kind != COPY_SANDBOX) {
		err_set(e, ERR_INVALID, "neither the source nor the destination is in a sandbox");
		return err_code(e, "copy.no_sandbox", NULL);
	}
	if (find(c, &spec->from, k.from_id, e) < 0 || find(c, &spec->to, k.to_id, e) < 0 ||
	    copy(&k, e) < 0)
		return -1;
	*ret = result;
	return 0;
}
