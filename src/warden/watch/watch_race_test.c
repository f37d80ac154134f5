/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that try to run without an event, or under a wrong one: 10,000 execs. Each program that
 * runs writes its own letter and its argument to a pipe, which gives a count independent of the
 * events.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "warden/watch/watch_fake.h"

enum { EXECS = 1000, DEBUGGED = 20, AT_ONCE = 16, NR_MEMFD_SECRET = 447 };

/* Memory shared by all processes of a test. */
struct shared {
	char path[8], arg[2];
	int bystanders[2];
};

static struct shared *shared;

static char *const *argv_of_shared(void)
{
	static char *argv[3];

	argv[0] = "x";
	argv[1] = shared->arg;
	return argv;
}

/* Start EXECS children, several in parallel, each with one exec; vfork: they share our memory. */
static __attribute__((noinline)) void start_one(void (*one)(void), bool use_vfork)
{
	/* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): it is the test */
	pid_t pid = use_vfork ? vfork() : fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		one();
		_exit(3);
	}
}

static void storm(void (*one)(void), bool use_vfork)
{
	for (int i = 0; i < EXECS; i++) {
		start_one(one, use_vfork);
		if (i >= AT_ONCE)
			(void)wait(NULL);
	}
}

static void end_storm(void)
{
	for (size_t i = 0; i < ARRAY_LEN(shared->bystanders); i++)
		if (shared->bystanders[i])
			(void)kill(shared->bystanders[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	_exit(0);
}

static void bystand(int n, void (*fn)(void))
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		for (;;)
			fn();
	}
	shared->bystanders[n] = pid;
}

/* --- the attempts --- */

static void exec_shared(void)
{
	(void)execve(shared->path, argv_of_shared(), environ);
}

static void flip(void)
{
	shared->path[2] = shared->path[2] == 'A' ? 'B' : 'A';
	shared->arg[0] = shared->arg[0] == 'a' ? 'b' : 'a';
}

static void flipped_memory(void *arg)
{
	(void)arg;
	bystand(0, flip);
	storm(exec_shared, true);
	end_storm();
}

static void exec_place(void)
{
	(void)execve("./p", argv_of_shared(), environ);
}

static void change_place(void)
{
	(void)unlink("p");
	(void)(link("A", "q") == 0 && rename("q", "p") == 0);
	(void)unlink("p");
	(void)(link("B", "q") == 0 && rename("q", "p") == 0);
}

static void renamed_into_place(void *arg)
{
	(void)arg;
	bystand(0, change_place);
	storm(exec_place, false);
	end_storm();
}

static void plain_vforks(void *arg)
{
	(void)arg;
	storm(exec_shared, true);
	end_storm();
}

static void exec_by_fd(void)
{
	int fd = open("B", O_RDONLY | O_CLOEXEC);

	(void)syscall(SYS_execveat, fd, "", argv_of_shared(), environ, AT_EMPTY_PATH);
}

static void programs_by_descriptor(void *arg)
{
	(void)arg;
	storm(exec_by_fd, false);
	end_storm();
}

static void exec_memfd(void)
{
	int from = open("A", O_RDONLY | O_CLOEXEC), fd = memfd_create("B", MFD_CLOEXEC);
	char all[4096];
	ssize_t n = read(from, all, sizeof all);

	CHECK(n > 0 && write(fd, all, (size_t)n) == n);
	(void)fexecve(fd, argv_of_shared(), environ);
}

static void programs_without_a_file(void *arg)
{
	(void)arg;
	storm(exec_memfd, false);
	end_storm();
}

static void exec_secret(void)
{
	long fd = syscall(NR_MEMFD_SECRET, 0);
	char *p = "./A";

	if (fd >= 0 && ftruncate((int)fd, 4096) == 0) {
		char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);

		if (at != MAP_FAILED)
			p = strcpy(at, "./A");
	}
	(void)execve(p, argv_of_shared(), environ);
}

static void paths_in_secret_memory(void *arg)
{
	(void)arg;
	storm(exec_secret, false);
	end_storm();
}

static char private_path[8];
static pid_t victim;

static void write_to_victim(void)
{
	static const char *const texts[] = { "./A", "./B" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct iovec here = { (void *)texts[i], 4 }, there = { private_path, 4 };

		(void)process_vm_writev(victim, &here, 1, &there, 1, 0);
	}
}

