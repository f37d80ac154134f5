/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory like the /proc/PID of a correct init. Each test changes one thing in it: verify must
 * refuse it and name it. The system tests verify real sandboxes.
 */
#include "driver/ns/posture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sys/files/rmtree.h"
#include "sys/ns/caps.h"
#include "t_ns.h"

static char dir[] = "/tmp/posture-test-XXXXXX";
static struct cell_spec spec;
static struct launch launch;
static struct posture p = POSTURE_INIT;

static void put(const char *name, const char *text)
{
	int fd = openat(p.proc_fd, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0 && close(fd) == 0);
}

static void point(const char *name, const char *to)
{
	(void)unlinkat(p.proc_fd, name, 0);
	CHECK(symlinkat(to, p.proc_fd, name) == 0);
}

#define STATUS \
	"Umask:\t0022\nPid:\t42\nThreads:\t1\nUid:\t70000\t70000\t70000\t70000\n" \
	"Gid:\t70000\t70000\t70000\t70000\nGroups:\t \nNSpid:\t42\t1\nNSsid:\t42\t1\n" \
	"CapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\n" \
	"CapBnd:\t00000000a00405fb\nCapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t2\n" \
	"Seccomp_filters:\t1\n"

#define MOUNTS \
	"1 0 0:88 / / rw,nodev,relatime - overlay none rw\n" \
	"2 1 0:90 / /a\\040b rw,nodev - overlay none rw\n" \
	"3 1 0:83 / /proc rw,nosuid,nodev,noexec,relatime - proc none rw\n" \
	"4 3 0:91 /none /proc/kcore ro,nosuid,nodev,noexec - tmpfs none rw\n" \
	"5 1 0:85 / /dev rw,nosuid,noexec - tmpfs none rw\n" \
	"6 5 0:86 / /dev/pts rw,nosuid,noexec - devpts none rw\n" \
	"7 5 0:87 / /dev/shm rw,nosuid,nodev - tmpfs none rw\n" \
	"8 1 0:84 / /sys ro,nosuid,nodev,noexec - tmpfs none rw\n"

static void begin(void)
{
	static char path[64];

	CHECK(mkdtemp(dir));
	p.proc_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(p.proc_fd >= 0 && mkdirat(p.proc_fd, "fd", 0700) == 0);
	CHECK(mkdirat(p.proc_fd, "tree", 0700) == 0 && mkdirat(p.proc_fd, "tree/proc", 0700) == 0);
	put("tree/proc/kcore", "");
	(void)snprintf(path, sizeof path, "%s/tree", dir);
	p.root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	spec = (struct cell_spec){ .rootful = true, .files = 1024, .nmounts = 2 };
	spec.mounts[0] = (struct cell_mount){ .kind = MOUNT_OVERLAY, .dest = "/" };
	spec.mounts[1] = (struct cell_mount){ .kind = MOUNT_OVERLAY, .dest = "/a b" };
	launch = (struct launch){ .spec = &spec, .init_uid = 70000, .init_gid = 70000, .core = 1 };
	launch.uids[0] = launch.gids[0] = (struct idmap){ 0, 70000, 65536 };
	launch.nuids = launch.ngids = 1;
	launch.init_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	p.l = &launch;
	p.pid = 42;
	p.stream = 77;
	p.group = "cay-x";
	CHECK(buf_add_c(&p.status, "NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n") == 0);
	put("status", STATUS);
	put("uid_map", "         0      70000      65536\n");
	put("gid_map", "         0      70000      65536\n");
	put("limits", "Max core file size        1                    1          bytes\n"
		      "Max open files            4096                 4096       files\n");
	put("cgroup", "4:memory:/\n0::/above/cay-x\n");
	put("mountinfo", MOUNTS);
	for (int i = 0; i < 3; i++)
		point(i == 0 ? "fd/0" : i == 1 ? "fd/1" : "fd/2", "/dev/null");
	point("fd/3", "socket:[77]");
	point("fd/4", "/proc/1/oom_score_adj");
	point("fd/5", "anon_inode:[eventpoll]");
	point("fd/6", "anon_inode:[signalfd]");
	point("root", path);
	point("cwd", path);
	point("exe", "/proc/self/exe");
}

typedef int look(const struct posture *, struct err *);

static void end(void)
{
	CHECK(rmtree_at(AT_FDCWD, dir) == 0);
}

static void good(look *f)
{
	struct err e = { 0 };

	if (f(&p, &e) < 0)
		t_fail_str(__FILE__, __LINE__, e.msg, "");
}

/* Verify must refuse, with both of these in the message. */
static void bad(look *f, const char *what, const char *found)
{
	struct err e = { 0 };

	CHECK(f(&p, &e) < 0);
	if (!strstr(e.msg, what) || !strstr(e.msg, found))
		t_fail_str(__FILE__, __LINE__, e.msg, what);
}

static int descriptors(const struct posture *of, struct err *e)
{
	return posture_descriptors(of, 0, e);
}

/* Write STATUS or MOUNTS with one text replaced. */
static void put_with(const char *name, const char *all, const char *old, const char *new_)
{
	const char *at = strstr(all, old);
	char text[4096];

	CHECK(at);
	(void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - all), all, new_, at + strlen(old));
	put(name, text);
}

