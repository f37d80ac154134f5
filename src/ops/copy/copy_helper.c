/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/copy/copy_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/limits.h"
#include "wire/tar.h"

enum { CHUNK = 256 * 1024, PIPE_SIZE = 1 << 20, REPORT_NS = 100 * NS_PER_MS };

/* One write(2) is one complete report. */
_Static_assert(sizeof(struct copy_report) <= PIPE_BUF, "a report may be torn");

/* --- in the child --- */

struct reporter {
	int fd;
	uint64_t last_ns;
};

static void report_progress(void *ctx, const struct tree_counts *n)
{
	struct reporter *r = ctx;
	uint64_t now = clock_mono_ns();
	struct copy_report report = { .n = *n };

	if (now - r->last_ns < REPORT_NS)
		return;
	r->last_ns = now;
	(void)io_write_all(r->fd, &report, sizeof report);
}

static __attribute__((noreturn)) void child(copy_helper_fn *fn, void *ctx, bool reports, int fd,
					    int report_fd)
{
	struct reporter reporter = { .fd = report_fd, .last_ns = clock_mono_ns() };
	const struct tree_progress p = { reports ? report_progress : NULL, &reporter };
	struct copy_report r = { .last = true };

	r.rc = fn(ctx, fd, &p, &r.n, &r.e);
	(void)close(fd);
	_exit(io_write_all(report_fd, &r, sizeof r) < 0);
}

/* --- in the parent --- */

static void result_unknown(struct copy_helper *h)
{
	h->result = (struct copy_report){ .last = true, .rc = -1 };
	(void)err_set(&h->result.e, ERR_FAILED, "the local side of the copy died");
}

/* Blocks until the child reports. */
static void read_report(struct copy_helper *h)
{
	struct copy_report r;

	if (io_read_exact(h->report_fd, &r, sizeof r) < 0)
		result_unknown(h);
	else if (r.last)
		h->result = r;
	else if (h->c->progress)
		h->c->progress(h->c->progress_ctx, &(struct progress){ .stage = "copy",
								       .done = r.n.bytes,
								       .items = r.n.files });
	h->has_result = h->result.last;
	if (!h->has_result)
		return;
	loop_del(&h->c->loop, &h->report_io);
	fd_close(&h->report_fd);
}

static void on_report(struct loop_io *io, uint32_t events)
{
	(void)events;
	read_report(container_of(io, struct copy_helper, report_io));
}

/*
 * Signals that must not kill the child. Blocked across the fork, so that none slips in between, and
 * then permanently in the child. Handlers and ignored signals do not change.
 */
static void block_signals(enum copy_way way, sigset_t *ret_before)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	if (way == COPY_READS_ON) {
		(void)sigaddset(&set, SIGINT);
		(void)sigaddset(&set, SIGTERM);
		(void)sigaddset(&set, SIGHUP);
		(void)sigaddset(&set, SIGQUIT);
	}
	(void)sigprocmask(SIG_BLOCK, &set, ret_before);
}

