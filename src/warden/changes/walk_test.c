/* SPDX-License-Identifier: Apache-2.0 */
/* Long walks: who waits for them, and what happens when something else happens meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>

#include "base/io.h"
#include "sys/process/raw.h"
#include "t.h"
#include "warden/changes/changes_job.h"
#include "warden/fixture.h"

enum { LONG = 600 /* files: more than a short walk visits */ };

static struct fx_client *me = &fx.client[0];
static struct walks *walks;

static void begin(void)
{
	struct err e = { 0 };

	fx_begin();
	fx_build(&(struct fx_want){ .mounts = 2 });
	fx_lease(me);
	walks = &fx.w->walks;
	fx.w->trace_level = TRACE_FULL;
	CHECK(walk_open(fx.w, &e) == 0);
}

/* A call that makes these files, and ends. */
static void make_files(uint32_t call, const char *prefix, int n)
{
	char name[64];
	uint64_t before = clock_real_ns();

	/* Calls within the same tick are both candidates. */
	while (clock_coarse_ns() <= before)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	walk_window_open(fx.w, call, 100 + call);
	for (int i = 0; i < n; i++) {
		(void)snprintf(name, sizeof name, "%s%04d", prefix, i);
		fx_touch(0, name);
	}
	walk_window_close(fx.w, call);
}

/* Make files, and run the loop until a child walks. */
static void begin_long(uint32_t call, const char *prefix)
{
	make_files(call, prefix, LONG);
	walk_want(fx.w);
	CHECK(walks->job && !walks->emitting);
}

static void read_trace(struct buf *b)
{
	auto_close int fd = FD_NONE;
	char path[256];

	CHECK(trace_flush(&fx.w->trace) == 0);
	(void)snprintf(path, sizeof path, "%s/trace.jsonl", fx.dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && io_read_all(fd, b) == 0 && buf_add_c(b, "") == 0);
}

static int count_text(const char *in, const char *text)
{
	int n = 0;

	while ((in = strstr(in, text))) {
		n++;
		in += strlen(text);
	}
	return n;
}

/* How often the trace contains a text. */
static int traced(const char *text)
{
	auto_done(buf_done) struct buf b = BUF_INIT(16 << 20);

	read_trace(&b);
	return count_text(b.data, text);
}

/* Every file of the call exactly once, in order. */
static void check_created(uint32_t call, const char *prefix)
{
	auto_done(buf_done) struct buf b = BUF_INIT(16 << 20);
	char text[128];
	const char *at;

	read_trace(&b);
	at = b.data;
	for (int i = 0; i < LONG; i++) {
		(void)snprintf(text, sizeof text, "/%s%04d\"", prefix, i);
		CHECK(count_text(b.data, text) == 1);
		at = strstr(at, text);
		CHECK(at);
	}
	(void)snprintf(text, sizeof text, "\"call\":%u,\"parent\":%u,\"kind\":\"file.create\"",
		       call, 100 + call);
	CHECK(count_text(b.data, text) == LONG);
}

/* Where a text begins in the trace. */
static long place_of(const char *text)
{
	auto_done(buf_done) struct buf b = BUF_INIT(16 << 20);
	const char *at;

	read_trace(&b);
	at = strstr(b.data, text);
	return at ? at - b.data : -1;
}

static void settle(void)
{
	FX_SEND(me, MSG_C_SETTLE, 9, { TAG_SEQ, 0, NULL });
	(void)fx_await(me, MSG_C_SETTLED);
}

static void kill_walker(void)
{
	CHECK(raw_pidfd_signal(changes_job_pidfd(walks->job), SIGKILL) == 0);
}

static void snapshot(const char *layer)
{
	FX_SEND(me, MSG_C_SWITCH, 5, { TAG_SEAL, 0, layer }, { TAG_SNAPSHOT, 0, "snap" });
	(void)fx_await(me, MSG_C_SWITCHED);
}

static void rollback(void)
{
	FX_SEND(me, MSG_C_SWITCH, 5, { TAG_SNAPSHOT, 0, "snap" });
	(void)fx_await(me, MSG_C_SWITCHED);
}

static void a_short_walk_is_done_at_once(void)
{
	begin();
	make_files(1, "f", 10);
	walk_want(fx.w);
	CHECK(!walks->job && walks->done == 1 && walks->now.ncalls == 0);
	CHECK(traced("file.create") == 10);
	fx_end();
}

static void a_long_walk_leaves_the_loop(void)
{
	begin();
	begin_long(1, "f");
	CHECK(traced("file.create") == 0);
	settle();
	check_created(1, "f");
	CHECK(!walks->job && walks->now.ncalls == 0);
	make_files(2, "f", LONG); /* no change */
	settle();
	CHECK(traced("\"kind\":\"file.change\"") == 0);
	check_created(1, "f");
	fx_end();
}

