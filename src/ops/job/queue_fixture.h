/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the queue: a queue whose host only records its requests. The test plays the workers:
 * worker_begins(), hear(), say_done(), worker_dies(). tear_down() checks that no descriptor leaks.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "loop/wait.h"
#include "ops/job/queue.h"
#include "sys/process/fdpass.h"
#include "t.h"

static struct loop loop;
static struct waiter waiter;
static struct job_queue queue;
static int peer[JOB_WORKERS], cancel[JOB_WORKERS];
static int starts[JOB_WORKERS], kills[JOB_WORKERS];
static bool at_once;	  /* reply to start() inside the call */
static const char *asker; /* of the next jobs; NULL: the host's user */
static int fds_before;

/* The order in which owners got their results: one letter per job. */
static char order[256];
static struct told {
	char name;
	int times, nfds;
	char out[64];
	struct err why;
	int progress;
} told[128];
static int ntold;

static int no_run(struct job_run *r, struct err *e)
{
	(void)r;
	(void)e;
	return 0;
}

static const struct job_kind kinds[] = { { "show", JOB_READ_ONLY, no_run },
					 { "touch", 0, no_run },
					 { "alone", JOB_EXCLUSIVE, no_run },
					 { "diff", JOB_LONG | JOB_READ_ONLY, no_run } };
static const struct job_table table = { kinds, ARRAY_LEN(kinds) };

static inline int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline void worker_begins(int slot)
{
	int pair[2], fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	peer[slot] = pair[1];
	cancel[slot] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	job_queue_started(&queue, slot, pair[0], fd);
}

static inline void on_start(void *ctx, int slot)
{
	CHECK(ctx == &queue);
	starts[slot]++;
	if (at_once)
		worker_begins(slot);
}

static inline void on_kill_asked(void *ctx, int slot)
{
	CHECK(ctx == &queue);
	kills[slot]++;
}

static inline void set_up(int quick, int longs)
{
	const struct job_host host = { on_start, on_kill_asked, &queue };

	fds_before = count_fds();
	CHECK(loop_init(&loop) == 0);
	waiter = (struct waiter){ .loop = &loop, .cancel_fd = FD_NONE };
	for (int i = 0; i < JOB_WORKERS; i++)
		peer[i] = cancel[i] = FD_NONE;
	job_queue_init(&queue, &loop, &table, &host, quick, longs);
}

static inline void tear_down(void)
{
	job_queue_done(&queue);
	for (int i = 0; i < JOB_WORKERS; i++) {
		fd_close(&peer[i]);
		fd_close(&cancel[i]);
	}
	loop_done(&loop);
	CHECK(count_fds() == fds_before);
}

static inline void turn(void)
{
	CHECK(wait_pause(&waiter, 2 * NS_PER_MS) == 0);
}

static inline void on_done(void *ctx, const struct job_answer *a, const struct err *why)
{
	struct told *t = ctx;
	size_t n = strlen(order);

	t->times++;
	order[n] = t->name;
	if (why)
		t->why = *why;
	if (!a)
		return;
	(void)str_copy(t->out, sizeof t->out, a->out);
	t->nfds = a->nfds;
	for (int i = 0; i < a->nfds; i++)
		(void)close(a->fds[i]);
}

static inline void on_progress(void *ctx, const struct job_progress *p)
{
	CHECK_STR(p->stage, "half");
	((struct told *)ctx)->progress++;
}

static inline struct job *try_ask(const char *kind, const char *key, char name, uint64_t ms,
				  struct err *e)
{
	struct told *t = &told[ntold % (int)ARRAY_LEN(told)];
	const struct job_spec spec = { .kind = kind,
				       .key = key,
				       .asker = asker,
				       .in = STR("in"),
				       .timeout_ms = ms,
				       .done = on_done,
				       .progress = on_progress,
				       .ctx = t };

	ntold++;
	*t = (struct told){ .name = name };
	return job_start(&queue, &spec, e);
}

static inline struct job *ask(const char *kind, const char *key, char name)
{
	struct err e = { 0 };
	struct job *j = try_ask(kind, key, name, 0, &e);

	CHECK(j);
	return j;
}

/* The result that the owner of this job got. */
static inline struct told *told_of(char name)
{
	for (size_t i = 0; i < ARRAY_LEN(told); i++)
		if (told[i].name == name)
			return &told[i];
	t_fail(__FILE__, __LINE__, "no such job");
}

/* Receives the job sent to a worker; returns its number. 0: none. */
static inline uint32_t hear(int slot, struct job_do *ret)
{
	static char data[8192];
	struct pollfd p = { .fd = peer[slot], .events = POLLIN };
	struct frame f;
	ssize_t n;

	if (peer[slot] < 0 || poll(&p, 1, 0) == 0)
		return 0;
	n = read(peer[slot], data, sizeof data);
	CHECK(n > 0);
	CHECK(frame_parse((struct str){ data, (size_t)n }, &f) == n);
	CHECK(f.type == W_DO && job_do_read(f.body, ret) == 0);
	return f.chan;
}

static inline void say(int slot, uint8_t type, uint32_t number, struct str body, int nfds)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	int fds[] = { 0, 1, 2, 2 };
	size_t at;

	CHECK(frame_begin(&b, type, number, &at) == 0);
	CHECK(buf_add_str(&b, body) == 0);
	CHECK(frame_end(&b, at, (uint8_t)nfds) == 0);
	CHECK(fdpass_send(peer[slot], b.data, b.len, fds, nfds) == 0);
}

static inline void say_done(int slot, uint32_t number, const char *out, int nfds)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	const struct job_done d = { .out = str_of(out) };

	CHECK(job_done_put(&b, &d) == 0);
	say(slot, W_DONE, number, buf_str(&b), nfds);
}

/* The worker finishes the job that it was given. */
static inline void works(int slot)
{
	struct job_do d;
	uint32_t number = hear(slot, &d);

	CHECK(number);
	say_done(slot, number, "ok", 0);
	turn();
}

static inline void worker_dies(int slot)
{
	fd_close(&peer[slot]);
	fd_close(&cancel[slot]);
	job_queue_gone(&queue, slot);
}
