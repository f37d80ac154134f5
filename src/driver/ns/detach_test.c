/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "t.h"
#include "t_ns.h"

static struct tree tree;
static int self;
static char keel[64];

/* A keel with a mount on its slot, in the test's own namespaces. */
static void open_keel(void)
{
	t_scratch(keel, sizeof keel);
	t_own_namespaces(0);
	CHECK(mount("keel", keel, "tmpfs", 0, NULL) == 0 && chdir(keel) == 0);
	CHECK(mkdir("a", 0755) == 0 && mount("old", "a", "tmpfs", 0, NULL) == 0);
	CHECK(mkdir("a/in", 0755) == 0);
	tree.keel_fd = open(keel, O_PATH | O_DIRECTORY | O_CLOEXEC);
	self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(tree.keel_fd >= 0 && self >= 0);
}

static bool is_there(void)
{
	return access("a/in", F_OK) == 0;
}

static void what_is_mounted_there_is_gone(void)
{
	int fd;

	open_keel();
	fd = detach_prepare(&tree, "a");
	CHECK(fd >= 0 && is_there());
	CHECK(detach_run(&tree, "a", fd, self) == 0 && !is_there());
	CHECK(waitpid(-1, NULL, 0) > 0);
}

/* The child ends without an order when its socket is closed. */
static void nothing_happens_without_an_order(void)
{
	int fd, status = 0;

	open_keel();
	fd = detach_prepare(&tree, "a");
	CHECK(fd >= 0 && close(fd) == 0);
	CHECK(waitpid(-1, &status, 0) > 0 && WIFEXITED(status) && is_there());
}

static void the_work_of_a_child_that_was_killed_is_done(void)
{
	siginfo_t end = { 0 };
	int fd, ours;

	open_keel();
	fd = detach_prepare(&tree, "a");
	CHECK(fd >= 0);
	/* Our only child. */
	ours = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	if (ours >= 0) {
		char text[32] = "";

		CHECK(read(ours, text, sizeof text - 1) > 0);
		CHECK(kill((pid_t)strtol(text, NULL, 10), SIGKILL) == 0);
	} else {
		t_skip("the kernel does not list children");
	}
	CHECK(waitid(P_ALL, 0, &end, WEXITED) == 0);
	CHECK(detach_run(&tree, "a", fd, self) == 0 && !is_there());
}

static void a_failure_of_the_child_is_told(void)
{
	int fd;

	open_keel();
	fd = detach_prepare(&tree, "none");
	CHECK(fd >= 0 && detach_run(&tree, "none", fd, self) == -ENOENT && is_there());
}

T_MAIN(T(what_is_mounted_there_is_gone), T(nothing_happens_without_an_order),
       T(the_work_of_a_child_that_was_killed_is_done), T(a_failure_of_the_child_is_told))