static void who_reads_the_trace_waits_for_a_walk_that_began_later(void)
{
	begin();
	begin_long(1, "f");
	make_files(2, "late", 1);
	settle();
	check_created(1, "f");
	CHECK(traced("/late0000\"") == 1);
	CHECK(walks->done == 2);
	fx_end();
}

static void a_client_that_is_gone_is_not_answered(void)
{
	struct fx_client *other;

	begin();
	other = fx_connect(false);
	fx_settle();
	begin_long(1, "f");
	FX_SEND(other, MSG_C_SETTLE, 9, { TAG_SEQ, 0, NULL });
	fx_settle();
	fx_hang_up(other);
	settle();
	CHECK(walks->nsettles == 0);
	fx_end();
}

static void a_dead_walker_is_replaced(void)
{
	begin();
	begin_long(1, "f");
	kill_walker();
	settle();
	check_created(1, "f");
	fx_end();
}

static void without_walkers_the_loop_walks(void)
{
	begin();
	begin_long(1, "f");
	for (int i = 1; i <= WALK_DEATHS; i++) {
		CHECK(walks->job && walks->deaths == i - 1);
		kill_walker();
		while (walks->deaths == i - 1 && walks->done == 0) {
			fx.turned = false;
			CHECK(loop_run_until(&fx.w->loop, &fx.turned) == 0);
		}
	}
	settle();
	check_created(1, "f");
	fx_end();
}

static void a_snapshot_does_not_wait(void)
{
	char text[64];

	begin();
	begin_long(1, "f");
	make_files(2, "late", 1);
	snapshot("layer00001");
	make_files(3, "next", 1);
	settle();
	check_created(1, "f");
	CHECK(traced("/late0000\"") == 1 && traced("/next0000\"") == 1);
	CHECK(place_of("sandbox.snapshot") < place_of("/late0000\""));
	CHECK(place_of("/late0000\"") < place_of("/next0000\""));
	/* Every event after the switch that is about an earlier time says so. */
	(void)snprintf(text, sizeof text, "\"before\":");
	CHECK(traced(text) >= 1 && traced(text) <= LONG + 1);
	CHECK(!walks->old && walks->nold == 0);
	fx_end();
}

static void a_short_walk_comes_before_the_snapshot(void)
{
	begin();
	make_files(1, "f", 3);
	snapshot("layer00001");
	CHECK(traced("file.create") == 3 && traced("\"before\":") == 0);
	CHECK(place_of("/f0002\"") < place_of("sandbox.snapshot"));
	fx_end();
}

static void a_rollback_keeps_the_files_until_they_are_walked(void)
{
	begin();
	begin_long(1, "f");
	kill_walker(); /* the next one still finds all files */
	rollback();
	settle();
	check_created(1, "f");
	fx_settle();
	for (int i = 0; fx_exists("old/0") && i < 1000; i++)
		fx_pass_ms(10);
	CHECK(!fx_exists("old/0"));
	fx_end();
}

static void a_full_queue_is_emptied_first(void)
{
	struct err e = { 0 };

	begin();
	for (unsigned i = 0; i <= WALK_OLD; i++) {
		char prefix[8];

		(void)snprintf(prefix, sizeof prefix, "%c", (char)('a' + i));
		CHECK(walks->nold == (int)i);
		make_files(i + 1, prefix, LONG);
		walk_retire(fx.w, i);
		CHECK(walk_open(fx.w, &e) == 0);
	}
	CHECK(walks->nold == 0 && !walks->old);
	CHECK(traced("/a0000\"") == 1 && traced("/i0599\"") >= 1);
	fx_end();
}

static void the_end_waits_for_all_events(void)
{
	begin();
	begin_long(1, "f");
	snapshot("layer00001");
	make_files(2, "g", LONG);
	FX_SEND(me, MSG_C_DESTROY, 7, { TAG_SEQ, 0, NULL });
	fx_await_end("killed");
	check_created(1, "f");
	check_created(2, "g");
	CHECK(place_of("/g0599\"") < place_of("sandbox.end"));
	fx_end();
}

T_MAIN(T(a_short_walk_is_done_at_once), T(a_long_walk_leaves_the_loop),
       T(who_reads_the_trace_waits_for_a_walk_that_began_later),
       T(a_client_that_is_gone_is_not_answered), T(a_dead_walker_is_replaced),
       T(without_walkers_the_loop_walks), T(a_snapshot_does_not_wait),
       T(a_short_walk_comes_before_the_snapshot),
       T(a_rollback_keeps_the_files_until_they_are_walked), T(a_full_queue_is_emptied_first),
       T(the_end_waits_for_all_events))
