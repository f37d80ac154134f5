/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/copy/copy_helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "t.h"

static struct cay context;
static struct progress last;
static bool told;

static void on_progress(void *ctx, const struct progress *p)
{
	CHECK(ctx == &last);
	last = *p;
	told = true;
}

static void begin(void)
{
	CHECK(loop_init(&context.loop) == 0);
	context.wait = (struct waiter){ .loop = &context.loop, .cancel_fd = FD_NONE };
}

/* Reports progress until the parent writes, which shows that it received a report. */
static int tell_all_the_time(void *ctx, int fd, const struct tree_progress *p,
			     struct tree_counts *n, struct err *e)
{
	struct pollfd in = { .fd = fd, .events = POLLIN };

	(void)ctx;
	(void)e;
	n->files = 3;
	n->bytes = 5000;
	do
		tree_report(p, n);
	while (poll(&in, 1, 0) == 0);
	n->files = 4;
	return 0;
}

static void progress_comes_before_the_result_and_through_the_context(void)
{
	struct copy_helper h;
	struct tree_counts n;
	struct err e = { 0 };

	begin();
	context.progress = on_progress;
	context.progress_ctx = &last;
	CHECK(copy_helper_start(&h, &context, tell_all_the_time, NULL, COPY_READS, &e) == 0);
	CHECK(cay_wait(&context, &told, "the test", &e) == 0);
	CHECK_STR(last.stage, "copy");
	CHECK(last.items == 3 && last.done == 5000 && last.total == 0);
	CHECK(io_write_all(h.fd, "x", 1) == 0);
	CHECK(copy_helper_wait(&h, &n, &e) == 0 && n.files == 4);
	loop_done(&context.loop);
}

static int die(void *ctx, int fd, const struct tree_progress *p, struct tree_counts *n,
	       struct err *e)
{
	(void)ctx;
	(void)fd;
	(void)n;
	(void)e;
	CHECK(!p->fn); /* no progress was requested */
	(void)raise(SIGKILL);
	return 0;
}

static void a_helper_that_dies_is_a_failure(void)
{
	struct copy_helper h;
	struct tree_counts n;
	struct err e = { 0 };

	begin();
	CHECK(copy_helper_start(&h, &context, die, NULL, COPY_WRITES, &e) == 0);
	CHECK(!copy_helper_is_whole(&h));
	CHECK(copy_helper_wait(&h, &n, &e) == -1);
	CHECK_STR(e.msg, "the local side of the copy died");
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	loop_done(&context.loop);
}

/* Reads until the data ends. */
static int read_all(void *ctx, int fd, const struct tree_progress *p, struct tree_counts *n,
		    struct err *e)
{
	char byte;

	(void)ctx;
	(void)p;
	while (read(fd, &byte, 1) == 1)
		n->bytes++;
	return n->bytes == 2 ? 0 : err_set(e, ERR_FAILED, "%d bytes", (int)n->bytes);
}

static void what_ends_the_parent_does_not_end_one_that_reads_on(void)
{
	struct copy_helper h;
	struct tree_counts n;
	struct err e = { 0 };

	begin();
	CHECK(copy_helper_start(&h, &context, read_all, NULL, COPY_READS_ON, &e) == 0);
	CHECK(io_write_all(h.fd, "a", 1) == 0);
	CHECK(kill(h.pid, SIGTERM) == 0 && kill(h.pid, SIGINT) == 0);
	CHECK(io_write_all(h.fd, "b", 1) == 0);
	CHECK(copy_helper_wait(&h, &n, &e) == 0 && n.bytes == 2);
	loop_done(&context.loop);
}

T_MAIN(T(progress_comes_before_the_result_and_through_the_context),
       T(a_helper_that_dies_is_a_failure), T(what_ends_the_parent_does_not_end_one_that_reads_on))
