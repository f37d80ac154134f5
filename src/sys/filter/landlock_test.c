/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "t.h"

static int enter(int root)
{
	return landlock_enter(&(struct landlock){ .root_fd = root, .queues_fd = -1 });
}

static char top[] = "/tmp/cay-landlock-XXXXXX";

static void put(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && close(fd) == 0);
}

/* Makes directories in/a, in/b, and out with a file f. Returns a descriptor of out. */
static int make_dirs(void)
{
	int outside;

	CHECK(mkdtemp(top) && chdir(top) == 0 && mkdir("in", 0755) == 0 && mkdir("out", 0755) == 0);
	CHECK(mkdir("in/a", 0755) == 0 && mkdir("in/b", 0755) == 0);
	outside = open("out", O_RDONLY | O_CLOEXEC);
	put(outside, "f");
	return outside;
}

static void remove_dirs(void)
{
	CHECK(unlink("out/f") == 0 && rmdir("out") == 0);
	CHECK(rmdir("in/a") == 0 && rmdir("in/b") == 0 && rmdir("in") == 0 && rmdir(top) == 0);
}

/*
 * Runs fn in a child that has `in` as its root. The child exits without the sanitizers' final
 * checks.
 */
static void inside(void (*fn)(int outside, int abi))
{
	int outside = make_dirs(), st, abi, root;
	pid_t pid = fork();

	if (pid == 0) {
		CHECK(getuid() == 0 || unshare(CLONE_NEWUSER) == 0);
		CHECK(chroot("in") == 0 && chdir("/") == 0);
		CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		abi = enter(root);
		CHECK(abi >= 0);
		if (abi > 0)
			fn(outside, abi);
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && close(outside) == 0);
	remove_dirs();
	CHECK(st == 0);
}

static void leaked(int outside, int abi)
{
	(void)abi;
	CHECK(openat(outside, "f", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
	CHECK(openat(outside, "g", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) < 0 && errno == EACCES);
	CHECK(openat(outside, "../..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 && errno == EACCES);
	CHECK(unlinkat(outside, "f", 0) < 0 && errno == EACCES);
	CHECK(renameat(AT_FDCWD, "/a", outside, "a") < 0);
}

static void a_leaked_directory_opens_nothing(void)
{
	inside(leaked);
}

static void ordinary(int outside, int abi)
{
	int fd;

	(void)outside;
	(void)abi;
	put(AT_FDCWD, "/a/f");
	CHECK(rename("/a/f", "/b/f") == 0 && link("/b/f", "/a/g") == 0);
	CHECK(mkdir("/a/d", 0755) == 0 && rename("/a/d", "/b/d") == 0 && rmdir("/b/d") == 0);
	CHECK(symlink("g", "/a/l") == 0 && truncate("/a/l", 9) == 0 && chmod("/a/g", 0600) == 0);
	CHECK(mkfifo("/a/p", 0600) == 0 && unlink("/a/p") == 0);
	fd = open("/b/f", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && close(fd) == 0);
	CHECK(unlink("/a/g") == 0 && unlink("/b/f") == 0 && unlink("/a/l") == 0);
}

static void everything_below_the_root_works(void)
{
	inside(ordinary);
}

static void signals(int outside, int abi)
{
	pid_t brother = fork();
	int st;

	(void)outside;
	if (brother == 0) {
		pause();
		_exit(0);
	}
	CHECK(kill(brother, SIGTERM) == 0 && waitpid(brother, &st, 0) == brother);
	CHECK(WIFSIGNALED(st));
	CHECK(abi < 6 || (kill(getppid(), 0) < 0 && errno == EPERM));
}

static void signals_stay_within_the_domain(void)
{
	inside(signals);
}

static int abstract(struct sockaddr_un *a, socklen_t *n)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			 (size_t)snprintf(a->sun_path + 1, 64, "cay-landlock-%d", (int)getpid()));
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void abstract_sockets_stay_within_the_domain(void)
{
	struct sockaddr_un a;
	socklen_t n;
	int outer = abstract(&a, &n), st;
	pid_t pid;

	CHECK(bind(outer, (struct sockaddr *)&a, n) == 0 && listen(outer, 1) == 0);
	pid = fork();
	if (pid == 0) {
		int abi, s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), own;
		struct sockaddr_un b;
		socklen_t m;

		CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		abi = enter(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
		CHECK(abi < 6 || (connect(s, (struct sockaddr *)&a, n) < 0 && errno == EPERM));
		own = abstract(&b, &m);
		CHECK(bind(own, (struct sockaddr *)&b, m) == 0 && listen(own, 1) == 0);
		s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(connect(s, (struct sockaddr *)&b, m) == 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
}

static void without_the_right_it_is_refused(void)
{
	int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1);

	CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
	CHECK(abi < 2 || enter(open("/", O_PATH | O_CLOEXEC)) == -EPERM);
}

static void scopes_alone_leave_files_and_mounts_open(void)
{
	int abi, fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	abi = landlock_enter(
		&(struct landlock){ .root_fd = fd, .queues_fd = -1, .only_scopes = true });
	CHECK(abi >= 0);
	CHECK(open("/proc/self/status", O_RDONLY | O_CLOEXEC) >= 0);
	/* A domain that restricts files returns EPERM before it checks the arguments. */
	CHECK(geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	      mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}

T_MAIN(T(scopes_alone_leave_files_and_mounts_open), T(a_leaked_directory_opens_nothing),
       T(everything_below_the_root_works), T(signals_stay_within_the_domain),
       T(abstract_sockets_stay_within_the_domain), T(without_the_right_it_is_refused))
