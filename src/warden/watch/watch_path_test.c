/* SPDX-License-Identifier: Apache-2.0 */
/* Which program the trace names for an exec, for every way to name a program. */
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "warden/watch/watch_fake.h"

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
		CHECK(e && !e->uncertain);
		CHECK_STR(e->path, "/usr/bin/true");
	}
	CHECK(fake_len == 2 * (int)ARRAY_LEN(ways));
}

static void a_check_for_execution_is_no_exec(void)
{
	run(exec_in_many_ways, "check");
	CHECK(fake_len == 0);
}

static void exec_prog(void *arg)
{
	execl(arg, "prog", NULL);
}

static char scratch[] = "/tmp/watch-test-XXXXXX";

static void scratch_remove(void)
{
	static const char *const names[] = { "prog", "hidden", "gone", "bare" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[64];

		(void)snprintf(path, sizeof path, "%s/%s", scratch, names[i]);
		(void)remove(path);
	}
	(void)rmdir(scratch);
}

/* Make a directory with an executable script and a program, and make it the working directory. */
static void scratch_make(void)
{
	static const char script[] = "#!/bin/true -x\n";
	int fd;

	CHECK(mkdtemp(scratch));
	atexit(scratch_remove);
	CHECK(chmod(scratch, 0755) == 0 && chdir(scratch) == 0);
	fd = open("prog", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	CHECK(fd >= 0 && write(fd, script, sizeof script - 1) > 0);
	close(fd);
	fake_program("bare", 'b');
}

static void links_that_only_the_process_can_follow_do_not_hide_an_exec(void)
{
	const struct fake_event *e;

	scratch_make();
	CHECK(symlink("/proc/self/fd/50", "hidden") == 0);
	run(exec_in_many_ways, "link");
	e = nth("process.exec", 0);
	CHECK(fake_len == 2 && !e->uncertain);
	CHECK_STR(e->path, "/usr/bin/true");
	CHECK_STR(e->asked, "hidden");
	run(exec_in_many_ways, "deleted-cwd");
	e = nth("process.exec", 1);
	CHECK(fake_len == 4 && !e->uncertain);
	CHECK_STR(e->path, "/usr/bin/true");
	CHECK_STR(e->asked, "../prog");
}

static void a_script_is_its_interpreter_and_the_path_that_was_asked_for(void)
{
	const struct fake_event *e;

	scratch_make();
	run(exec_prog, "./prog");
	e = nth("process.exec", 0);
	CHECK(fake_len == 2 && !e->uncertain);
	CHECK_STR(e->path, "/usr/bin/true");
	CHECK_STR(e->asked, "./prog");
	CHECK_STR(e->argv, "/bin/true|-x|./prog|");
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
	run_in(scratch, exec_in_chroot, "/bare");
	CHECK_STR(nth("process.exec", 0)->path, "/bare");
	run_in(scratch, exec_in_chroot, "bare");
	CHECK_STR(nth("process.exec", 1)->path, "/bare");
	/* A different root from the sandbox's, as a container within would have. */
	run_in("/", exec_in_chroot, "/bare");
	CHECK(nth("process.exec", 2) && strstr(nth("process.exec", 2)->path, scratch));
	run_in("/usr", exec_prog, "/bin/true");
	CHECK_STR(nth("process.exec", 3)->path, "/bin/true");
}

/* pid 1 of a sandbox whose root is an overlay, with no file of ours reachable from it. */
static void be_init(int sock)
{
	int st;
	pid_t pid;

	fake_send_fd(sock, open("/", O_PATH | O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		fake_enter(sock);
		exec_sh("cd /usr; ./bin/true; /proc/self/exe -c 'exit 0'; /self -c 'exit 0'; exit 8");
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
	CHECK(chdir("/") == 0 && symlink("/proc/self/exe", "self") == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(mount("proc", "/proc", "proc", 0, NULL) == 0);
		be_init(sock);
	}
	_exit(waitpid(pid, &st, 0) == pid ? 0 : 1);
}

static bool is_older_than_6_15(void)
{
	struct utsname u;
	int major = 0, minor = 0;

	CHECK(uname(&u) == 0 && sscanf(u.release, "%d.%d", &major, &minor) == 2);
	return major < 6 || (major == 6 && minor < 15);
}

static void pids_and_paths_are_those_inside_the_namespaces(void)
{
	/* /self is a link to /proc/self/exe, which leads nowhere for the warden. */
	static const char *const paths[] = { "/usr/bin/dash", "/usr/bin/true", "/usr/bin/dash",
					     "/usr/bin/dash" };
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
		t_skip("no right to make namespaces");
	listener = fake_recv_fd(socks[0]);
	CHECK(loop_init(&f.loop) == 0);
	CHECK(watch_new(&f.loop, &f.trace, root, &f.watch) == 0);
	CHECK(watch_call_new(f.watch, 7, 500, listener, fake_idle, &f, &f.call) == 0);
	CHECK(loop_run(&f.loop) == 0);
	CHECK(waitpid(f.pid, &st, 0) == f.pid && st == 0);
	CHECK(fake_len == 8);
	CHECK(nth("process.exec", 0)->pid == 2 && nth("process.exec", 0)->ppid == 1);
	for (int i = 0; i < 4; i++) {
		const struct fake_event *e = nth("process.exec", i), *x = nth("process.exit", i);

		CHECK_STR(e->path, paths[i]);
		CHECK(!e->uncertain);
		CHECK(i == 0 || (e->pid == 2 + i && e->ppid == 2));
		/* Before Linux 6.15 only init knew how a reaped process ended; this test has no
		 * init. */
		CHECK(x->code == (x->pid == 2 ? 8 : 0) || (x->code == -1 && is_older_than_6_15()));
	}
	fake_end(&f);
	close(root);
	close(socks[0]);
}

T_MAIN(T(a_path_search_makes_one_event), T(a_failed_exec_makes_no_event),
       T(every_way_to_name_a_program_is_resolved), T(a_check_for_execution_is_no_exec),
       T(links_that_only_the_process_can_follow_do_not_hide_an_exec),
       T(a_script_is_its_interpreter_and_the_path_that_was_asked_for),
       T(names_are_relative_to_the_root), T(pids_and_paths_are_those_inside_the_namespaces))
