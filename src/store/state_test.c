/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state.h"

#include <dirent.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <time.h>

#include "store/groups.h"
#include "store/store_test.h"

enum { NOBODY = 65534 };

static void open_makes_a_private_directory_with_its_parts(void)
{
	struct state s, again;
	struct stat st;

	t_state(&s);
	CHECK(fstat(s.fd, &st) == 0 && (st.st_mode & 07777) == 0700);
	CHECK(t_there(&s, "locks") && t_there(&s, "sandboxes"));
	CHECK(t_there(&s, "ended") && t_there(&s, "templates"));
	CHECK(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
	OK(state_open(&again, &t_e));
	CHECK_STR(s.dir, again.dir);
	state_done(&again);
	CHECK(again.fd == -1);
	state_done(&s);
}

static void open_refuses_what_is_open_to_others(void)
{
	static const mode_t open_modes[] = { 0770, 0702, 0755, 0711, 0740, 0701 };
	struct state s, again;

	t_state(&s);
	for (size_t i = 0; i < ARRAY_LEN(open_modes); i++) {
		CHECK(fchmod(s.fd, open_modes[i]) == 0);
		FAILS(state_open(&again, &t_e), ERR_NOT_ALLOWED);
		SAYS(t_e.msg, s.dir);
		SAYS(t_e.msg, "open to others (mode 07");
		SAYS(t_e.hint, "chmod 700");
	}
	CHECK(fchmod(s.fd, 0700) == 0);
	OK(state_open(&again, &t_e));
}

static void a_private_file_is_taken_away_from_others(void)
{
	struct state s;
	struct stat st;

	t_state(&s);
	(void)umask(0);
	CHECK(state_private_file(&s, "f", false) == 0 && !t_there(&s, "f"));
	CHECK(state_private_file(&s, "f", true) == 0);
	CHECK(fstatat(s.fd, "f", &st, 0) == 0 && (st.st_mode & 07777) == 0600);
	CHECK(fchmodat(s.fd, "f", 0644, 0) == 0 && state_private_file(&s, "f", true) == 0);
	CHECK(fstatat(s.fd, "f", &st, 0) == 0 && (st.st_mode & 07777) == 0600);
	CHECK(symlinkat("f", s.fd, "l") == 0 && state_private_file(&s, "l", true) == -EINVAL);
}

static void open_refuses_the_directory_of_another(void)
{
	struct state s, again;

	t_state(&s);
	CHECK(fchown(s.fd, NOBODY, NOBODY) == 0);
	FAILS(state_open(&again, &t_e), ERR_NOT_ALLOWED);
	SAYS(t_e.msg, "belongs to uid 65534");
	SAYS(t_e.hint, "CAY_STATE");
}

static void open_names_a_path_that_cannot_be_made(void)
{
	struct state s;

	CHECK(setenv("CAY_STATE", "/proc/none/cay", 1) == 0);
	FAILS(state_open(&s, &t_e), ERR_SYS);
	SAYS(t_e.msg, "/proc/none/cay");
	SAYS(t_e.hint, "set CAY_STATE");
	CHECK(s.fd == -1);
	CHECK(setenv("CAY_STATE", "/dev/null", 1) == 0);
	FAILS(state_open(&s, &t_e), ERR_SYS);
	SAYS(t_e.msg, "/dev/null");
	CHECK(setenv("CAY_STATE", "relative", 1) == 0);
	FAILS(state_open(&s, &t_e), ERR_INVALID);
}

static void look_for_places_as_nobody(void)
{
	char home[80];
	struct state s;

	CHECK(geteuid() != 0 || (setgid(NOBODY) == 0 && setuid(NOBODY) == 0));
	CHECK(unsetenv("CAY_STATE") == 0 && unsetenv("XDG_STATE_HOME") == 0);
	snprintf(home, sizeof home, "%s/home", t_dir);
	CHECK(setenv("HOME", home, 1) == 0);
	OK(state_open(&s, &t_e));
	SAYS(s.dir, "/home/.local/state/cay");
	snprintf(home, sizeof home, "%s/xdg", t_dir);
	CHECK(setenv("XDG_STATE_HOME", home, 1) == 0);
	OK(state_open(&s, &t_e));
	SAYS(s.dir, "/xdg/cay");
	CHECK(unsetenv("HOME") == 0 && setenv("XDG_STATE_HOME", "relative", 1) == 0);
	FAILS(state_open(&s, &t_e), ERR_INVALID);
	SAYS(t_e.hint, "CAY_STATE");
	_exit(0);
}

static void the_place_follows_the_environment(void)
{
	struct state s;
	pid_t pid;
	int st;

	t_state(&s);
	CHECK(chmod(t_dir, 0777) == 0);
	pid = fork();
	if (pid == 0)
		look_for_places_as_nobody();
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
}

static void ids_and_names_have_a_syntax(void)
{
	char name[66];

	CHECK(state_id_ok("abcdefgh") && state_id_ok("k3x9k3x9k3x9") && state_id_ok("01234567"));
	CHECK(state_id_ok("abcdefghijklmnopqrst") && !state_id_ok("abcdefghijklmnopqrstu"));
	CHECK(!state_id_ok("abcdefg") && !state_id_ok("") && !state_id_ok("Abcdefgh"));
	CHECK(!state_id_ok("abcdefg/") && !state_id_ok("abcdefgh\n") && !state_id_ok("../abcde"));
	CHECK(state_name_ok("a") && state_name_ok("My.box_1-2") && !state_name_ok(""));
	CHECK(!state_name_ok(".a") && !state_name_ok("-a") && !state_name_ok("_a"));
	CHECK(!state_name_ok("a b") && !state_name_ok("a/b") && !state_name_ok("a\n"));
	memset(name, 'x', sizeof name);
	name[63] = '\0';
	CHECK(state_name_ok(name));
	name[63] = 'x';
	name[64] = '\0';
	CHECK(!state_name_ok(name));
}

static void new_ids_are_well_formed_and_differ(void)
{
	char id[ID_SIZE], last[ID_SIZE] = "";
	unsigned seen[128] = { 0 };

	for (int i = 0; i < 2000; i++) {
		OK(state_id_new(id, &t_e));
		CHECK(state_id_ok(id) && strlen(id) == ID_LEN);
		CHECK(id[0] >= 'a' && id[0] <= 'z');
		CHECK(strcmp(id, last) != 0);
		for (int k = 1; k < ID_LEN; k++)
			seen[(unsigned char)id[k]]++;
		(void)snprintf(last, sizeof last, "%s", id);
	}
	/* 22,000 characters of 36: 611 each, standard deviation 24. */
	for (const char *p = "az09"; *p; p++)
		CHECK(seen[(unsigned char)*p] > 450 && seen[(unsigned char)*p] < 770);
}

static void a_held_lock_means_alive(void)
{
	struct state s;
	int fd, other;

	t_state(&s);
	CHECK(!state_is_alive(&s, "aaaaaaaa"));
	OK(state_lock(&s, "aaaaaaaa", &fd, &t_e));
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(state_is_alive(&s, "aaaaaaaa"));
	FAILS(state_lock(&s, "aaaaaaaa", &other, &t_e), ERR_CONFLICT);
	close(fd);
	CHECK(!state_is_alive(&s, "aaaaaaaa"));
	OK(state_lock(&s, "aaaaaaaa", &fd, &t_e));
	FAILS(state_lock(&s, "../../x", &other, &t_e), ERR_INVALID);
	CHECK(!state_is_alive(&s, "../locks/aaaaaaaa"));
}

static void a_lock_lives_as_long_as_an_heir_holds_it(void)
{
	int fd, go[2];
	struct state s;
	pid_t pid;
	char c;

	t_state(&s);
	OK(state_lock(&s, "aaaaaaaa", &fd, &t_e));
	CHECK(pipe(go) == 0);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		(void)!read(go[0], &c, 1);
		_exit(0);
	}
	close(fd);
	CHECK(state_is_alive(&s, "aaaaaaaa"));
	close(go[1]);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(!state_is_alive(&s, "aaaaaaaa"));
}

