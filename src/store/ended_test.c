/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what is kept of ended sandboxes, and for how long. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <time.h>

#include "base/trace_name.h"
#include "store/end_note.h"
#include "store/store_test.h"
#include "store/trace_files.h"

#define ID "aaaaaaaa"

static void age(const struct state *s, const char *path, time_t seconds)
{
	time_t then = time(NULL) - seconds;
	struct timespec t[2] = { { .tv_sec = then }, { .tv_sec = then } };

	CHECK(utimensat(s->fd, path, t, 0) == 0);
}

static void names_of_segments_are_read_back(void)
{
	static const char *const wrong[] = { "trace",	       "trace.x.jsonl", "trace.0.jsonl",
					     "trace.01.jsonl", "trace.1.json",	".jsonl.x" };
	char name[TRACE_NAME];
	struct str stem;
	uint64_t start;

	trace_name(name, "trace", 16777216);
	CHECK_STR(name, "trace.16777216.jsonl");
	CHECK(trace_name_parse(name, &stem, &start) && start == 16777216 && str_is(stem, "trace"));
	CHECK(trace_name_parse("trace.jsonl", &stem, &start) && start == 0);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		CHECK(!trace_name_parse(wrong[i], &stem, &start));
	CHECK(!trace_name_parse("trace.99999999999999999999999.jsonl", &stem, &start));
}

static void make_segments(struct state *s)
{
	t_state(s);
	t_make_box(s, ID);
	t_put(s, "sandboxes/" ID "/trace.3.jsonl", "{}\n{}\n");
	t_put(s, "sandboxes/" ID "/trace.9.jsonl", "{}\n");
}

static void check_found(const struct state *s, uint64_t offset, uint64_t want)
{
	uint64_t start = 77;
	int fd = trace_file_find(s->fd, ID, offset, &start);

	CHECK(fd >= 0 && start == want);
	close(fd);
}

static void the_segment_of_an_offset_is_found(void)
{
	struct state s;
	uint64_t start;
	int fd;

	make_segments(&s);
	check_found(&s, 0, 0);
	check_found(&s, 2, 0);
	check_found(&s, 3, 3);
	check_found(&s, 100, 9);
	CHECK(unlinkat(s.fd, "sandboxes/" ID "/trace.jsonl", 0) == 0);
	check_found(&s, 0, 3); /* the beginning was deleted */
	fd = trace_file_last(s.fd, ID, &start);
	CHECK(fd >= 0 && start == 9);
	close(fd);
	CHECK(trace_file_open(s.fd, ID, 4) == -ENOENT);
	CHECK(trace_file_find(s.fd, "bbbbbbbb", 0, &start) == -ENOENT);
}

static void all_segments_and_the_note_are_saved(void)
{
	struct state s;
	json_t *note;

	make_segments(&s);
	end_note_write(&s, ID);
	CHECK(state_save_trace(&s, ID) == 1);
	CHECK(t_there(&s, "ended/" ID ".jsonl") && t_there(&s, "ended/" ID ".3.jsonl"));
	CHECK(t_there(&s, "ended/" ID ".9.jsonl") && t_there(&s, "ended/" ID ".end.json"));
	check_found(&s, 5, 3);
	note = end_note_read(&s, ID);
	CHECK_STR(json_string_value(json_object_get(note, "reason")), "its warden died");
	json_decref(note);
	CHECK(state_save_trace(&s, ID) == 0);
}

static void a_note_tells_a_restart_and_the_last_words(void)
{
	struct state s;
	json_t *note;

	t_state(&s);
	t_make_box(&s, ID);
	t_put(&s, "sandboxes/" ID "/warden.log", "first\nlast words\n");
	age(&s, "sandboxes/" ID "/trace.jsonl", 100L * 365 * 24 * 3600 / 4);
	end_note_write(&s, ID);
	note = end_note_read(&s, ID);
	CHECK_STR(json_string_value(json_object_get(note, "reason")), "the machine was restarted");
	CHECK_STR(json_string_value(json_object_get(note, "log")), "last words");
	json_decref(note);
	/* The first note stays: later processes know less. */
	age(&s, "sandboxes/" ID "/trace.jsonl", 0);
	end_note_write(&s, ID);
	note = end_note_read(&s, ID);
	CHECK_STR(json_string_value(json_object_get(note, "reason")), "the machine was restarted");
	json_decref(note);
	/* A sandbox that never started has no end. */
	CHECK(mkdirat(s.fd, "sandboxes/cccccccc", 0700) == 0);
	end_note_write(&s, "cccccccc");
	CHECK(!t_there(&s, "sandboxes/cccccccc/end.json"));
	CHECK(!end_note_read(&s, "bbbbbbbb") && !end_note_make(&s, "bbbbbbbb"));
}

static void files_of_a_sandbox_go_together_by_age(void)
{
	struct state s;

	t_state(&s);
	t_put(&s, "ended/old00000.jsonl", "");
	t_put(&s, "ended/old00000.9.jsonl", "");
	t_put(&s, "ended/old00000.end.json", "");
	t_put(&s, "ended/young000.jsonl", "");
	t_put(&s, "ended/young000.9.jsonl", "");
	for (int i = 0; i < 3; i++)
		age(&s,
		    (const char *[]){ "ended/old00000.jsonl", "ended/old00000.9.jsonl",
				      "ended/old00000.end.json" }[i],
		    31L * 24 * 3600);
	age(&s, "ended/young000.jsonl", 31L * 24 * 3600); /* its last segment is new */
	CHECK(state_trim_ended(&s) == 0);
	CHECK(!t_there(&s, "ended/old00000.jsonl") && !t_there(&s, "ended/old00000.9.jsonl"));
	CHECK(!t_there(&s, "ended/old00000.end.json"));
	CHECK(t_there(&s, "ended/young000.jsonl") && t_there(&s, "ended/young000.9.jsonl"));
	CHECK(setenv("CAY_KEEP_ENDED", "0", 1) == 0);
	CHECK(state_trim_ended(&s) == 0);
	CHECK(!t_there(&s, "ended/young000.jsonl") && !t_there(&s, "ended/young000.9.jsonl"));
}

T_MAIN(T(names_of_segments_are_read_back), T(the_segment_of_an_offset_is_found),
       T(all_segments_and_the_note_are_saved), T(a_note_tells_a_restart_and_the_last_words),
       T(files_of_a_sandbox_go_together_by_age))
