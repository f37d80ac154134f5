/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "ops/reconcile.h"
#include "store/groups.h"
#include "store/snapshots.h"
#include "store/store_test.h"

enum { CREATORS = 4, SWEEPERS = 4, ROUNDS = 40 };

static struct state s;
static struct catalog *cat;

static void begin(void)
{
	t_state(&s);
	OK(catalog_open(&s, &cat, &t_e));
}

/* Makes a sandbox as a creator does; returns its lock. */
static int make(const char *id, bool ephemeral, const char *state)
{
	int lock;

	OK(state_lock(&s, id, &lock, &t_e));
	t_make_box(&s, id);
	OK(t_add(cat, id, "", ephemeral));
	OK(catalog_set_state(cat, id, state, &t_e));
	return lock;
}

static void die(int lock)
{
	CHECK(close(lock) == 0);
}

static int sweep(int most)
{
	int removed = -1;

	OK(reconcile_all(cat, &s, most, &removed, &t_e));
	return removed;
}

static bool is(const char *id, const char *state)
{
	struct sandbox_row row = { 0 };

	return catalog_find(cat, id, &row, &t_e) == 0 && strcmp(row.state, state) == 0;
}

static bool has_box(const char *id)
{
	return t_there(&s, t_path("sandboxes", id, "/upper/file"));
}

static void the_dead_and_ephemeral_are_removed(void)
{
	begin();
	die(make("aaaaaaaa", true, "running"));
	die(make("bbbbbbbb", true, "creating"));
	CHECK(sweep(0) == 2);
	CHECK(!t_has_row(cat, "aaaaaaaa") && !has_box("aaaaaaaa"));
	CHECK(!t_has_row(cat, "bbbbbbbb") && !has_box("bbbbbbbb"));
	CHECK(!t_there(&s, "locks/aaaaaaaa") && !t_there(&s, "sandboxes/aaaaaaaa"));
	CHECK(t_there(&s, "ended/aaaaaaaa.jsonl"));
	CHECK(sweep(0) == 0);
	catalog_close(cat);
}

static void the_dead_and_persistent_become_lost_and_keep_their_files(void)
{
	begin();
	die(make("aaaaaaaa", false, "running"));
	CHECK(sweep(0) == 0);
	CHECK(is("aaaaaaaa", "lost") && has_box("aaaaaaaa"));
	CHECK(t_there(&s, "sandboxes/aaaaaaaa/trace.jsonl"));
	CHECK(sweep(0) == 0);
	CHECK(is("aaaaaaaa", "lost") && has_box("aaaaaaaa"));
	catalog_close(cat);
}

static void unfinished_sandboxes_are_removed(void)
{
	begin();
	die(make("aaaaaaaa", false, "creating"));
	CHECK(sweep(0) == 1);
	CHECK(!t_has_row(cat, "aaaaaaaa") && !has_box("aaaaaaaa"));
	catalog_close(cat);
}

static void the_living_are_left_alone(void)
{
	int lock[4];

	begin();
	lock[0] = make("aaaaaaaa", true, "running");
	lock[1] = make("bbbbbbbb", false, "running");
	lock[2] = make("cccccccc", false, "creating");
	OK(state_lock(&s, "dddddddd", &lock[3], &t_e));
	t_make_box(&s, "dddddddd"); /* its row comes later */
	CHECK(sweep(0) == 0);
	CHECK(is("aaaaaaaa", "running") && has_box("aaaaaaaa"));
	CHECK(is("bbbbbbbb", "running") && has_box("bbbbbbbb"));
	CHECK(is("cccccccc", "creating") && has_box("cccccccc"));
	CHECK(has_box("dddddddd") && state_is_alive(&s, "dddddddd"));
	catalog_close(cat);
}

