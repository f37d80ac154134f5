/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call/side.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "wire/tar.h"

enum { CHUNK = 256 * 1024, PIPE_SIZE = 1 << 20 };

static __attribute__((noreturn)) void child(side_fn *fn, void *ctx, int fd, int result_fd)
{
	struct side_result r = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	r.rc = fn(ctx, fd, &r.n, &r.e);
	(void)close(fd);
	_exit(io_write_all(result_fd, &r, sizeof r) < 0);
}

int side_start(struct side *s, side_fn *fn, void *ctx, bool writes, struct err *e)
{
	int data[2], result[2];

	s->has_result = false;
	if (pipe2(data, O_CLOEXEC) < 0)
		return err_sys(e, errno, "cannot make a pipe");
	/* Fewer wakeups; where the system grants less, less will do. */
	(void)fcntl(data[0], F_SETPIPE_SZ, PIPE_SIZE);
	if (pipe2(result, O_CLOEXEC) < 0) {
		err_sys(e, errno, "cannot make a pipe");
		goto fail;
	}
	s->pid = fork();
	if (s->pid == 0) {
		(void)close(data[!writes]);
		(void)close(result[0]);
		child(fn, ctx, data[writes], result[1]);
	}
	if (s->pid < 0)
		err_sys(e, errno, "cannot start a helper process");
	(void)close(result[1]);
	if (s->pid > 0) {
		(void)close(data[writes]);
		s->fd = data[!writes];
		s->result_fd = result[0];
		return 0;
	}
	(void)close(result[0]);
fail:
	(void)close(data[0]);
	(void)close(data[1]);
	return -1;
}

/* Blocks until the child is done. */
static void read_result(struct side *s)
{
	if (s->has_result)
		return;
	s->has_result = true;
	if (io_read_exact(s->result_fd, &s->result, sizeof s->result) < 0) {
		s->result = (struct side_result){ .rc = -1 };
		(void)err_set(&s->result.e, ERR_FAILED, "the local side of the copy died");
	}
	fd_close(&s->result_fd);
}

bool side_is_whole(void *side)
{
	struct side *s = side;

	read_result(s);
	return s->result.rc == 0;
}

int side_wait(struct side *s, struct tree_counts *n, struct err *e)
{
	int st;

	fd_close(&s->fd);
	read_result(s);
	while (waitpid(s->pid, &st, 0) < 0 && errno == EINTR)
		;
	*n = s->result.n;
	if (s->result.rc < 0)
		*e = s->result.e;
	return s->result.rc;
}

bool side_is_echo(const struct err *e)
{
	return e->sys == EPIPE || e->sys == ENODATA;
}

/* Wait for input. False when there will be no reader for it. */
static bool wait_input(int in_fd, int out_fd)
{
	struct pollfd p[2] = { { .fd = in_fd, .events = POLLIN }, { .fd = out_fd } };

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			return true; /* the read will say what is wrong */
	return !(p[1].revents & (POLLERR | POLLHUP)) || (p[0].revents & POLLIN);
}

/* One chunk of input. Its length, 0 at the end, -1 with e. */
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

int side_relay_bytes(int in_fd, int out_fd, uint64_t max_bytes, const struct tree_progress *p,
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

/* Look at a chunk before it is passed on. 1 at the end mark. */
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

int side_relay_tar(int in_fd, int out_fd, const char *want, uint64_t max_bytes,
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
