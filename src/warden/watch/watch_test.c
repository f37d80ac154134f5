/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes under the filter, and a trace that stores its events. */
#include "warden/watch/watch.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "base/limits.h"
#include "warden/watch/watch_ends.h"
#include "warden/watch/watch_fake.h"

static void exec_and_exit_are_written_with_their_parents(void)
{
	char *argv[] = { "true", "", "a b", "\xff\xfe", "", NULL };
	struct fake_call f = run(exec_argv, argv);
	const struct fake_event *e = nth("process.exec", 0), *x = nth("process.exit", 0);

	CHECK(fake_len == 2 && e && x);
	CHECK_STR(e->path, "/usr/bin/true");
	CHECK_STR(e->asked, "/bin/true");
	CHECK_STR(e->argv, "true||a b|\xff\xfe||");
	CHECK(e->argc == 5 && e->cut == 0 && !e->uncertain);
	CHECK(e->pid == f.pid && e->ppid == getpid());
	CHECK(e->call == 7 && e->parent == 500);
	CHECK(x->pid == f.pid && x->code == 0 && x->signal == -1 && !x->unknown);
	CHECK(x->call == 7 && x->parent == seq_of(e));
}

/* The kernel gives a program without arguments one empty argument (Linux 5.18). */
static void no_argv_is_one_empty_argument(void)
{
	run(exec_argv, NULL);
	CHECK(nth("process.exec", 0)->argc == 1 && nth("process.exec", 0)->cut == 0);
	CHECK_STR(nth("process.exec", 0)->argv, "|");
}

static void an_unprivileged_watch_sees_the_same(void)
{
	char *argv[] = { "true", "x", NULL };

	CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
	run(exec_argv, argv);
	CHECK(fake_len == 2);
	CHECK_STR(nth("process.exec", 0)->argv, "true|x|");
	CHECK(nth("process.exit", 0)->code == 0);
}

static void long_arguments_are_cut_and_counted(void)
{
	enum { LONG = 100 * 1024 };
	char *x = malloc(LONG + 1), *y = malloc(LONG + 1);
	char *argv[] = { "true", x, y, "z", NULL };
	const struct fake_event *e;

	memset(x, 'x', LONG);
	memset(y, 'y', LONG);
	x[LONG] = y[LONG] = '\0';
	run(exec_argv, argv);
	e = nth("process.exec", 0);
	CHECK(e->argc == 2 && e->cut == 3);
	CHECK(e->argv_len > LIMIT_TRACE_ARGV - 64 && e->argv_len <= LIMIT_TRACE_ARGV);
	CHECK(strncmp(e->argv, "true|xxx", 8) == 0 && !strchr(e->argv, 'y'));
	free(x);
	free(y);
}

static void arguments_that_swell_in_json_are_cut_sooner(void)
{
	char text[8 * 1024];
	char *argv[] = { "true", text, NULL };
	const struct fake_event *e;

	memset(text, 1, sizeof text - 1);
	text[sizeof text - 1] = '\0';
	run(exec_argv, argv);
	e = nth("process.exec", 0);
	CHECK(e->argc == 2 && e->cut == 1);
	CHECK(e->argv_len * 6 <= LIMIT_TRACE_ARGV + 64 && e->argv_len * 7 > LIMIT_TRACE_ARGV);
}