static void orphans_are_removed(void)
{
	struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };

	begin();
	t_make_box(&s, "aaaaaaaa");
	CHECK(mkdirat(s.fd, "sandboxes/NotAnId", 0700) == 0);
	t_put(&s, "locks/bbbbbbbb", "");
	t_put(&s, "locks/cccccccc", "");
	CHECK(utimensat(s.fd, "locks/cccccccc", old, 0) == 0);
	CHECK(sweep(100) == 1);
	CHECK(!t_there(&s, "sandboxes/aaaaaaaa") && !t_there(&s, "locks/aaaaaaaa"));
	CHECK(t_there(&s, "sandboxes/NotAnId"));
	CHECK(t_there(&s, "locks/bbbbbbbb"));
	CHECK(!t_there(&s, "locks/cccccccc"));
	CHECK(sweep(0) == 0);
	CHECK(!t_there(&s, "locks/bbbbbbbb"));
	catalog_close(cat);
}

/* Another process takes the lock between the first check and ours. */
static void a_sandbox_locked_meanwhile_is_left_alone(void)
{
	int fd;

	begin();
	die(make("aaaaaaaa", true, "running"));
	fd = openat(s.fd, "locks/aaaaaaaa", O_RDONLY | O_CLOEXEC);
	CHECK(flock(fd, LOCK_SH) == 0);
	CHECK(!state_is_alive(&s, "aaaaaaaa"));
	CHECK(sweep(0) == 0);
	CHECK(is("aaaaaaaa", "running") && has_box("aaaaaaaa"));
	close(fd);
	CHECK(sweep(0) == 1);
	catalog_close(cat);
}

static int see(void *ctx, const struct call_row *row)
{
	*(struct call_row *)ctx = *row;
	return 0;
}

static void running_calls_are_lost_with_their_sandbox(void)
{
	struct call_row row = { 0 };

	begin();
	die(make("aaaaaaaa", false, "running"));
	t_put(&s, "sandboxes/aaaaaaaa/trace.jsonl",
	      "{\"kind\":\"call.start\",\"call\":1,\"argv\":[\"sleep\"]}\n");
	CHECK(sweep(0) == 0);
	OK(catalog_each_call(cat, "aaaaaaaa", see, &row, &t_e));
	CHECK(row.call == 1 && row.duration_us == 0 && WTERMSIG(row.status) == SIGKILL);
	CHECK_STR(row.reason, "lost");
	catalog_close(cat);
}

/* Each check covers only some sandboxes; repeated checks cover all. */
static void bounded_checks_cover_everything(void)
{
	int looks = 0, removed = 0;
	char id[ID_SIZE];

	begin();
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof id, "alive%03d", i);
		(void)make(id, false, "running");
	}
	for (int i = 0; i < 3; i++) {
		snprintf(id, sizeof id, "dying%03d", i);
		die(make(id, true, "running"));
	}
	for (; removed < 3 && looks < 2000; looks++) {
		int n = sweep(1);

		CHECK(n <= 2); /* one row and one directory */
		removed += n;
	}
	CHECK(removed == 3 && looks > 1);
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof id, "alive%03d", i);
		CHECK(is(id, "running") && has_box(id));
	}
	catalog_close(cat);
}

static void one_failure_does_not_stop_the_rest(void)
{
	struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	int removed = -1;

	begin();
	die(make("aaaaaaaa", true, "running"));
	die(make("bbbbbbbb", true, "running"));
	/* A lock that is a directory can be neither taken nor held. */
	CHECK(unlinkat(s.fd, "locks/aaaaaaaa", 0) == 0);
	CHECK(mkdirat(s.fd, "locks/aaaaaaaa", 0700) == 0);
	CHECK(utimensat(s.fd, "locks/aaaaaaaa", old, 0) == 0);
	CHECK(reconcile_all(cat, &s, 0, &removed, &t_e) == -1 && removed == 1);
	SAYS(t_e.msg, "/locks/aaaaaaaa");
	CHECK(t_has_row(cat, "aaaaaaaa") && has_box("aaaaaaaa") && !t_has_row(cat, "bbbbbbbb"));
	catalog_close(cat);
}

