/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes under the filter, and a trace that remembers. */
#include "warden/watch.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/limits.h"
#include "warden/watch_fake.h"

static int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Run fn as a call to its end. Afterwards the events stand in fake_events. */
static struct fake_call run_in(const char *root, void (*fn)(void *), void *arg)
{
	int root_fd = open(root, O_PATH | O_CLOEXEC), before = open_fds(), st;
	static struct fake_call f; /* idle() keeps a pointer to it */

	CHECK(root_fd >= 0);
	fake_begin(&f, root_fd, fn, arg);
	CHECK(loop_run(&f.loop) == 0);
	CHECK(waitpid(f.pid, &st, 0) == f.pid);
	CHECK(f.idle == 1);
	watch_call_free(f.call);
	CHECK(watch_call_of(f.watch, f.pid) == 0);
	watch_free(f.watch);
	loop_done(&f.loop);
	CHECK(open_fds() == before);
	return f;
}

static struct fake_call run(void (*fn)(void *), void *arg)
{
	return run_in("/", fn, arg);
}

static void exec_argv(void *argv)
{
	char **a = argv;

	execv("/bin/true", a);
}

static void exec_sh(void *script)
{
	execl("/bin/sh", "sh", "-c", (char *)script, NULL);
}

static const struct fake_event *nth(const char *kind, int n)
{
	for (int i = 0; i < fake_len; i++)
		if (strcmp(fake_events[i].kind, kind) == 0 && n-- == 0)
			return &fake_events[i];
	return NULL;
}

static int count(const char *kind)
{
	int n = 0;

	while (nth(kind, n))
		n++;
	return n;
}

static uint64_t seq_of(const struct fake_event *e)
{
	return 1000 + (uint64_t)(e - fake_events);
}

static void exec_and_exit_are_written_with_their_parents(void)
{
	char *argv[] = { "true", "", "a b", "\xff\xfe", "", NULL };
	struct fake_call f = run(exec_argv, argv);
	const struct fake_event *e = nth("process.exec", 0), *x = nth("process.exit", 0);

	CHECK(fake_len == 2 && e && x);
	CHECK_STR(e->path, "/usr/bin/true");
	CHECK_STR(e->argv, "true||a b|\xff\xfe||");
	CHECK(e->argc == 5 && e->cut == 0 && !e->unresolved);
	CHECK(e->pid == f.pid && e->ppid == getpid());
	CHECK(e->call == 7 && e->parent == 500);
	CHECK(x->pid == f.pid && x->code == 0 && x->signal == -1 && !x->unknown);
	CHECK(x->call == 7 && x->parent == seq_of(e));
}