static void text_is_cut_between_characters(void)
{
	char text[LIMIT_TRACE_ARGV + 3];
	char *argv[] = { NULL, text, NULL };
	const struct fake_event *e;

	for (size_t i = 0; i + 1 < sizeof text; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[sizeof text - 1] = '\0';
	for (int i = 0; i < 4; i++) {
		argv[0] = &"tttt"[i]; /* each shifts the position of the cut */
		run(exec_argv, argv);
		e = nth("process.exec", i);
		CHECK(e->cut == 1 && (unsigned char)e->argv[e->argv_len - 2] == 0xa9);
	}
}

static void arguments_beyond_the_limit_are_left_out(void)
{
	char **argv = calloc(6001, sizeof *argv);
	const struct fake_event *e;

	for (int i = 0; i < 6000; i++)
		argv[i] = "";
	run(exec_argv, argv);
	e = nth("process.exec", 0);
	CHECK(e->argc == LIMIT_ARGS && e->cut == 1);
	free(argv);
}

static void exit_codes_and_signals_are_told_apart(void)
{
	run(exec_sh, "exit 7");
	run(exec_sh, "kill -9 $$");
	CHECK(fake_len == 4);
	CHECK(nth("process.exit", 0)->code == 7 && nth("process.exit", 0)->signal == -1);
	CHECK(nth("process.exit", 1)->signal == SIGKILL && nth("process.exit", 1)->code == -1);
}

static void an_exec_chain_in_one_process_exits_once(void)
{
	const struct fake_event *a, *b, *x;

	run(exec_sh, "exec true last");
	a = nth("process.exec", 0);
	b = nth("process.exec", 1);
	x = nth("process.exit", 0);
	CHECK(fake_len == 3 && a && b && x);
	CHECK(a->pid == b->pid && x->pid == a->pid && a->ppid == b->ppid);
	CHECK(x->parent == seq_of(b));
	CHECK_STR(b->argv, "true|last|");
}

static void children_name_their_parent(void)
{
	run(exec_sh, "/bin/true one; /bin/true two");
	CHECK(count("process.exec") >= 2);
	CHECK_STR(nth("process.exec", 1)->argv, "/bin/true|one|");
	CHECK(nth("process.exec", 1)->ppid == nth("process.exec", 0)->pid);
}

static void exec_after_vfork(void *arg)
{
	int st;
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): it is the test */

	(void)arg;
	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	CHECK(waitpid(pid, &st, 0) == pid);
	_exit(4);
}

static void vfork_is_seen(void)
{
	struct fake_call f = run(exec_after_vfork, NULL);

	CHECK(fake_len == 2 && nth("process.exec", 0)->ppid == f.pid);
	CHECK(nth("process.exit", 0)->code == 0);
}

static void *exec_true(void *arg)
{
	(void)arg;
	execl("/bin/true", "true", NULL);
	return NULL;
}

static void exec_in_thread(void *arg)
{
	pthread_t t;

	CHECK(pthread_create(&t, NULL, exec_true, arg) == 0);
	pthread_join(t, NULL);
}

static void an_exec_from_a_thread_counts_for_its_process(void)
{
	struct fake_call f = run(exec_in_thread, NULL);

	CHECK(fake_len == 2 && nth("process.exec", 0)->pid == f.pid);
	CHECK(nth("process.exit", 0)->pid == f.pid);
}

static void exec_many(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++) {
		pid_t pid = fork();
		char n[8];

		if (pid)
			continue;
		(void)snprintf(n, sizeof n, "%d", i % 100);
		execl("/bin/sh", "sh", "-c", "exit $0", n, NULL);
		_exit(1);
	}
	while (wait(NULL) > 0)
		;
	_exit(0);
}

static void two_hundred_at_once_lose_nothing(void)
{
	run(exec_many, NULL);
	CHECK(count("process.exec") == 200 && count("process.exit") == 200);
	for (int i = 0; i < 200; i++) {
		const struct fake_event *x = nth("process.exit", i);
		const struct fake_event *e = &fake_events[x->parent - 1000];

		CHECK(e < x && e->pid == x->pid && strcmp(e->kind, "process.exec") == 0);
		CHECK(x->code == atoi(strrchr(e->argv, ' ') + strlen(" $0|")));
	}
}

static void a_process_killed_while_it_waits_makes_no_event(void)
{
	struct fake_call f;
	int root = open("/", O_PATH | O_CLOEXEC), st;

	fake_begin(&f, root, exec_argv, (char *[]){ "true", NULL });
	CHECK(kill(f.pid, SIGKILL) == 0);
	CHECK(waitpid(f.pid, &st, 0) == f.pid);
	CHECK(loop_run(&f.loop) == 0);
	CHECK(f.idle == 1 && fake_len == 0);
	fake_end(&f);
	close(root);
}

static void ignore(int sig)
{
	(void)sig;
}

/* A signal that arrives before the notification is received may end the call with EINTR. */
static void exec_sh_again(void *script)
{
	do
		exec_sh(script);
	while (errno == EINTR);
}