/* Missing and unreadable differ: an unreadable directory may contain files. */
static void unreadable_sandboxes_are_not_removed(void)
{
	int removed = -1;

	begin();
	die(make("aaaaaaaa", false, "running"));
	CHECK(renameat(s.fd, "sandboxes/aaaaaaaa", s.fd, "elsewhere") == 0);
	CHECK(symlinkat("../elsewhere", s.fd, "sandboxes/aaaaaaaa") == 0);
	CHECK(reconcile_all(cat, &s, 0, &removed, &t_e) == -1 && removed == 0);
	SAYS(t_e.msg, "/sandboxes/aaaaaaaa");
	CHECK(is("aaaaaaaa", "running") && t_there(&s, "sandboxes/aaaaaaaa"));
	CHECK(t_there(&s, "elsewhere/upper/file") && t_there(&s, "elsewhere/trace.jsonl"));
	catalog_close(cat);
}

static void add_with_recipe(const char *id)
{
	struct sandbox_row row = t_row(id, "", false);

	row.recipe = (struct str){ "", 1 };
	OK(catalog_add_sandbox(cat, &row, false, &t_e));
	OK(catalog_set_state(cat, id, "running", &t_e));
}

/* Begun by a process that had not noticed the death. It must not undo the kept files. */
static void a_rollback_of_the_dead_is_forgotten(void)
{
	struct operation_row op = { .kind = OPERATION_SNAPSHOT,
				    .sandbox = "aaaaaaaa",
				    .layer = "layer00001",
				    .snapshot = "snap000001" };
	char kept[ID_SIZE], top[ID_SIZE];

	begin();
	t_make_box(&s, "aaaaaaaa");
	add_with_recipe("aaaaaaaa");
	OK(catalog_op_begin(cat, &op, &t_e));
	CHECK(mkdirat(s.fd, "layers/layer00001", 0700) == 0);
	OK(catalog_op_done(cat, &op, OPERATION_SEALED, "", &t_e));
	CHECK(symlinkat("layer00001", s.fd, "sandboxes/aaaaaaaa/top") == 0);
	CHECK(sweep(0) == 0 && is("aaaaaaaa", "lost"));
	OK(catalog_top(cat, "aaaaaaaa", kept, &t_e));
	CHECK(strcmp(kept, "layer00001") != 0);
	op.kind = OPERATION_ROLLBACK;
	OK(catalog_op_begin(cat, &op, &t_e));
	CHECK(sweep(0) == 0);
	OK(catalog_top(cat, "aaaaaaaa", top, &t_e));
	CHECK_STR(top, kept);
	CHECK(catalog_op_find(cat, "aaaaaaaa", &op, &t_e) == 0);
	catalog_close(cat);
}

/*
 * Does what cay run does, with and without a proper end. Its files exist as long as the lock is
 * held.
 */
static void create_much(void)
{
	OK(catalog_open(&s, &cat, &t_e));
	for (int i = 0; i < ROUNDS; i++) {
		struct timespec nap = { .tv_nsec = (long)NS_PER_MS };
		struct sandbox_row row = { .ephemeral = i % 4 != 1, .uid_slot = -1 };
		int lock;

		OK(state_id_new(row.id, &t_e));
		OK(state_lock(&s, row.id, &lock, &t_e));
		t_make_box(&s, row.id);
		nanosleep(&nap, NULL);
		CHECK(has_box(row.id));
		OK(catalog_add_sandbox(cat, &row, true, &t_e));
		nanosleep(&nap, NULL);
		CHECK(is(row.id, "creating"));
		OK(catalog_set_state(cat, row.id, "running", &t_e));
		nanosleep(&nap, NULL);
		CHECK(is(row.id, "running") && has_box(row.id) && state_is_alive(&s, row.id));
		if (i % 4 < 2) {
			close(lock);
			continue;
		}
		OK(state_remove(&s, row.id, lock, &t_e));
		OK(catalog_del_sandbox(cat, row.id, &t_e));
	}
	catalog_close(cat);
	_exit(0);
}