/* state_is_alive() holds the lock, shared, for a moment; here for long. */
static void looking_does_not_keep_a_lock_from_being_taken(void)
{
	struct state s;
	int taken = 0;

	t_state(&s);
	t_put(&s, "locks/aaaaaaaa", "");
	for (int i = 0; i < 10; i++) {
		struct timespec moment = { .tv_nsec = 500 * 1000 };
		int fd, held[2];
		pid_t pid;
		char c;

		CHECK(pipe(held) == 0);
		pid = fork();
		if (pid == 0) {
			fd = openat(s.fd, "locks/aaaaaaaa", O_RDONLY | O_CLOEXEC);
			CHECK(flock(fd, LOCK_SH) == 0 && write(held[1], "", 1) == 1);
			nanosleep(&moment, NULL);
			_exit(0);
		}
		CHECK(read(held[0], &c, 1) == 1);
		if (state_lock(&s, "aaaaaaaa", &fd, &t_e) == 0) {
			taken++;
			close(fd);
		}
		CHECK(waitpid(pid, NULL, 0) == pid);
	}
	/* On a busy machine the moment may occasionally be too long. */
	CHECK(taken >= 5);
}

/* Processes lock and remove one id: the lock is never held twice, nor on a removed file. */
static void a_lock_is_never_held_on_a_removed_file(void)
{
	struct state s;
	pid_t pid[4];

	t_state(&s);
	for (int i = 0; i < 4; i++) {
		pid[i] = fork();
		for (int k = 0; pid[i] == 0 && k < 200; k++) {
			int fd;

			if (state_lock(&s, "aaaaaaaa", &fd, &t_e) < 0) {
				CHECK(t_e.kind == ERR_CONFLICT);
				continue;
			}
			CHECK(mkdirat(s.fd, "sandboxes/aaaaaaaa", 0700) == 0);
			OK(state_remove(&s, "aaaaaaaa", fd, &t_e));
		}
		if (pid[i] == 0)
			_exit(0);
	}
	for (int i = 0; i < 4; i++) {
		int st;

		CHECK(waitpid(pid[i], &st, 0) == pid[i] && st == 0);
	}
}