static void exec_private(void)
{
	(void)execve(private_path, argv_of_shared(), environ);
}

static void memory_written_by_a_sibling(void *arg)
{
	(void)arg;
	memcpy(private_path, "./A", 4);
	victim = getpid();
	bystand(0, write_to_victim);
	storm(exec_private, true);
	end_storm();
}

static void *exec_in_a_thread(void *arg)
{
	(void)arg;
	exec_shared();
	return NULL;
}

static void exec_of_threads(void)
{
	pthread_t t;

	for (int i = 0; i < 4; i++)
		(void)pthread_create(&t, NULL, exec_in_a_thread, NULL);
	exec_shared();
}

static void threads_that_race_to_exec(void *arg)
{
	(void)arg;
	bystand(0, flip);
	storm(exec_of_threads, false);
	end_storm();
}

static void exec_killed(void)
{
	pid_t self = getpid();

	if (fork() == 0) {
		for (volatile int i = 0; i < (self % 50) * 10000; i++)
			;
		(void)kill(self, SIGKILL);
		_exit(0);
	}
	exec_shared();
}

static void programs_killed_at_any_moment(void *arg)
{
	(void)arg;
	storm(exec_killed, false);
	end_storm();
}

/* --- the counts --- */

static void drain(int fd, int counts[256])
{
	unsigned char some[4096];
	ssize_t n;

	while ((n = read(fd, some, sizeof some)) > 0)
		for (ssize_t i = 0; i < n; i++)
			counts[some[i]]++;
}

/* Number of certain events of a program whose name ends like this, or with this argument. */
static int events_of(const char *end, char arg)
{
	int n = 0;

	for (int i = 0; i < fake_len; i++) {
		const struct fake_event *e = &fake_events[i];
		size_t len = strlen(e->path);

		if (strcmp(e->kind, "process.exec") != 0 || e->uncertain)
			continue;
		n += end ? len >= strlen(end) && strcmp(e->path + len - strlen(end), end) == 0
			 : e->argc == 2 && e->argv[2] == arg;
	}
	return n;
}

static int uncertain_events(void)
{
	int n = 0;

	for (int i = 0; i < fake_len; i++)
		n += fake_events[i].uncertain;
	return n;
}

static void forget_events(void)
{
	for (int i = 0; i < fake_len; i++)
		free(fake_events[i].argv);
	fake_len = 0;
}

/* Runs the attempt with the pipe as FAKE_TALLY. */
static void attempt(void (*fn)(void *), int counts[256])
{
	int tally[2];

	memset(counts, 0, 256 * sizeof *counts);
	memcpy(shared->path, "./A", 4);
	memcpy(shared->arg, "a", 2);
	memset(shared->bystanders, 0, sizeof shared->bystanders);
	forget_events();
	CHECK(pipe2(tally, O_CLOEXEC) == 0 && dup2(tally[1], FAKE_TALLY) == FAKE_TALLY);
	CHECK(fcntl(tally[1], F_SETPIPE_SZ, 1 << 20) > 0);
	CHECK(close(tally[1]) == 0 && fcntl(tally[0], F_SETFL, O_NONBLOCK) == 0);
	run(fn, NULL);
	CHECK(close(FAKE_TALLY) == 0);
	drain(tally[0], counts);
	close(tally[0]);
}

static void begin(void)
{
	char scratch[64];

	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	t_scratch(scratch, sizeof scratch);
	CHECK(chdir(scratch) == 0);
	fake_program("A", 'A');
	fake_program("B", 'B');
}

/*
 * The events must match the programs that ran: as many of each name, and of each argument.
 * only_name: count all of them together, if the name does not distinguish the programs.
 */
static void check_attempt(void (*fn)(void *), const char *only_name)
{
	int counts[256], ran;

	begin();
	attempt(fn, counts);
	ran = counts['A'] + counts['B'];
	printf("# A %d, B %d, a %d, b %d, events %d\n", counts['A'], counts['B'], counts['a'],
	       counts['b'], count("process.exec"));
	/* Some must have run; how many of those that race do depends on the machine. */
	CHECK(ran >= 5 && count("process.exec") == ran);
	CHECK(uncertain_events() == 0 && count("trace.gap") == 0);
	if (only_name) {
		int n = events_of(only_name, 0);

		CHECK(n + events_of("/p (deleted)", 0) == ran);
	} else {
		CHECK(events_of("/A", 0) == counts['A'] && events_of("/B", 0) == counts['B']);
	}
	CHECK(events_of(NULL, 'a') == counts['a'] && events_of(NULL, 'b') == counts['b']);
}