static pid_t start_child(struct copy_helper *h, copy_helper_fn *fn, void *ctx, enum copy_way way,
			 const int data[2], const int report[2])
{
	bool writes = way == COPY_WRITES;
	sigset_t before;
	pid_t pid;

	block_signals(way, &before);
	pid = fork();
	if (pid == 0) {
		(void)close(data[!writes]);
		(void)close(report[0]);
		child(fn, ctx, h->c->progress != NULL, data[writes], report[1]);
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

int copy_helper_start(struct copy_helper *h, struct cay *c, copy_helper_fn *fn, void *ctx,
		      enum copy_way way, struct err *e)
{
	bool writes = way == COPY_WRITES;
	int data[2], report[2], r;

	*h = (struct copy_helper){ .c = c, .fd = FD_NONE, .report_fd = FD_NONE };
	h->report_io.fd = FD_NONE;
	if (pipe2(data, O_CLOEXEC) < 0)
		return err_sys(e, errno, "cannot make a pipe");
	/* A larger pipe means fewer wakeups. A smaller one works too. */
	(void)fcntl(data[0], F_SETPIPE_SZ, PIPE_SIZE);
	r = pipe2(report, O_CLOEXEC) < 0 ? -errno : 0;
	if (r == 0) {
		h->pid = start_child(h, fn, ctx, way, data, report);
		r = h->pid < 0 ? -EAGAIN : 0;
		(void)close(report[1]);
		h->report_fd = report[0];
	}
	(void)close(data[writes]);
	h->fd = data[!writes];
	if (r == 0)
		/* If this fails, the copy goes on without progress reports. */
		(void)loop_add(&c->loop, &h->report_io, h->report_fd, EPOLLIN, on_report);
	if (r == 0)
		return 0;
	fd_close(&h->fd);
	fd_close(&h->report_fd);
	return err_sys(e, -r, "cannot start a helper process");
}

/* Blocks until the child is done. */
static void read_result(struct copy_helper *h)
{
	while (!h->has_result)
		read_report(h);
}

bool copy_helper_is_whole(void *helper)
{
	struct copy_helper *h = helper;

	read_result(h);
	return h->result.rc == 0;
}

int copy_helper_wait(struct copy_helper *h, struct tree_counts *n, struct err *e)
{
	int st;

	fd_close(&h->fd);
	read_result(h);
	while (waitpid(h->pid, &st, 0) < 0 && errno == EINTR)
		;
	*n = h->result.n;
	if (h->result.rc < 0)
		*e = h->result.e;
	return h->result.rc;
}

bool copy_is_echo(const struct err *e)
{
	return e->sys == EPIPE || e->sys == ENODATA;
}

/* --- what the child does with a stream --- */

/* Wait for input. False if the reader of the output is gone. */
static bool wait_input(int in_fd, int out_fd)
{
	struct pollfd p[2] = { { .fd = in_fd, .events = POLLIN }, { .fd = out_fd } };

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			return true; /* the read will report the error */
	return !(p[1].revents & (POLLERR | POLLHUP)) || (p[0].revents & POLLIN);
}

/* Read one chunk of input. Returns its length, 0 at the end, -1 with e. */
static ssize_t read_chunk(int in_fd, int out_fd, char *chunk, struct err *e)
{
	ssize_t n;

	if (!wait_input(in_fd, out_fd))
		return err_sys(e, EPIPE, "cannot pass data on");
	do {
		n = read(in_fd, chunk, CHUNK);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(e, errno, "cannot read the data") : n;
}

static int pass_on(int out_fd, const char *chunk, size_t n, struct err *e)
{
	int k = io_write_all(out_fd, chunk, n);

	return k < 0 ? err_sys(e, -k, "cannot pass data on") : 0;
}

int copy_bytes(int in_fd, int out_fd, uint64_t max_bytes, const struct tree_progress *p,
	       struct tree_counts *n, struct err *e)
{
	auto_free char *chunk = malloc(CHUNK);
	ssize_t len;

	if (!chunk)
		return err_sys(e, ENOMEM, "cannot copy");
	n->files = 1;
	while ((len = read_chunk(in_fd, out_fd, chunk, e)) > 0) {
		if (tree_check_size(n, (uint64_t)len, max_bytes, e) < 0 ||
		    pass_on(out_fd, chunk, (size_t)len, e) < 0)
			return -1;
		n->bytes += (uint64_t)len;
		tree_report(p, n);
	}
	return (int)len;
}

static int check_entry(const struct tar_entry *t, const char *want, struct err *e)
{
	char clean[LIMIT_PATH];
	const char *why;

	if (tar_path_clean(t->path, clean, &why) < 0)
		return err_set(e, ERR_INVALID, "entry '%.200s' %s", t->path, why);
	if (want && !str_is((struct str){ clean, strcspn(clean, "/") }, want))
		return err_set(e, ERR_INVALID, "entry '%.200s' was not asked for, only '%.200s'",
			       t->path, want);
	return 0;
}

/* Check a chunk before passing it on. 1 at the end mark. */
static int check_chunk(struct tar_reader *r, struct str in, const char *want, uint64_t max_bytes,
		       struct tree_counts *n, struct err *e)
{
	struct str data;
	int ev;

	while ((ev = tar_read(r, &in, &data)) > TAR_MORE && ev != TAR_END) {
		n->bytes += data.n;
		if (ev != TAR_ENTRY)
			continue;
		if (check_entry(&r->entry, want, e) < 0 ||
		    tree_check_size(n, r->entry.size, max_bytes, e) < 0)
			return -1;
		if (r->entry.type == TAR_DIR)
			n->dirs++;
		else
			n->files++;
	}
	if (ev < 0)
		return err_set(e, ERR_INVALID, "entry '%.200s' %s", r->path, r->why);
	return ev == TAR_END;
}

int copy_tar(int in_fd, int out_fd, const char *want, uint64_t max_bytes,
	     const struct tree_progress *p, struct tree_counts *n, struct err *e)
{
	auto_done(tar_reader_done) struct tar_reader r;
	auto_free char *chunk = malloc(CHUNK);
	size_t after = 0;
	ssize_t len;
	int end = 0;

	tar_reader_init(&r);
	if (!chunk)
		return err_sys(e, ENOMEM, "cannot copy");
	while ((len = read_chunk(in_fd, out_fd, chunk, e)) > 0) {
		if (end)
			after += (size_t)len;
		if (after > LIMIT_TAR_TRAILER)
			return err_set(e, ERR_INVALID, "the tar stream goes on after its end mark");
		if (end)
			continue;
		end = check_chunk(&r, (struct str){ chunk, (size_t)len }, want, max_bytes, n, e);
		if (end < 0 || pass_on(out_fd, chunk, (size_t)len, e) < 0)
			return -1;
		tree_report(p, n);
	}
	if (len < 0)
		return -1;
	if (end)
		return 0;
	err_set(e, ERR_FAILED, "the tar stream ended early");
	e->sys = ENODATA;
	return -1;
}
