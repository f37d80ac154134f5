/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the index of calls against valid and invalid traces. */
#include <signal.h>

#include "base/clock.h"
#include "base/limits.h"
#include "store/store_test.h"

#define ID   "aaaaaaaa"
#define PATH "sandboxes/" ID "/trace.jsonl"
#define EVENT(call, kind, fields) \
	"{\"seq\":7,\"time\":\"2026-01-02T03:04:05.000006Z\",\"sandbox\":\"" ID \
	"\",\"call\":" #call ",\"parent\":5,\"kind\":\"" kind "\"," fields ",\"prev\":\"00\"}\n"
#define START1 \
	EVENT(1, "call.start", \
	      "\"argv\":[\"echo\",{\"b64\":\"/w==\"}],\"call_id\":\"mine\"," \
	      "\"labels\":[\"a=b\",\"c=d=e\",\"none\"]")

static struct state s;
static struct catalog *cat;

struct seen {
	int n, stop_at;
	struct call_row last;
	char argv[256], labels[256];
};

static void begin(void)
{
	t_state(&s);
	OK(catalog_open(&s, &cat, &t_e));
	OK(t_add(cat, ID, "", true));
	CHECK(mkdirat(s.fd, "sandboxes/" ID, 0700) == 0);
}

static int see(void *ctx, const struct call_row *row)
{
	struct seen *seen = ctx;

	CHECK(row->call > seen->last.call);
	seen->n++;
	seen->last = *row;
	snprintf(seen->argv, sizeof seen->argv, "%s", row->argv);
	snprintf(seen->labels, sizeof seen->labels, "%s", row->labels ? row->labels : "NULL");
	return seen->n == seen->stop_at;
}

static struct seen look(void)
{
	struct seen seen = { 0 };

	OK(catalog_index_calls(cat, &s, ID, &t_e));
	OK(catalog_each_call(cat, ID, see, &seen, &t_e));
	return seen;
}

static void a_call_is_followed_from_start_to_exit(void)
{
	struct seen seen;

	begin();
	CHECK(look().n == 0); /* no trace yet */
	t_put(&s, PATH, START1);
	seen = look();
	CHECK(seen.n == 1 && seen.last.call == 1 && seen.last.duration_us == -1);
	CHECK(seen.last.start_ns == 1767323045ull * NS_PER_S + 6000);
	CHECK_STR(seen.last.call_id, "mine");
	CHECK_STR(seen.argv, "[\"echo\",{\"b64\":\"/w==\"}]");
	CHECK_STR(seen.labels, "{\"a\":\"b\",\"c\":\"d=e\"}");
	t_put(&s, PATH,
	      EVENT(1, "call.exit",
		    "\"code\":3,\"reason\":\"exit\",\"duration_us\":1500,\"out_bytes\":10,"
		    "\"err_bytes\":20"));
	seen = look();
	CHECK(seen.n == 1 && seen.last.duration_us == 1500);
	CHECK(WIFEXITED(seen.last.status) && WEXITSTATUS(seen.last.status) == 3);
	CHECK(seen.last.out_bytes == 10 && seen.last.err_bytes == 20);
	CHECK_STR(seen.last.reason, "exit");
	CHECK_STR(seen.last.call_id, "mine");
	catalog_close(cat);
}

static void signals_and_failures_are_distinguished(void)
{
	struct seen seen;

	begin();
	t_put(&s, PATH,
	      START1 EVENT(1, "call.exit", "\"signal\":9,\"reason\":\"oom\",\"duration_us\":1"));
	seen = look();
	CHECK(WIFSIGNALED(seen.last.status) && WTERMSIG(seen.last.status) == SIGKILL);
	CHECK_STR(seen.last.reason, "oom");
	t_put(&s, PATH, EVENT(2, "call.failed", "\"error\":\"no such file\""));
	seen = look();
	CHECK(seen.n == 2 && seen.last.call == 2 && seen.last.duration_us == 0);
	CHECK_STR(seen.last.reason, "failed");
	CHECK_STR(seen.argv, "[]");
	CHECK_STR(seen.labels, "NULL");
	CHECK(WIFEXITED(seen.last.status) && WEXITSTATUS(seen.last.status) == 127);
	catalog_close(cat);
}

static void only_complete_lines_count(void)
{
	size_t half = sizeof START1 / 2;
	char first[sizeof START1];

	begin();
	memcpy(first, START1, half);
	first[half] = '\0';
	t_put(&s, PATH, first);
	CHECK(look().n == 0);
	t_put(&s, PATH, &START1[half]);
	CHECK(look().n == 1);
	catalog_close(cat);
}

static void nonsense_is_passed_over(void)
{
	begin();
	t_put(&s, PATH,
	      "\n\"call.\n{\"kind\":\"call.start\",\n[\"call.start\"]\n{\"x\":\"call.\"}\n");
	t_put(&s, PATH, EVENT(0, "call.start", "\"argv\":[]"));
	t_put(&s, PATH, EVENT(-1, "call.start", "\"argv\":[]"));
	t_put(&s, PATH, EVENT(4294967296, "call.start", "\"argv\":[]"));
	t_put(&s, PATH, EVENT("1", "call.start", "\"argv\":[]"));
	t_put(&s, PATH, EVENT(1, "call.unheard", "\"argv\":[]"));
	t_put(&s, PATH, EVENT(1, "process.exec", "\"argv\":[\"call.start\"]"));
	CHECK(look().n == 0);
	t_put(&s, PATH, EVENT(4294967295, "call.start", "\"argv\":7,\"labels\":{},\"call_id\":[]"));
	CHECK(look().n == 1);
	catalog_close(cat);
}

