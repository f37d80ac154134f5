/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in a tree with a hostile owner: root/ is the tree, outside/ must stay unreachable. */
#include "sys/files/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sys/files/rmtree.h"
#include "t_ns.h"

enum { ROUNDS = 1000, SOMEBODY = 4242 };

static char top[64];
static int base, root, outside;
static pid_t owner;
static struct stat secret;

static void remove_top(void)
{
	if (getpid() == owner)
		(void)rmtree_at(AT_FDCWD, top);
}

static int dir(const char *name)
{
	int fd;

	CHECK(mkdirat(base, name, 0755) == 0);
	fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void file(int at, const char *name)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, "text", 4) == 4 && close(fd) == 0);
}

static void absolute_link(int at, const char *to, const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", top, to);
	CHECK(symlinkat(path, at, name) == 0);
}

static void build(void)
{
	(void)snprintf(top, sizeof top, "%s", "/tmp/cay-resolve.XXXXXX");
	CHECK(mkdtemp(top) != NULL);
	owner = getpid();
	CHECK(atexit(remove_top) == 0);
	base = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	root = dir("root");
	outside = dir("outside");
	file(outside, "f");
	CHECK(fstatat(outside, "f", &secret, 0) == 0);
	CHECK(mkdirat(root, "d", 0755) == 0);
	file(root, "d/f");
}

/* The file that a path led to, or -errno. */
static int64_t at(const char *path)
{
	auto_close int fd = resolve_open(root, path, O_RDONLY);
	struct stat st;

	if (fd < 0)
		return fd;
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && fstat(fd, &st) == 0);
	return (int64_t)st.st_ino;
}

static int64_t inode(int dirfd, const char *path)
{
	struct stat st;

	CHECK(fstatat(dirfd, path, &st, 0) == 0);
	return (int64_t)st.st_ino;
}

static void links_are_followed_as_if_the_root_were_slash(void)
{
	int64_t f;

	build();
	f = inode(root, "d/f");
	CHECK(symlinkat("/d", root, "absolute") == 0 && symlinkat("d/f", root, "relative") == 0);
	CHECK(symlinkat("../../../d/f", root, "up") == 0 &&
	      symlinkat("/absolute/f", root, "two") == 0);
	CHECK(at("d/f") == f && at("/d/f") == f && at("absolute/f") == f && at("relative") == f);
	CHECK(at("up") == f && at("two") == f && at("../../d/f") == f && at("d/../d/f") == f);
}

static void no_path_leads_outside(void)
{
	build();
	absolute_link(root, "outside/f", "absolute");
	absolute_link(root, "outside", "absolute_dir");
	CHECK(symlinkat("../outside/f", root, "relative") == 0);
	CHECK(symlinkat("../../outside", root, "d/relative_dir") == 0);
	CHECK(symlinkat("loop", root, "loop") == 0);
	CHECK(at("absolute") == -ENOENT && at("absolute_dir/f") == -ENOENT);
	CHECK(at("relative") == -ENOENT && at("d/relative_dir/f") == -ENOENT);
	CHECK(at("../outside/f") == -ENOENT && at("d/../../outside/f") == -ENOENT);
	CHECK(at("/../../../../../../etc/passwd") == -ENOENT && at("loop") == -ELOOP);
	CHECK(at("..") == inode(root, ".") && at("/") == inode(root, "."));
}

static void magic_links_are_refused(void)
{
	build();
	root = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(at("exe") == -ELOOP && at("cwd") == -ELOOP && at("root") == -ELOOP);
	CHECK(at("root/etc/passwd") == -ELOOP && at("fd/0") == -ELOOP && at("ns/mnt") == -ELOOP);
	CHECK(resolve_beneath(root, "exe", O_RDONLY, 0) == -ELOOP);
	CHECK(at("status") > 0);
}

static void beneath_refuses_links_and_dotdot(void)
{
	struct stat st;
	int fd;

	build();
	CHECK(symlinkat("d", root, "l") == 0 && symlinkat("f", root, "d/l") == 0);
	CHECK(resolve_beneath(root, "l/f", O_RDONLY, 0) == -ELOOP);
	CHECK(resolve_beneath(root, "d/l", O_RDONLY, 0) == -ELOOP);
	CHECK(resolve_beneath(root, "../outside/f", O_RDONLY, 0) == -EXDEV);
	CHECK(resolve_beneath(root, "/d/f", O_RDONLY, 0) == -EXDEV);
	CHECK(resolve_beneath(root, "none", O_RDONLY, 0777) == -ENOENT);
	CHECK((fd = resolve_beneath(root, "d/f", O_RDONLY, 0777)) >= 0 && close(fd) == 0);
	fd = resolve_beneath(root, "d/new", O_WRONLY | O_CREAT | O_EXCL, 0640);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0640);
}

static int mkdirs(const char *path)
{
	int fd = resolve_mkdirs(root, path, 0750, geteuid() ? geteuid() : SOMEBODY,
				geteuid() ? getegid() : SOMEBODY);

	CHECK(fd < 0 || (fcntl(fd, F_GETFL) & O_PATH));
	return fd;
}