static void flips_of_path_and_argument_change_nothing(void)
{
	check_attempt(flipped_memory, NULL);
}

static void renames_into_place_hide_nothing(void)
{
	check_attempt(renamed_into_place, "/p");
}

static void vforks_lose_nothing(void)
{
	check_attempt(plain_vforks, NULL);
}

static void a_program_by_descriptor_is_seen(void)
{
	check_attempt(programs_by_descriptor, NULL);
}

static void a_program_without_a_file_is_seen(void)
{
	check_attempt(programs_without_a_file, "/memfd:B (deleted)");
}

static void a_path_in_secret_memory_hides_nothing(void)
{
	check_attempt(paths_in_secret_memory, NULL);
}

static void a_sibling_that_writes_our_memory_changes_nothing(void)
{
	check_attempt(memory_written_by_a_sibling, NULL);
}

static void of_threads_that_race_the_winner_is_seen(void)
{
	check_attempt(threads_that_race_to_exec, NULL);
}

/*
 * A program killed between the exec and its first instruction has an event but did not run. A
 * program killed while the warden starts to hold it may have an uncertain event.
 */
static void a_killed_program_is_never_missing(void)
{
	int counts[256];

	begin();
	attempt(programs_killed_at_any_moment, counts);
	printf("# ran %d, events %d\n", counts['A'], count("process.exec"));
	CHECK(counts['A'] > 0 && count("process.exec") >= counts['A']);
	CHECK(count("process.exec") <= EXECS);
}

/* --- under a debugger --- */

static void exec_traced(void)
{
	CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	(void)execve("./missing", argv_of_shared(), environ);
	CHECK(errno == ENOENT);
	(void)execve("B/x", argv_of_shared(), environ);
	CHECK(errno == ENOTDIR);
	(void)execve(".", argv_of_shared(), environ);
	CHECK(errno == EACCES);
	exec_shared();
}

/* A racing child under a debugger: a missing program must not run, even if it appears meanwhile. */
static void exec_traced_place(void)
{
	CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	exec_place();
}

static void debug_one(void (*one)(void))
{
	int st;
	pid_t pid = fork();

	if (pid == 0) {
		one();
		_exit(3);
	}
	while (waitpid(pid, &st, 0) == pid && WIFSTOPPED(st))
		(void)ptrace(PTRACE_CONT, pid, NULL, NULL);
}

static void debug_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < DEBUGGED; i++)
		debug_one(exec_traced);
	_exit(0);
}

static void debug_race(void *arg)
{
	(void)arg;
	bystand(0, change_place);
	for (int i = 0; i < EXECS; i++)
		debug_one(exec_traced_place);
	end_storm();
}

static void an_exec_under_a_debugger_is_uncertain_and_never_missing(void)
{
	int counts[256];

	begin();
	attempt(debug_all, counts);
	CHECK(counts['A'] == DEBUGGED && count("process.exec") == DEBUGGED);
	CHECK(uncertain_events() == DEBUGGED);
	CHECK_STR(strrchr(nth("process.exec", 0)->path, '/'), "/A");
	attempt(debug_race, counts);
	printf("# debugged: ran %d, events %d\n", counts['A'] + counts['B'], count("process.exec"));
	CHECK(count("process.exec") >= counts['A'] + counts['B']);
	CHECK(count("process.exec") == uncertain_events());
}

T_MAIN(T(flips_of_path_and_argument_change_nothing), T(renames_into_place_hide_nothing),
       T(vforks_lose_nothing), T(a_program_by_descriptor_is_seen),
       T(a_program_without_a_file_is_seen), T(a_path_in_secret_memory_hides_nothing),
       T(a_sibling_that_writes_our_memory_changes_nothing),
       T(of_threads_that_race_the_winner_is_seen), T(a_killed_program_is_never_missing),
       T(an_exec_under_a_debugger_is_uncertain_and_never_missing))