static void a_good_one_passes(void)
{
	begin();
	good(posture_maps);
	good(posture_mounts);
	good(posture_group);
	good(posture_status);
	good(posture_rlimits);
	good(descriptors);
	good(posture_places);
	end();
}

static void each_id_map_must_be_the_one_that_was_asked_for(void)
{
	begin();
	put("uid_map", "0 0 65536\n");
	bad(posture_maps, "uid_map: expected 0 70000 65536", "0 0 65536");
	put("uid_map", "0 70000 65536\n65536 0 1\n");
	bad(posture_maps, "uid_map", "65536 0 1");
	put("uid_map", "");
	bad(posture_maps, "uid_map", "nothing");
	put("uid_map", "0 70000 65536\n");
	put("gid_map", "0 70000 65537\n");
	bad(posture_maps, "gid_map", "65537");
	end();
}

static void every_attribute_of_init_is_compared(void)
{
	static const char *const rows[][3] = {
		{ "Uid:\t70000\t70000", "Uid:\t0\t70000", "Uid" },
		{ "Gid:\t70000", "Gid:\t0", "Gid" },
		{ "Groups:\t ", "Groups:\t27 ", "Groups" },
		{ "NSpid:\t42\t1", "NSpid:\t42", "NSpid" },
		{ "NSsid:\t42\t1", "NSsid:\t9\t0", "NSsid" },
		{ "CapInh:\t0", "CapInh:\t1", "CapInh" },
		{ "CapEff:\t000001f", "CapEff:\t000000f", "CapEff" },
		{ "CapBnd:\t00000000a00405fb", "CapBnd:\t000001ffffffffff", "CapBnd" },
		{ "CapAmb:\t0", "CapAmb:\t2", "CapAmb" },
		{ "NoNewPrivs:\t0", "NoNewPrivs:\t1", "NoNewPrivs" },
		{ "Seccomp:\t2", "Seccomp:\t0", "Seccomp" },
		{ "Seccomp_filters:\t1", "Seccomp_filters:\t3", "Seccomp_filters" },
		{ "Seccomp_filters:\t1", "Seccomp_filters:\t0", "Seccomp_filters" },
		{ "Threads:\t1", "Threads:\t2", "Threads" },
		{ "Umask:\t0022", "Umask:\t0000", "Umask" },
		{ "CapAmb:\t0000000000000000\n", "", "CapAmb" },
	};

	begin();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put_with("status", STATUS, rows[i][0], rows[i][1]);
		bad(posture_status, rows[i][2], "expected");
	}
	end();
}

static void every_mount_is_compared(void)
{
	static const char *const rows[][3] = {
		{ "/ rw,nodev,relatime", "/ rw,relatime", "'/': expected nodev" },
		{ "- overlay none rw\n2", "- ext4 none rw\n2", "'/': expected overlay" },
		{ "2 1 0:90 / /a\\040b rw,nodev - overlay none rw\n", "",
		  "'/a b': expected overlay" },
		{ "kcore ro,", "kcore rw,", "'/proc/kcore': expected ro" },
		{ "0:91 /none", "0:91 /state", "'/proc/kcore': expected /none" },
		{ "noexec - tmpfs none rw\n5", "noexec - devtmpfs none rw\n5",
		  "'/proc/kcore': expected tmpfs" },
		{ "/dev rw,nosuid,noexec", "/dev rw,noexec", "'/dev': expected nosuid" },
		{ "/sys ro,", "/sys rw,", "'/sys': expected ro" },
		{ "/dev/shm rw,nosuid,nodev -", "/dev/shm rw,nosuid,nodev shared:7 -",
		  "expected no propagation" },
		{ "8 1 0:84", "9 1 8:1 / /mnt rw - ext4 /dev/sda1 rw\n8 1 0:84",
		  "'/mnt': expected none" },
		{ "8 1 0:84", "9 1 0:83 / /proc rw,nosuid,nodev,noexec - proc none rw\n8 1 0:84",
		  "'/proc': expected none" },
		{ "8 1 0:84", "garbage\n8 1 0:84", "a list that can be read" },
	};

	begin();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put_with("mountinfo", MOUNTS, rows[i][0], rows[i][1]);
		bad(posture_mounts, rows[i][2], "found");
	}
	end();
}

static void an_entry_of_proc_that_is_not_listed_needs_its_cover(void)
{
	begin();
	put("tree/proc/cpuinfo", "");
	put("tree/proc/42", "");
	good(posture_mounts);
	put("tree/proc/of-a-later-kernel", "");
	bad(posture_mounts, "'/proc/of-a-later-kernel': expected tmpfs", "none");
	end();
}

static void the_knobs_of_proc_are_ours(void)
{
	begin();
	CHECK(mkdirat(p.proc_fd, "tree/proc/sys", 0700) == 0);
	bad(posture_mounts, "'/proc/sys': expected tmpfs", "none");
	put("mountinfo", MOUNTS "9 3 0:83 /sys /proc/sys ro,nosuid,nodev,noexec - proc none rw\n");
	bad(posture_mounts, "'/proc/sys': expected tmpfs", "proc");
	put("mountinfo", MOUNTS "9 3 0:92 / /proc/sys ro,nosuid,nodev,noexec - tmpfs none rw\n");
	good(posture_mounts);
	end();
}

