/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/log.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/limits.h"
#include "base/trace_name.h"
#include "t.h"
#include "trace/read.h"
#include "trace/verify.h"

static char dir[] = "/tmp/cay-log-XXXXXX";
static int dirfd = -1;

static void make_dir(void)
{
	CHECK(mkdtemp(dir));
	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(dirfd >= 0);
}

static void remove_dir(void)
{
	CHECK(unlinkat(dirfd, "t", 0) == 0);
	CHECK(rmdir(dir) == 0);
}

static void open_trace(struct trace *t)
{
	struct err e;

	make_dir();
	CHECK(trace_create(t, dirfd, "t", "k3x9abcdefgh", &e) == 0);
}

static void write_event(struct trace *t, struct str text)
{
	trace_begin(t, "call.start", 2, 1);
	trace_text(t, "x", text);
	CHECK(trace_end(t) == 0);
}

static void content(struct buf *b)
{
	CHECK(io_read_file(dirfd, "t", b) == 0);
}

/* Checks that the file is a chain up to the writer's head. */
static void check_chain(const struct trace *t)
{
	auto_close int fd = openat(dirfd, "t", O_RDONLY | O_CLOEXEC);
	struct trace_head head = { .seq = t->seq };
	struct trace_summary got;
	struct err e = { 0 };

	sha256_hex(t->head, head.hash);
	if (trace_verify(fd, "k3x9abcdefgh", &head, &got, &e) < 0)
		t_fail(__FILE__, __LINE__, e.msg);
	CHECK(got.head.seq == t->seq);
}

static void the_layout_is_as_promised(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	struct trace t;
	char *time;

	open_trace(&t);
	CHECK(trace_begin(&t, "process.exec", 2, 5) == 1);
	trace_text(&t, "path", STR("/bin/\"x\""));
	trace_array(&t, "argv");
	trace_item(&t, STR("a"));
	trace_item(&t, STR("\xff"));
	trace_item_num(&t, -3);
	trace_array_end(&t);
	trace_num(&t, "pid", 14);
	trace_bool(&t, "argv_cut", false);
	CHECK(trace_end(&t) == 0);
	CHECK(trace_begin(&t, "sandbox.end", 0, 0) == 2);
	CHECK(trace_end(&t) == 0);
	CHECK(trace_flush(&t) == 0);
	content(&b);
	time = strstr(b.data, "\"time\":\"");
	CHECK(time && time[8 + 27] == '"');
	memset(time + 8, 'T', 27);
	b.data[strcspn(b.data, "\n")] = '\0';
	CHECK_STR(b.data, "{\"seq\":1,\"time\":\"TTTTTTTTTTTTTTTTTTTTTTTTTTT\",\"sandbox\":"
			  "\"k3x9abcdefgh\",\"call\":2,\"parent\":5,\"kind\":\"process.exec\","
			  "\"path\":\"/bin/\\\"x\\\"\",\"argv\":[\"a\",{\"b64\":\"/w==\"},-3],"
			  "\"pid\":14,\"argv_cut\":false,\"prev\":\"000000000000000000000000000"
			  "0000000000000000000000000000000000000\"}");
	CHECK(!strstr(b.data + strlen(b.data) + 1, "\"call\""));
	CHECK(!strstr(b.data + strlen(b.data) + 1, "\"parent\""));
	check_chain(&t);
	trace_done(&t);
	remove_dir();
}

static void an_existing_trace_is_never_written_over(void)
{
	struct trace t, second;
	struct err e = { 0 };

	open_trace(&t);
	CHECK(trace_create(&second, dirfd, "t", "k3x9abcdefgh", &e) == -1);
	CHECK(e.kind == ERR_SYS && e.sys == EEXIST);
	trace_done(&t);
	remove_dir();
}

/* Events just below and just above LIMIT_EVENT. */
static void an_event_too_long_is_dropped_and_its_number_used_again(void)
{
	static char big[LIMIT_EVENT];
	struct trace t;
	size_t empty;

	open_trace(&t);
	write_event(&t, STR(""));
	empty = t.batch.len - 1;
	memset(big, 'x', sizeof big);
	trace_begin(&t, "call.start", 2, 1);
	trace_text(&t, "x", (struct str){ big, LIMIT_EVENT - empty + 1 });
	CHECK(trace_end(&t) == -E2BIG);
	CHECK(t.seq == 1 && t.lost == 0);
	write_event(&t, (struct str){ big, LIMIT_EVENT - empty });
	CHECK(t.seq == 2 && t.batch.len == empty + 1 + LIMIT_EVENT + 1);
	CHECK(trace_flush(&t) == 0);
	check_chain(&t);
	trace_done(&t);
	remove_dir();
}