static void sweep_until(int fd)
{
	char byte;

	OK(catalog_open(&s, &cat, &t_e));
	while (read(fd, &byte, 1) < 0 && errno == EAGAIN)
		(void)sweep(0);
	catalog_close(cat);
	_exit(0);
}

static int count_lost(void *ctx, const struct sandbox_row *row)
{
	CHECK_STR(row->state, "lost");
	CHECK(!row->ephemeral && has_box(row->id));
	++*(int *)ctx;
	return 0;
}

static void sweepers_never_remove_what_creators_hold(void)
{
	pid_t creators[CREATORS], sweepers[SWEEPERS];
	int until[2], lost = 0;

	t_state(&s);
	CHECK(pipe2(until, O_NONBLOCK | O_CLOEXEC) == 0);
	for (int i = 0; i < SWEEPERS; i++) {
		sweepers[i] = fork();
		if (sweepers[i] == 0) {
			close(until[1]);
			sweep_until(until[0]);
		}
	}
	for (int i = 0; i < CREATORS; i++) {
		creators[i] = fork();
		if (creators[i] == 0)
			create_much();
	}
	t_wait_all(creators, CREATORS);
	close(until[1]);
	t_wait_all(sweepers, SWEEPERS);
	OK(catalog_open(&s, &cat, &t_e));
	(void)sweep(0);
	OK(catalog_each(cat, count_lost, &lost, &t_e));
	CHECK(lost == CREATORS * ROUNDS / 4);
	catalog_close(cat);
}

/* A child that ends with us; returns once the child has reported. */
static pid_t bystander(void)
{
	int ready[2];
	pid_t pid;
	char c;

	CHECK(pipe2(ready, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && write(ready[1], "x", 1) == 1);
		for (;;)
			pause();
	}
	CHECK(read(ready[0], &c, 1) == 1 && close(ready[0]) == 0 && close(ready[1]) == 0);
	return pid;
}

/* Otherwise they would write to a sealed layer. */
static void writers_are_killed_before_the_files_are_kept(void)
{
	auto_close int own = groups_open(), group = FD_NONE;
	char pid_text[32];
	pid_t pid;
	int st;

	if (own < 0 || (mkdirat(own, "cay-storetestbb", 0755) < 0 && errno != EEXIST))
		t_skip("needs a cgroup v2 group to write in");
	begin();
	pid = bystander();
	group = openat(own, "cay-storetestbb", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(pid_text, sizeof pid_text, "%d", pid);
	CHECK(io_write_file(group, "cgroup.procs", pid_text) == 0);
	CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR); /* a zombie keeps its group */
	die(make("storetestbb", false, "running"));
	CHECK(sweep(0) == 0 && is("storetestbb", "lost"));
	CHECK(kill(pid, 0) < 0 && errno == ESRCH);
	CHECK(waitpid(pid, &st, 0) < 0 && errno == ECHILD);
	CHECK(faccessat(own, "cay-storetestbb", F_OK, 0) < 0);
	catalog_close(cat);
}

T_MAIN(T(the_dead_and_ephemeral_are_removed),
       T(the_dead_and_persistent_become_lost_and_keep_their_files),
       T(unfinished_sandboxes_are_removed), T(the_living_are_left_alone), T(orphans_are_removed),
       T(a_sandbox_locked_meanwhile_is_left_alone), T(running_calls_are_lost_with_their_sandbox),
       T(bounded_checks_cover_everything), T(one_failure_does_not_stop_the_rest),
       T(unreadable_sandboxes_are_not_removed), T(a_rollback_of_the_dead_is_forgotten),
       T(writers_are_killed_before_the_files_are_kept), T(sweepers_never_remove_what_creators_hold))