/* An event of n bytes with its newline. */
static void put_event_of(size_t n, const char *call)
{
	auto_free char *line = malloc(n + 1);
	int head = snprintf(line, n, "{\"kind\":\"call.start\",\"call\":%s,\"argv\":[\"", call);

	memset(line + head, 'x', n - (size_t)head);
	memcpy(line + n - 4, "\"]}\n", 5);
	t_put(&s, PATH, line);
}

static void lines_end_at_their_limit(void)
{
	begin();
	put_event_of(LIMIT_EVENT + 1, "1");
	CHECK(look().n == 1);
	put_event_of(LIMIT_EVENT + 2, "2");
	put_event_of(10 << 20, "3");
	put_event_of(200, "4");
	CHECK(look().n == 2 && look().last.call == 4);
	/* The line is incomplete for now: the reader finds later lines once it ends. */
	put_event_of(300 * 1024, "5");
	{
		auto_close int fd = openat(s.fd, PATH, O_WRONLY | O_CLOEXEC);
		struct stat st;

		CHECK(fstat(fd, &st) == 0 && ftruncate(fd, st.st_size - 1) == 0);
	}
	CHECK(look().n == 2);
	t_put(&s, PATH, "\n");
	put_event_of(200, "6");
	CHECK(look().n == 3 && look().last.call == 6);
	catalog_close(cat);
}

/* The rest of an overlong line looks like an event, but is not one. */
static void the_end_of_a_long_line_is_not_a_line(void)
{
	auto_free char *text = calloc(1, 2 * LIMIT_EVENT + 1);

	begin();
	memset(text, 'x', 2 * LIMIT_EVENT);
	t_put(&s, PATH, text);
	t_put(&s, PATH, EVENT(1, "call.start", "\"argv\":[]"));
	t_put(&s, PATH, EVENT(2, "call.start", "\"argv\":[]"));
	CHECK(look().n == 1 && look().last.call == 2);
	catalog_close(cat);
}

static void many_calls_are_in_order_and_fn_can_stop(void)
{
	struct seen seen = { .stop_at = 70 };
	char line[256];

	begin();
	for (int i = 300; i > 0; i--) {
		snprintf(line, sizeof line, "{\"kind\":\"call.start\",\"call\":%d,\"argv\":[]}\n",
			 i);
		t_put(&s, PATH, line);
	}
	CHECK(look().n == 300);
	OK(catalog_each_call(cat, ID, see, &seen, &t_e));
	CHECK(seen.n == 70 && seen.last.call == 70);
	OK(catalog_del_sandbox(cat, ID, &t_e));
	seen = (struct seen){ 0 };
	OK(catalog_each_call(cat, ID, see, &seen, &t_e));
	CHECK(seen.n == 0);
	catalog_close(cat);
}

static void a_moved_trace_is_found(void)
{
	begin();
	t_put(&s, PATH, START1);
	CHECK(look().n == 1);
	t_put(&s, PATH, EVENT(2, "call.start", "\"argv\":[]"));
	CHECK(renameat(s.fd, PATH, s.fd, "ended/" ID ".jsonl") == 0);
	CHECK(look().n == 2);
	FAILS(catalog_index_calls(cat, &s, "bbbbbbbb", &t_e), ERR_NOT_FOUND);
	catalog_close(cat);
}

static void index_in_child(pid_t *ret)
{
	*ret = fork();
	if (*ret != 0)
		return;
	OK(catalog_open(&s, &cat, &t_e));
	OK(catalog_index_calls(cat, &s, ID, &t_e));
	catalog_close(cat);
	_exit(0);
}

/* Larger than one transaction; also with several readers at once, where each line counts once. */
static void a_large_trace_is_indexed_whole(void)
{
	struct seen seen = { 0 };
	pid_t pids[4];

	begin();
	OK(t_add(cat, "bbbbbbbb", "", true));
	CHECK(mkdirat(s.fd, "sandboxes/bbbbbbbb", 0700) == 0);
	for (int i = 1; i <= 100; i++) {
		char call[16];

		snprintf(call, sizeof call, "%d", i);
		put_event_of(LIMIT_EVENT, call);
	}
	CHECK(linkat(s.fd, PATH, s.fd, "sandboxes/bbbbbbbb/trace.jsonl", 0) == 0);
	OK(catalog_index_calls(cat, &s, "bbbbbbbb", &t_e));
	OK(catalog_each_call(cat, "bbbbbbbb", see, &seen, &t_e));
	CHECK(seen.n == 100);
	catalog_close(cat);
	for (int i = 0; i < 4; i++)
		index_in_child(&pids[i]);
	t_wait_all(pids, 4);
	OK(catalog_open(&s, &cat, &t_e));
	CHECK(look().n == 100);
	catalog_close(cat);
}

T_MAIN(T(a_call_is_followed_from_start_to_exit), T(signals_and_failures_are_distinguished),
       T(only_complete_lines_count), T(nonsense_is_passed_over), T(lines_end_at_their_limit),
       T(the_end_of_a_long_line_is_not_a_line), T(many_calls_are_in_order_and_fn_can_stop),
       T(a_moved_trace_is_found), T(a_large_trace_is_indexed_whole))
