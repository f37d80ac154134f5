/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/start_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/io.h"

/* One worker reads while the other writes; more would get in each other's way. */
enum { DEFAULT_USER = 1000, WORKERS = 2 };

struct job {
	const struct state *s;
	const struct start_dir *dirs;
	int n;
	const char *id, *may_be;
};

/* One directory, with its last copy open if there is one. */
struct source {
	struct freeze f;
	struct frozen_index last;
};

static void source_done(struct source *s)
{
	fd_close(&s->f.from_fd);
	fd_close(&s->f.last_fd);
	frozen_index_done(&s->last);
}
DEFINE_AUTO(struct source, source_done)

#define SOURCE_INIT \
	{ \
		.f = { .from_fd = FD_NONE, .last_fd = FD_NONE }, .last = FROZEN_INDEX_INIT \
	}

static int source_open(const struct job *j, const struct start_dir *d, bool privileged,
		       struct source *s)
{
	char path[96];

	s->f.privileged = privileged;
	s->f.owner = d->owner;
	s->f.user = DEFAULT_USER;
	s->f.workers = WORKERS;
	s->f.from_fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->f.from_fd < 0)
		return -errno;
	if (!d->last[0])
		return 0;
	(void)snprintf(path, sizeof path, "layers/%s", d->last);
	s->f.last_fd = openat(j->s->fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	(void)snprintf(path, sizeof path, "layers/%s.index", d->last);
	/* A missing or unreadable index only costs time. */
	if (s->f.last_fd >= 0 && frozen_index_read(&s->last, j->s->fd, path) == 0)
		s->f.last = &s->last;
	return 0;
}

static bool is_same(const struct job *j, bool privileged)
{
	int r = j->may_be[0] != '\0';

	for (int i = 0; i < j->n && r > 0; i++) {
		auto_done(source_done) struct source s = SOURCE_INIT;

		r = source_open(j, &j->dirs[i], privileged, &s);
		r = r < 0 ? r : freeze_is_same(&s.f);
	}
	return r > 0;
}

static void add_names(struct freeze_names *to, const struct freeze_names *more)
{
	uint64_t n = to->n + more->n;

	if (!to->n)
		*to = *more;
	to->n = n;
}

static int copy_dir(const struct job *j, const struct start_dir *d, int layer, bool privileged,
		    struct start_report *ret)
{
	auto_done(source_done) struct source s = SOURCE_INIT;
	auto_done(frozen_index_done) struct frozen_index index = FROZEN_INDEX_INIT;
	auto_close int to = FD_NONE;
	struct freeze_result one = { 0 };
	char name[24];
	int r = source_open(j, d, privileged, &s);

	(void)snprintf(name, sizeof name, "%d", d->mount);
	if (r == 0 && mkdirat(layer, name, 0700) < 0)
		r = -errno;
	if (r == 0) {
		to = openat(layer, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = to < 0 ? -errno : freeze_copy(&s.f, to, &index, &one);
	}
	failpoint("start.copied");
	(void)snprintf(name, sizeof name, "%d.index", d->mount);
	if (r == 0)
		r = frozen_index_write(&index, layer, name);
	ret->result.copied += one.copied;
	ret->result.linked += one.linked;
	ret->result.bytes += one.bytes;
	add_names(&ret->result.left_out, &one.left_out);
	add_names(&ret->result.unsteady, &one.unsteady);
	memcpy(ret->result.where, one.where, sizeof one.where);
	return r;
}

/* Sync the copy before any row can refer to it. */
static int copy_all(const struct job *j, bool privileged, struct start_report *ret)
{
	auto_close int layer = FD_NONE;
	char path[64];
	int r = 0;

	(void)snprintf(path, sizeof path, "layers/new-%s", j->id);
	if (mkdirat(j->s->fd, path, 0700) < 0)
		return -errno;
	layer = openat(j->s->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (layer < 0)
		return -errno;
	for (ret->at = 0; ret->at < j->n && r == 0; ret->at += r == 0)
		r = copy_dir(j, &j->dirs[ret->at], layer, privileged, ret);
	if (r == 0 && syncfs(layer) < 0)
		r = -errno;
	failpoint("start.synced");
	return r;
}

static void __attribute__((noreturn)) child(const struct job *j, int out, pid_t parent)
{
	struct start_report ret = { 0 };
	bool privileged = geteuid() == 0;

	ret.err = freeze_begin();
	/* Without the parent, the copy has no use. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (ret.err == 0)
		ret.same = is_same(j, privileged);
	if (ret.err == 0 && !ret.same)
		ret.err = copy_all(j, privileged, &ret);
	_exit(io_write_all(out, &ret, sizeof ret) < 0);
}

struct awaiting {
	struct loop_io io;
	bool done;
};

static void on_report(struct loop_io *io, uint32_t events)
{
	(void)events;
	container_of(io, struct awaiting, io)->done = true;
}

/* The child writes the report with one write, and it fits into a pipe. */
static int await_report(struct cay *c, int in, struct start_report *ret)
{
	struct awaiting a = { .io.fd = FD_NONE };
	int r = loop_add(c->wait.loop, &a.io, in, EPOLLIN, on_report);

	if (r == 0)
		r = wait_until(&c->wait, &a.done);
	loop_del(c->wait.loop, &a.io);
	return r < 0 ? r : io_read_exact(in, ret, sizeof *ret);
}

int start_copy(struct cay *c, const struct start_dir *dirs, int n, const char *id,
	       const char *may_be, struct start_report *ret, struct err *e)
{
	const struct job j = { &c->state, dirs, n, id, may_be };
	auto_close int in = FD_NONE, out = FD_NONE;
	pid_t parent = getpid(), pid;
	int p[2], r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(e, errno, "freeze '%s'", dirs[0].path);
	in = p[0];
	out = p[1];
	pid = fork();
	if (pid == 0)
		child(&j, out, parent);
	if (pid < 0)
		return err_sys(e, errno, "freeze '%s'", dirs[0].path);
	fd_close(&out);
	r = await_report(c, in, ret);
	if (r < 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (r == -ETIMEDOUT || r == -ECANCELED)
		return err_set(e, ERR_TIMEOUT, "the wait for a copy of '%s' was ended",
			       dirs[0].path);
	return r < 0 ? err_sys(e, r == -ENODATA ? EIO : -r, "freeze '%s'", dirs[0].path) : 0;
}