static void no_argv_is_an_empty_list(void)
{
	run(exec_argv, NULL);
	CHECK(nth("process.exec", 0)->argc == 0 && nth("process.exec", 0)->cut == 0);
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
	char *argv[] = { "t", text, NULL };
	const struct fake_event *e;

	for (size_t i = 0; i + 1 < sizeof text; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[sizeof text - 1] = '\0';
	for (int shift = 0; shift < 2; shift++) {
		argv[0] = shift ? "tt" : "t";
		run(exec_argv, argv);
		e = nth("process.exec", shift);
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
	CHECK(e->argc <= LIMIT_ARGS && e->argc >= LIMIT_ARGS - 8 && e->cut >= 1);
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

static void exec_path_search(void *arg)
{
	(void)arg;
	setenv("PATH", "/nonexistent/bin:/tmp:/etc:/usr/bin", 1);
	execlp("true", "true", NULL);
}

static void a_path_search_makes_one_event(void)
{
	run(exec_path_search, NULL);
	CHECK(fake_len == 2);
	CHECK_STR(nth("process.exec", 0)->path, "/usr/bin/true");
}

static void exec_nothing(void *arg)
{
	(void)arg;
	execl("/nonexistent", "x", NULL);
	execl("/etc/passwd", "x", NULL);
	execl("/etc", "x", NULL);
	execl("/etc/passwd/x", "x", NULL);
	syscall(SYS_execve, 8, 8, NULL);
	_exit(3);
}

static void a_failed_exec_makes_no_event(void)
{
	run(exec_nothing, NULL);
	CHECK(fake_len == 0);
}

static void exec_in_many_ways(void *arg)
{
	const char *way = arg;
	char *argv[] = { "true", NULL };
	int fd;

	if (strcmp(way, "fexecve") == 0) {
		fd = open("/bin/true", O_RDONLY);
		syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
	} else if (strcmp(way, "dirfd") == 0) {
		fd = open("/usr/bin", O_RDONLY | O_DIRECTORY);
		syscall(SYS_execveat, fd, "../bin/true", argv, environ, 0);
	} else if (strcmp(way, "cwd") == 0) {
		CHECK(chdir("/usr/bin") == 0);
		execv("./true", argv);
	} else if (strcmp(way, "deleted-cwd") == 0) {
		CHECK(mkdir("gone", 0700) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
		execv("../prog", argv);
	} else if (strcmp(way, "own-fd") == 0) {
		fd = open("/bin/true", O_RDONLY);
		CHECK(dup2(fd, 50) == 50);
		execv("/proc/self/fd/50", argv);
	} else if (strcmp(way, "link") == 0) {
		fd = open("/bin/true", O_RDONLY);
		CHECK(dup2(fd, 50) == 50);
		execv("hidden", argv);
	} else if (strcmp(way, "check") == 0) {
		fd = open("/bin/true", O_RDONLY);
		syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH | 0x10000);
	}
}

static void every_way_to_name_a_program_is_resolved(void)
{
	static char *ways[] = { "fexecve", "dirfd", "cwd", "own-fd" };

	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		const struct fake_event *e;

		run(exec_in_many_ways, ways[i]);
		e = nth("process.exec", (int)i);
		CHECK(e && !e->unresolved);
		CHECK_STR(e->path, "/usr/bin/true");
	}
	CHECK(fake_len == 2 * (int)ARRAY_LEN(ways));
}

static void a_check_for_execution_is_no_exec(void)
{
	run(exec_in_many_ways, "check");
	CHECK(fake_len == 0);
}

static char scratch[] = "/tmp/watch-test-XXXXXX";

static void scratch_remove(void)
{
	static const char *const names[] = { "prog", "hidden", "gone", "ok" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[64];

		(void)snprintf(path, sizeof path, "%s/%s", scratch, names[i]);
		(void)remove(path);
	}
	(void)rmdir(scratch);
}

/* A directory with an executable script, which is also the working directory. */
static void scratch_make(void)
{
	static const char script[] = "#!/bin/true\n";
	int fd;

	CHECK(mkdtemp(scratch));
	atexit(scratch_remove);
	CHECK(chmod(scratch, 0755) == 0 && chdir(scratch) == 0);
	fd = open("prog", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	CHECK(fd >= 0 && write(fd, script, sizeof script - 1) > 0);
	close(fd);
}

static void links_that_only_the_process_can_follow_do_not_hide_an_exec(void)
{
	scratch_make();
	CHECK(symlink("/proc/self/fd/50", "hidden") == 0);
	run(exec_in_many_ways, "link");
	CHECK(fake_len == 2 && nth("process.exec", 0)->unresolved);
	CHECK(strstr(nth("process.exec", 0)->path, "/hidden"));
	run(exec_in_many_ways, "deleted-cwd");
	CHECK(fake_len == 4 && nth("process.exec", 1)->unresolved);
	CHECK_STR(nth("process.exec", 1)->path, "../prog");
}

static void exec_prog(void *arg)
{
	execl(arg, "prog", NULL);
}

static void exec_in_chroot(void *arg)
{
	if (chroot(scratch) == 0 && chdir("/") == 0)
		execl(arg, "prog", NULL);
}

static void names_are_relative_to_the_root(void)
{
	if (geteuid() != 0)
		return;
	scratch_make();
	run_in(scratch, exec_in_chroot, "/prog");
	CHECK_STR(nth("process.exec", 0)->path, "/prog");
	run_in(scratch, exec_in_chroot, "prog");
	CHECK_STR(nth("process.exec", 1)->path, "/prog");
	/* Another root than the sandbox's own, as a container within would have. */
	run_in("/", exec_in_chroot, "/prog");
	CHECK(nth("process.exec", 2) && strstr(nth("process.exec", 2)->path, scratch));
	run_in("/usr", exec_prog, "/bin/true");
	CHECK_STR(nth("process.exec", 3)->path, "/bin/true");
}

static void exec_after_vfork(void *arg)
{
	int st;
	pid_t pid = vfork();

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

/* A signal that comes before the notification is received may end the call with EINTR. */
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
	while (nuisance == 0)
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

static void a_call_can_be_given_up_while_processes_run(void)
{
	struct fake_call f;
	int root = open("/", O_PATH | O_CLOEXEC), st, before = open_fds();

	fake_begin(&f, root, exec_sh, "exec sleep 100");
	while (fake_len < 2) {
		struct epoll_event ev; /* sh, sleep, and what PATH holds before it */

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

/* pid 1 of a sandbox whose root is an overlay, with nothing of ours reachable from it. */
static void be_init(int sock)
{
	int st;
	pid_t pid;

	fake_send_fd(sock, open("/", O_PATH | O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		fake_enter(sock);
		exec_sh("cd /usr; ./bin/true; exit 8");
		_exit(1);
	}
	_exit(waitpid(pid, &st, 0) == pid ? 0 : 1);
}

static void be_sandbox(int sock)
{
	char opts[256];
	int st;
	pid_t pid;

	if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0)
		_exit(1);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("tmpfs", scratch, "tmpfs", 0, NULL) == 0 && chdir(scratch) == 0);
	CHECK(mkdir("up", 0755) == 0 && mkdir("work", 0755) == 0 && mkdir("root", 0755) == 0);
	(void)snprintf(opts, sizeof opts, "lowerdir=/,upperdir=%s/up,workdir=%s/work", scratch,
		       scratch);
	CHECK(mount("overlay", "root", "overlay", 0, opts) == 0 && chdir("root") == 0);
	CHECK(syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0);
	CHECK(chdir("/") == 0);
	pid = fork();
	if (pid == 0)
		be_init(sock);
	_exit(waitpid(pid, &st, 0) == pid ? 0 : 1);
}

static void pids_and_paths_are_those_inside_the_namespaces(void)
{
	struct fake_call f = { 0 };
	int socks[2], root, listener, st;

	scratch_make();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) == 0);
	f.pid = fork();
	if (f.pid == 0)
		be_sandbox(socks[1]);
	close(socks[1]);
	root = fake_recv_fd(socks[0]);
	if (root < 0)
		return; /* no right to make namespaces */
	listener = fake_recv_fd(socks[0]);
	CHECK(loop_init(&f.loop) == 0);
	CHECK(watch_new(&f.loop, &f.trace, root, &f.watch) == 0);
	CHECK(watch_call_new(f.watch, 7, 500, listener, fake_idle, &f, &f.call) == 0);
	CHECK(loop_run(&f.loop) == 0);
	CHECK(waitpid(f.pid, &st, 0) == f.pid && st == 0);
	CHECK(fake_len == 4);
	CHECK(nth("process.exec", 0)->pid == 2 && nth("process.exec", 0)->ppid == 1);
	CHECK_STR(nth("process.exec", 0)->path, "/usr/bin/dash");
	CHECK(nth("process.exec", 1)->pid == 3 && nth("process.exec", 1)->ppid == 2);
	CHECK_STR(nth("process.exec", 1)->path, "/usr/bin/true");
	/* The first may have ended before the second was put into the loop. */
	for (int i = 0; i < 2; i++) {
		const struct fake_event *x = nth("process.exit", i);

		CHECK(x->pid == (x->code ? 2 : 3) && (x->code == 0 || x->code == 8));
	}
	fake_end(&f);
	close(root);
	close(socks[0]);
}

T_MAIN(T(exec_and_exit_are_written_with_their_parents), T(no_argv_is_an_empty_list),
       T(an_unprivileged_watch_sees_the_same), T(long_arguments_are_cut_and_counted),
       T(arguments_that_swell_in_json_are_cut_sooner), T(text_is_cut_between_characters),
       T(arguments_beyond_the_limit_are_left_out), T(exit_codes_and_signals_are_told_apart),
       T(an_exec_chain_in_one_process_exits_once), T(children_name_their_parent),
       T(a_path_search_makes_one_event), T(a_failed_exec_makes_no_event),
       T(every_way_to_name_a_program_is_resolved), T(a_check_for_execution_is_no_exec),
       T(links_that_only_the_process_can_follow_do_not_hide_an_exec),
       T(names_are_relative_to_the_root), T(vfork_is_seen),
       T(an_exec_from_a_thread_counts_for_its_process), T(two_hundred_at_once_lose_nothing),
       T(a_process_killed_while_it_waits_makes_no_event), T(signals_do_not_spoil_what_is_reported),
       T(a_zombie_has_its_status_at_once), T(a_call_can_be_given_up_while_processes_run),
       T(pids_and_paths_are_those_inside_the_namespaces))