static void missing_directories_are_made_for_their_owner(void)
{
	struct stat st, before, after;
	int fd;

	build();
	CHECK(fstatat(root, "d", &before, 0) == 0);
	fd = mkdirs("d/a//b/");
	CHECK(fd >= 0 && fstat(fd, &st) == 0 && (int64_t)st.st_ino == inode(root, "d/a/b"));
	CHECK((st.st_mode & 07777) == 0750);
	CHECK(st.st_uid == (geteuid() ? geteuid() : SOMEBODY) &&
	      st.st_gid == (geteuid() ? getegid() : SOMEBODY));
	CHECK(fstatat(root, "d", &after, 0) == 0);
	CHECK(after.st_uid == before.st_uid && after.st_mode == before.st_mode);
	for (int i = 0; i < 3; i++)
		CHECK(mkdirs("/d/a/b") >= 0 && mkdirs("d/a/b") >= 0);
	fd = mkdirs("/");
	CHECK(fd >= 0 && fstat(fd, &st) == 0 && (int64_t)st.st_ino == inode(root, "."));
}

static void directories_are_made_inside_despite_links(void)
{
	static char name[LIMIT_PATH + 1];

	build();
	absolute_link(root, "outside", "out");
	CHECK(symlinkat("/d", root, "in") == 0 && symlinkat("../../outside", root, "up") == 0);
	CHECK(mkdirs("in/new") >= 0 && inode(root, "d/new") > 0);
	CHECK(mkdirs("../../../made") >= 0 && inode(root, "made") > 0);
	CHECK(mkdirs("out/new") == -EEXIST && mkdirs("up/new") == -EEXIST);
	CHECK(mkdirs("d/f/new") == -ENOTDIR);
	CHECK(faccessat(outside, "new", F_OK, 0) < 0);
	memset(name, 'a', sizeof name - 1);
	CHECK(mkdirs(name) == -ENAMETOOLONG);
	for (size_t i = 200; i < LIMIT_PATH - 2; i += 200)
		name[i] = '/';
	name[LIMIT_PATH - 2] = '\0';
	CHECK(mkdirs(name) >= 0);
	name[LIMIT_PATH - 2] = '/';
	name[LIMIT_PATH - 1] = '\0';
	CHECK(mkdirs(name) == -ENAMETOOLONG);
}

static int mkfile(const char *path)
{
	return resolve_mkfile(root, path, geteuid(), getegid());
}

static void a_missing_file_is_made_empty_and_another_is_kept(void)
{
	struct stat st;
	int fd;

	build();
	fd = mkfile("/new/parents/file");
	CHECK(fd >= 0 && fcntl(fd, F_GETFL) & O_PATH && fstat(fd, &st) == 0);
	CHECK(S_ISREG(st.st_mode) && st.st_size == 0 && (st.st_mode & 07777) == 0644);
	CHECK((int64_t)st.st_ino == inode(root, "new/parents/file"));
	fd = mkfile("/d/f");
	CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size == 4);
	CHECK(mkfile("none") == -EINVAL && mkfile("/d/f/g") == -ENOTDIR);
	absolute_link(root, "outside/new", "dangling");
	CHECK(mkfile("/dangling") < 0 && faccessat(outside, "new", F_OK, 0) < 0);
}

/* Starts a process that repeats one action until the test ends. */
static void meanwhile(void (*fn)(void))
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid > 0)
		return;
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == owner);
	for (;;)
		fn();
}

static void swap_directory_and_link(void)
{
	(void)renameat2(root, "d", root, "evil", RENAME_EXCHANGE);
}

static void move_out_and_back(void)
{
	(void)renameat(root, "d/sub", outside, "sub");
	(void)renameat(outside, "sub", root, "d/sub");
}

static void must_be_inside(const char *path)
{
	for (int i = 0; i < ROUNDS; i++)
		CHECK(at(path) != (int64_t)secret.st_ino);
}

static void no_swap_of_a_directory_and_a_link_leads_outside(void)
{
	build();
	absolute_link(root, "outside", "evil");
	meanwhile(swap_directory_and_link);
	must_be_inside("d/f");
}

static void no_directory_that_moves_takes_us_up_and_out(void)
{
	build();
	CHECK(mkdirat(root, "d/sub", 0755) == 0);
	meanwhile(move_out_and_back);
	must_be_inside("d/sub/../f");
}

static void no_swap_makes_directories_outside(void)
{
	build();
	absolute_link(root, "outside", "evil");
	meanwhile(swap_directory_and_link);
	for (int i = 0; i < ROUNDS; i++) {
		char path[32];
		int fd;

		snprintf(path, sizeof path, "d/%d/x", i);
		fd = mkdirs(path);
		fd_close(&fd);
		snprintf(path, sizeof path, "%d", i);
		CHECK(faccessat(outside, path, F_OK, 0) < 0);
	}
}

T_MAIN(T(links_are_followed_as_if_the_root_were_slash), T(no_path_leads_outside),
       T(magic_links_are_refused), T(beneath_refuses_links_and_dotdot),
       T(missing_directories_are_made_for_their_owner),
       T(directories_are_made_inside_despite_links),
       T(a_missing_file_is_made_empty_and_another_is_kept),
       T(no_swap_of_a_directory_and_a_link_leads_outside),
       T(no_directory_that_moves_takes_us_up_and_out), T(no_swap_makes_directories_outside))