static void limit_file(rlim_t bytes)
{
	struct rlimit l = { bytes, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	CHECK(setrlimit(RLIMIT_FSIZE, &l) == 0);
}

static void a_short_write_is_continued_where_it_stopped(void)
{
	struct trace t;

	open_trace(&t);
	write_event(&t, STR("one"));
	write_event(&t, STR("two"));
	limit_file(300);
	CHECK(trace_flush(&t) == -EFBIG);
	CHECK(t.batch.len > 0);
	CHECK(trace_flush(&t) == -EFBIG);
	write_event(&t, STR("three"));
	limit_file(RLIM_INFINITY);
	CHECK(trace_flush(&t) == 0);
	CHECK(t.batch.len == 0);
	check_chain(&t);
	trace_done(&t);
	remove_dir();
}

static void a_full_disk_costs_events_and_says_how_many(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4 << 20);
	static char big[32 * 1024];
	struct trace t;
	int lost = 0;

	open_trace(&t);
	memset(big, 'x', sizeof big);
	limit_file(100);
	for (int i = 0; i < 50; i++) {
		trace_begin(&t, "call.start", 1, 0);
		trace_text(&t, "x", (struct str){ big, sizeof big });
		lost += trace_end(&t) == -EFBIG;
	}
	CHECK(lost > 10 && lost < 30 && t.batch.len <= LIMIT_TRACE_BATCH);
	limit_file(RLIM_INFINITY);
	write_event(&t, STR("after"));
	CHECK(trace_flush(&t) == 0);
	check_chain(&t);
	content(&b);
	CHECK(strstr(b.data, "\"kind\":\"trace.gap\",\"count\":"));
	CHECK(atoi(strstr(b.data, "\"count\":") + 8) == lost);
	CHECK(t.lost == 0);
	trace_done(&t);
	remove_dir();
}

static void a_batch_larger_than_the_ceiling_is_written_on_the_way(void)
{
	static char big[32 * 1024];
	struct trace t;
	struct stat st;

	open_trace(&t);
	memset(big, 'y', sizeof big);
	for (int i = 0; i < 100; i++)
		write_event(&t, (struct str){ big, sizeof big });
	CHECK(trace_flush(&t) == 0);
	CHECK(fstat(t.fd, &st) == 0 && st.st_size > (off_t)(100 * sizeof big));
	check_chain(&t);
	trace_done(&t);
	remove_dir();
}

static void an_idle_trace_holds_little_memory(void)
{
	static char big[60 * 1024];
	struct trace t;

	open_trace(&t);
	memset(big, 'y', sizeof big);
	write_event(&t, (struct str){ big, sizeof big });
	CHECK(trace_flush(&t) == 0);
	CHECK(t.line.cap + t.batch.cap < 32 * 1024);
	trace_done(&t);
	remove_dir();
}

/* The segments of a trace as one stream, starting at the first existing one. */
static struct {
	uint64_t start;
	int fd;
} reading;

static int next_segment(void *ctx)
{
	off_t at = lseek(reading.fd, 0, SEEK_CUR);
	char name[TRACE_NAME];
	int fd;

	(void)ctx;
	if (at <= 0)
		return -1;
	trace_name(name, "trace", reading.start + (uint64_t)at);
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	close(reading.fd);
	reading.fd = fd;
	reading.start += (uint64_t)at;
	return fd;
}

static int verify_segments(uint64_t start, struct trace_summary *ret, struct err *e)
{
	auto_done(trace_lines_done) struct trace_lines lines = { 0 };
	char name[TRACE_NAME];
	int r;

	trace_name(name, "trace", start);
	reading.start = start;
	reading.fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	CHECK(reading.fd >= 0);
	trace_lines_init(&lines, reading.fd);
	lines.next = next_segment;
	r = trace_verify_lines(&lines, "k3x9abcdefgh", NULL, ret, e);
	close(reading.fd);
	return r;
}

/* Writes until n segments exist. */
static void write_segments(struct trace *t, int n)
{
	static char text[8 * 1024];

	memset(text, 'x', sizeof text);
	for (uint64_t start = t->start; n > 0;) {
		write_event(t, (struct str){ text, sizeof text });
		n -= t->start != start;
		start = t->start;
	}
	CHECK(trace_flush(t) == 0);
}

static void segments_are_one_chain_and_the_oldest_is_dropped_with_notice(void)
{
	struct trace_summary got;
	struct err e = { 0 };
	struct trace t;
	uint64_t first;

	make_dir();
	CHECK(trace_create(&t, dirfd, "trace.jsonl", "k3x9abcdefgh", &e) == 0);
	trace_limit(&t, dirfd, 1);
	write_segments(&t, LIMIT_TRACE_SEGMENTS - 1);
	CHECK(t.nold == LIMIT_TRACE_SEGMENTS - 1);
	CHECK(verify_segments(0, &got, &e) == 0 && got.dropped == 0 && got.head.seq == t.seq);
	first = t.old[1].start;
	write_segments(&t, 1);
	CHECK(faccessat(dirfd, "trace.jsonl", F_OK, 0) < 0);
	CHECK(verify_segments(first, &got, &e) == 0 && got.dropped > 0 && got.head.seq == t.seq);
	/* One more missing segment that the trace does not mention. */
	CHECK(verify_segments(t.old[1].start, &got, &e) < 0 && strstr(e.msg, "were removed"));
	for (unsigned i = 0; i <= t.nold; i++) {
		char name[TRACE_NAME];

		trace_name(name, "trace", i < t.nold ? t.old[i].start : t.start);
		CHECK(unlinkat(dirfd, name, 0) == 0);
	}
	trace_done(&t);
	CHECK(rmdir(dir) == 0);
}

T_MAIN(T(segments_are_one_chain_and_the_oldest_is_dropped_with_notice),
       T(the_layout_is_as_promised), T(an_existing_trace_is_never_written_over),
       T(an_event_too_long_is_dropped_and_its_number_used_again),
       T(a_short_write_is_continued_where_it_stopped),
       T(a_full_disk_costs_events_and_says_how_many),
       T(a_batch_larger_than_the_ceiling_is_written_on_the_way),
       T(an_idle_trace_holds_little_memory))