static void sandbox_open_finds_only_existing_sandboxes(void)
{
	struct state s;
	int fd = -1;

	t_state(&s);
	FAILS(state_sandbox_open(&s, "aaaaaaaa", &fd, &t_e), ERR_NOT_FOUND);
	FAILS(state_sandbox_open(&s, "../locks", &fd, &t_e), ERR_INVALID);
	CHECK(fd == -1);
	t_make_box(&s, "aaaaaaaa");
	OK(state_sandbox_open(&s, "aaaaaaaa", &fd, &t_e));
	CHECK(faccessat(fd, "upper/file", F_OK, 0) == 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void remove_id(const struct state *s, const char *id)
{
	int fd;

	OK(state_lock(s, id, &fd, &t_e));
	OK(state_remove(s, id, fd, &t_e));
	CHECK(fcntl(fd, F_GETFD) < 0);
}

static void remove_keeps_the_trace_and_nothing_else(void)
{
	struct state s;

	t_state(&s);
	t_make_box(&s, "aaaaaaaa");
	remove_id(&s, "aaaaaaaa");
	CHECK(t_there(&s, "ended/aaaaaaaa.jsonl"));
	CHECK(!t_there(&s, "sandboxes/aaaaaaaa") && !t_there(&s, "locks/aaaaaaaa"));
	remove_id(&s, "aaaaaaaa");
	CHECK(t_there(&s, "ended/aaaaaaaa.jsonl") && !t_there(&s, "locks/aaaaaaaa"));
}

static void age(const struct state *s, const char *path, time_t mtime)
{
	struct timespec t[2] = { { .tv_sec = mtime }, { .tv_sec = mtime } };

	CHECK(utimensat(s->fd, path, t, 0) == 0);
}

static int count(const struct state *s)
{
	DIR *d = fdopendir(openat(s->fd, "ended", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int n = 0;

	CHECK(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void the_newest_traces_are_kept(void)
{
	struct state s;

	t_state(&s);
	CHECK(setenv("CAY_KEEP_ENDED", "2", 1) == 0);
	CHECK(setenv("CAY_KEEP_DAYS", "0", 1) == 0);
	t_put(&s, "ended/old00000.jsonl", "");
	age(&s, "ended/old00000.jsonl", 1000);
	t_put(&s, "ended/newer000.jsonl", "");
	age(&s, "ended/newer000.jsonl", 3000);
	t_put(&s, "ended/not ours", "");
	t_make_box(&s, "aaaaaaaa");
	age(&s, "sandboxes/aaaaaaaa/trace.jsonl", 2000);
	remove_id(&s, "aaaaaaaa");
	CHECK(!t_there(&s, "ended/old00000.jsonl"));
	CHECK(t_there(&s, "ended/newer000.jsonl") && t_there(&s, "ended/aaaaaaaa.jsonl"));
	CHECK(t_there(&s, "ended/not ours"));
	CHECK(setenv("CAY_KEEP_ENDED", "0", 1) == 0);
	t_make_box(&s, "bbbbbbbb");
	remove_id(&s, "bbbbbbbb");
	CHECK(!t_there(&s, "ended/bbbbbbbb.jsonl") && !t_there(&s, "sandboxes/bbbbbbbb"));
}

static void traces_never_pass_the_limit_and_an_eighth(void)
{
	struct state s;
	char id[16];

	t_state(&s);
	CHECK(setenv("CAY_KEEP_ENDED", "16", 1) == 0);
	CHECK(setenv("CAY_KEEP_DAYS", "0", 1) == 0);
	for (int i = 0; i < 40; i++) {
		snprintf(id, sizeof id, "aaaaaa%02d", i);
		CHECK(mkdirat(s.fd, t_path("sandboxes", id, ""), 0700) == 0);
		t_put(&s, t_path("sandboxes", id, "/trace.jsonl"), "");
		age(&s, t_path("sandboxes", id, "/trace.jsonl"), 1000 + i);
		remove_id(&s, id);
		CHECK(count(&s) <= 18);
		CHECK(i < 16 || count(&s) >= 16);
	}
	CHECK(t_there(&s, "ended/aaaaaa39.jsonl") && t_there(&s, "ended/aaaaaa24.jsonl"));
	CHECK(!t_there(&s, "ended/aaaaaa00.jsonl"));
}

/* The group of a sandbox, with a leaf for a call and a process in the leaf. */
static void remove_kills_and_removes_the_control_groups(void)
{
	int own = groups_open(), leaf;
	struct state s;
	char pid_text[32];
	pid_t pid;
	int st;

	CHECK(own >= 0);
	t_state(&s);
	CHECK(mkdirat(own, "cay-storetestaa", 0755) == 0);
	CHECK(mkdirat(own, "cay-storetestaa/call-1", 0755) == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		for (;;)
			pause();
	}
	leaf = openat(own, "cay-storetestaa/call-1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(pid_text, sizeof pid_text, "%d", pid);
	CHECK(io_write_file(leaf, "cgroup.procs", pid_text) == 0);
	CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR); /* a zombie keeps its group */
	remove_id(&s, "storetestaa");
	CHECK(waitpid(pid, &st, 0) < 0 && errno == ECHILD);
	CHECK(faccessat(own, "cay-storetestaa", F_OK, 0) < 0);
	CHECK(!t_there(&s, "locks/storetestaa"));
}

static void a_failed_removal_names_the_path(void)
{
	struct state s;
	pid_t pid;
	int st;

	t_state(&s);
	t_make_box(&s, "aaaaaaaa");
	CHECK(chmod(t_dir, 0755) == 0 && fchown(s.fd, NOBODY, NOBODY) == 0);
	for (const char *const *d = (const char *const[]){ "locks", "sandboxes", "ended",
							   "sandboxes/aaaaaaaa", NULL };
	     *d; d++)
		CHECK(fchownat(s.fd, *d, NOBODY, NOBODY, 0) == 0);
	pid = fork();
	if (pid == 0) {
		int fd;

		CHECK(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
		OK(state_lock(&s, "aaaaaaaa", &fd, &t_e));
		FAILS(state_remove(&s, "aaaaaaaa", fd, &t_e), ERR_SYS);
		SAYS(t_e.msg, "/sandboxes/aaaaaaaa");
		SAYS(t_e.hint, "as root");
		CHECK(fcntl(fd, F_GETFD) < 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	CHECK(t_there(&s, "ended/aaaaaaaa.jsonl") && t_there(&s, "sandboxes/aaaaaaaa/upper/file"));
	remove_id(&s, "aaaaaaaa");
	CHECK(!t_there(&s, "sandboxes/aaaaaaaa"));
}

static void a_slot_is_never_given_twice_while_it_is_held(void)
{
	enum { SLOTS = 8 };
	struct state s, other;
	int slot[SLOTS], fd[SLOTS], again = -1, spare = -1;
	unsigned seen = 0;

	t_state(&s);
	OK(state_open(&other, &t_e));
	for (int i = 0; i < SLOTS; i++) {
		OK(state_take_slot(i % 2 ? &s : &other, SLOTS, &slot[i], &fd[i], &t_e));
		CHECK(slot[i] >= 0 && slot[i] < SLOTS && !(seen & 1u << slot[i]));
		CHECK(fcntl(fd[i], F_GETFD) == FD_CLOEXEC);
		seen |= 1u << slot[i];
	}
	FAILS(state_take_slot(&s, SLOTS, &again, &spare, &t_e), ERR_LIMIT);
	SAYS(t_e.msg, "all 8 uid ranges");
	CHECK(again == -1 && spare == -1);
	CHECK(close(fd[3]) == 0);
	OK(state_take_slot(&s, SLOTS, &again, &spare, &t_e));
	CHECK(again == slot[3]);
}

/* Holds what it inherited until the pipe closes, like a warden. */
static pid_t hold_slot(int go)
{
	pid_t pid = fork();
	char c;

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(read(go, &c, 1) != 0);
	return pid;
}

static void a_slot_is_free_when_its_last_holder_ends(void)
{
	struct state s;
	int slot, fd, go[2], st;
	pid_t pid;

	t_state(&s);
	CHECK(pipe2(go, O_CLOEXEC) == 0);
	OK(state_take_slot(&s, 1, &slot, &fd, &t_e));
	pid = fork();
	if (pid == 0) {
		CHECK(close(go[1]) == 0);
		CHECK(hold_slot(go[0]) > 0); /* a grandchild, too */
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0 && close(fd) == 0);
	FAILS(state_take_slot(&s, 1, &slot, &fd, &t_e), ERR_LIMIT);
	CHECK(close(go[1]) == 0);
	while (state_take_slot(&s, 1, &slot, &fd, &t_e) < 0)
		CHECK(t_e.kind == ERR_LIMIT); /* the test's alarm ends a wait that never succeeds */
	CHECK(slot == 0);
}

static void racing_processes_never_share_a_slot(void)
{
	enum { RACERS = 16, SLOTS = 8 * RACERS };
	pid_t pids[RACERS];
	struct state s;
	int mark, go[2];

	t_state(&s);
	CHECK(pipe2(go, O_CLOEXEC) == 0);
	for (int i = 0; i < RACERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			int slot, fd;
			char c, name[32];

			CHECK(close(go[1]) == 0 && read(go[0], &c, 1) == 0);
			for (int round = 0; round < 100; round++) {
				OK(state_take_slot(&s, SLOTS, &slot, &fd, &t_e));
				snprintf(name, sizeof name, "ended/%d", slot);
				mark = openat(s.fd, name, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
				CHECK(mark >= 0 && close(mark) == 0);
				CHECK(unlinkat(s.fd, name, 0) == 0 && close(fd) == 0);
			}
			_exit(0);
		}
	}
	CHECK(close(go[1]) == 0);
	t_wait_all(pids, RACERS);
}

static bool can_make_groups(void)
{
	auto_close int own = groups_open();
	bool can = own >= 0 && mkdirat(own, "cay-storetest", 0755) == 0;

	if (can)
		(void)unlinkat(own, "cay-storetest", AT_REMOVEDIR);
	return can;
}

int main(void)
{
	struct t_case c[] = {
		T(open_makes_a_private_directory_with_its_parts),
		T(a_slot_is_never_given_twice_while_it_is_held),
		T(a_slot_is_free_when_its_last_holder_ends),
		T(racing_processes_never_share_a_slot),
		T(open_refuses_what_is_open_to_others),
		T(a_private_file_is_taken_away_from_others),
		T(open_names_a_path_that_cannot_be_made),
		T(the_place_follows_the_environment),
		T(ids_and_names_have_a_syntax),
		T(new_ids_are_well_formed_and_differ),
		T(a_held_lock_means_alive),
		T(a_lock_lives_as_long_as_an_heir_holds_it),
		T(looking_does_not_keep_a_lock_from_being_taken),
		T(a_lock_is_never_held_on_a_removed_file),
		T(sandbox_open_finds_only_existing_sandboxes),
		T(remove_keeps_the_trace_and_nothing_else),
		T(the_newest_traces_are_kept),
		T(traces_never_pass_the_limit_and_an_eighth),
		T(remove_kills_and_removes_the_control_groups),
		T(open_refuses_the_directory_of_another),
		T(a_failed_removal_names_the_path),
	};
	size_t n = sizeof c / sizeof c[0];

	if (!can_make_groups())
		c[n - 3] = (struct t_case)T_SKIP(remove_kills_and_removes_the_control_groups,
						 "needs a cgroup v2 group to write in");
	if (geteuid() != 0) {
		c[n - 2] =
			(struct t_case)T_SKIP(open_refuses_the_directory_of_another, "needs root");
		c[n - 1] = (struct t_case)T_SKIP(a_failed_removal_names_the_path, "needs root");
	}
	return t_run(c, n);
}