static void limits_and_group_are_compared(void)
{
	begin();
	put("limits",
	    "Max core file size unlimited unlimited bytes\nMax open files 4096 4096 files\n");
	bad(posture_rlimits, "Max core file size: expected 1", "unlimited");
	put("limits", "Max core file size 1 1 bytes\nMax open files 1024 4096 files\n");
	bad(posture_rlimits, "Max open files: expected as many", "1024");
	put("cgroup", "0::/above/not-cay-x\n");
	bad(posture_group, "control group: expected cay-x", "not-cay-x");
	put("cgroup", "0::/above/cay-x/cay-self\n");
	good(posture_group);
	put("cgroup", "0::/above/cay-x/another\n");
	bad(posture_group, "control group: expected cay-x", "another");
	put("cgroup", "0::/above/not-cay-x/cay-self\n");
	bad(posture_group, "control group: expected cay-x", "not-cay-x");
	put("cgroup", "4:memory:/cay-x\n");
	bad(posture_group, "control group", "nothing");
	end();
}

static void descriptors_are_those_and_no_other(void)
{
	begin();
	point("fd/7", "/etc/shadow");
	bad(descriptors, "descriptor 7: expected none", "/etc/shadow");
	point("fd/7", "anon_inode:[eventpoll]"); /* a second one is not allowed */
	bad(descriptors, "descriptor 7", "eventpoll");
	CHECK(unlinkat(p.proc_fd, "fd/7", 0) == 0);
	point("fd/3", "socket:[78]");
	bad(descriptors, "descriptor 3: expected socket:[77]", "socket:[78]");
	point("fd/3", "socket:[77]");
	point("fd/1", "/dev/zero");
	bad(descriptors, "descriptor 1: expected the null device", "/dev/zero");
	CHECK(unlinkat(p.proc_fd, "fd/1", 0) == 0);
	bad(descriptors, "descriptors", "fewer");
	end();
}

/* This process stands for the command. */
static void a_pipe_to_the_command_is_no_other(void)
{
	struct err e = { 0 };
	char link[64] = "";
	int ends[2];

	CHECK(pipe2(ends, O_CLOEXEC) == 0 && dup2(ends[1], 3) == 3);
	begin();
	CHECK(readlink("/proc/self/fd/3", link, sizeof link - 1) > 0);
	CHECK(posture_descriptors(&p, getpid(), &e) == 0);
	point("fd/7", link);
	CHECK(posture_descriptors(&p, getpid(), &e) == 0);
	bad(descriptors, "descriptor 7: expected none", "pipe:");
	point("fd/8", link); /* init holds one end */
	CHECK(posture_descriptors(&p, getpid(), &e) < 0 && strstr(e.msg, "expected none"));
	point("fd/8", "pipe:[1]");
	CHECK(posture_descriptors(&p, getpid(), &e) < 0 && strstr(e.msg, "descriptor 8"));
	CHECK(unlinkat(p.proc_fd, "fd/8", 0) == 0 && close(3) == 0);
	CHECK(posture_descriptors(&p, getpid(), &e) < 0 && strstr(e.msg, "first command"));
	CHECK(posture_descriptors(&p, INT32_MAX, &e) < 0 && e.sys == ESRCH);
	end();
}

static void places_are_the_sandboxs(void)
{
	begin();
	point("cwd", "/");
	bad(posture_places, "cwd: expected the sandbox's root", "/");
	point("cwd", "tree");
	point("root", "/");
	bad(posture_places, "root", "/");
	point("root", "tree");
	point("exe", "/bin/sh");
	bad(posture_places, "exe: expected cay-init", "/bin/sh");
	end();
}

/* Real namespaces: our own original ones, then new ones for all types except pid. */
static void a_namespace_that_is_ours_is_refused(void)
{
	int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err e = { 0 };

	begin();
	(void)close(p.proc_fd);
	p.proc_fd = dup(self);
	CHECK(posture_open(&p, self, &e) == 0);
	bad(posture_namespaces, "ns/user: expected one of its own", "ours");
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
		    CLONE_NEWCGROUP | CLONE_NEWPID) < 0)
		t_skip("needs user namespaces");
	bad(posture_namespaces, "ns/pid: expected one of its own", "ours");
	end();
	_exit(0); /* the leak check of the sanitizers needs a thread, which cannot be made now */
}

T_MAIN(T(a_good_one_passes), T(each_id_map_must_be_the_one_that_was_asked_for),
       T(every_attribute_of_init_is_compared), T(every_mount_is_compared),
       T(an_entry_of_proc_that_is_not_listed_needs_its_cover), T(the_knobs_of_proc_are_ours),
       T(limits_and_group_are_compared), T(descriptors_are_those_and_no_other),
       T(a_pipe_to_the_command_is_no_other), T(places_are_the_sandboxs),
       T(a_namespace_that_is_ours_is_refused))