static void signals_do_not_spoil_what_is_reported(void)
{
	struct fake_call f;
	int root = open("/", O_PATH | O_CLOEXEC);
	struct sigaction act = { .sa_handler = ignore }; /* without SA_RESTART */
	pid_t nuisance;

	CHECK(sigaction(SIGWINCH, &act, NULL) == 0);
	fake_begin(&f, root, exec_sh_again, "exit 5");
	nuisance = fork();
	if (nuisance == 0)
		for (;;)
			(void)kill(f.pid, SIGWINCH);
	CHECK(loop_run(&f.loop) == 0);
	CHECK(kill(nuisance, SIGKILL) == 0);
	CHECK(fake_len == 2 && nth("process.exit", 0)->code == 5);
	fake_end(&f);
	close(root);
}

static void a_zombie_has_its_status_at_once(void)
{
	struct fake_call f;
	int root = open("/", O_PATH | O_CLOEXEC), st;

	/* The first process is not reaped before the loop has ended. */
	fake_begin(&f, root, exec_sh, "exit 6");
	CHECK(loop_run(&f.loop) == 0);
	CHECK(waitpid(f.pid, &st, WNOHANG) == f.pid);
	CHECK(fake_len == 2 && nth("process.exit", 0)->code == 6);
	fake_end(&f);
	close(root);
}

/* Each stays a zombie for as long as the watch may take to notice its end. */
static void exec_two_unreaped(void *arg)
{
	siginfo_t si;

	(void)arg;
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0)
			execl("/bin/true", "true", NULL);
		CHECK(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT) == 0);
		(void)poll(NULL, 0, 50);
		CHECK(waitpid(pid, NULL, 0) == pid);
	}
	_exit(0);
}

static void whether_the_kernel_remembers_is_learned_from_the_first_end(void)
{
	struct fake_call f;
	int root = open("/", O_PATH | O_CLOEXEC), status, st, probe;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	probe = (int)syscall(SYS_pidfd_open, pid, 0);
	CHECK(probe >= 0 && waitpid(pid, &st, 0) == pid);
	fake_begin(&f, root, exec_two_unreaped, NULL);
	CHECK(loop_run(&f.loop) == 0 && waitpid(f.pid, &st, 0) == f.pid && st == 0);
	CHECK(count("process.exit") == 2 && nth("process.exit", 1)->code == 0);
	CHECK(f.watch->remembers == proc_was_reaped(probe, &status));
	CHECK(f.watch->forgets != f.watch->remembers);
	fake_end(&f);
	close(probe);
	close(root);
}

static void a_call_can_be_given_up_while_processes_run(void)
{
	struct fake_call f;
	int root = open("/", O_PATH | O_CLOEXEC), st, before = open_fds();

	fake_begin(&f, root, exec_sh, "exec sleep 100");
	while (fake_len < 2) {
		struct epoll_event ev; /* sh, sleep, and the entries of PATH before it */

		CHECK(epoll_wait(f.loop.epfd, &ev, 1, 5000) == 1);
		((struct loop_io *)ev.data.ptr)->fn(ev.data.ptr, ev.events);
	}
	CHECK(fake_len == 2 && watch_call_of(f.watch, f.pid) == 7);
	CHECK(watch_call_of(f.watch, getpid()) == 0);
	fake_end(&f);
	CHECK(f.idle == 0 && kill(f.pid, SIGKILL) == 0 && waitpid(f.pid, &st, 0) == f.pid);
	CHECK(open_fds() == before);
	close(root);
}

T_MAIN(T(exec_and_exit_are_written_with_their_parents), T(no_argv_is_one_empty_argument),
       T(an_unprivileged_watch_sees_the_same), T(long_arguments_are_cut_and_counted),
       T(arguments_that_swell_in_json_are_cut_sooner), T(text_is_cut_between_characters),
       T(arguments_beyond_the_limit_are_left_out), T(exit_codes_and_signals_are_told_apart),
       T(an_exec_chain_in_one_process_exits_once), T(children_name_their_parent), T(vfork_is_seen),
       T(an_exec_from_a_thread_counts_for_its_process), T(two_hundred_at_once_lose_nothing),
       T(a_process_killed_while_it_waits_makes_no_event), T(signals_do_not_spoil_what_is_reported),
       T(a_zombie_has_its_status_at_once),
       T(whether_the_kernel_remembers_is_learned_from_the_first_end),
       T(a_call_can_be_given_up_while_processes_run))
