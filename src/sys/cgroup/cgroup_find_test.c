/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cgroup/cgroup_find.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "sys/files/rmtree.h"
#include "t.h"

static char root[32];

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/proc/self/%s", root, name);
	f = fopen(path, "we");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* A host with these two files; removed at the end of the process. */
static void host(const char *cgroup, const char *mountinfo)
{
	char path[64];

	(void)snprintf(root, sizeof root, "/tmp/cgroup-find-XXXXXX");
	CHECK(mkdtemp(root));
	(void)snprintf(path, sizeof path, "%s/proc", root);
	CHECK(mkdir(path, 0755) == 0);
	(void)snprintf(path, sizeof path, "%s/proc/self", root);
	CHECK(mkdir(path, 0755) == 0);
	put("cgroup", cgroup);
	put("mountinfo", mountinfo);
}

static void is(const char *controller, const char *want)
{
	char got[256];

	if (!want) {
		CHECK(cgroup_find(root, controller, got, sizeof got) == -ENOENT);
		return;
	}
	CHECK(cgroup_find(root, controller, got, sizeof got) == 0);
	CHECK(strncmp(got, root, strlen(root)) == 0);
	CHECK_STR(got + strlen(root), want);
}

static void end(void)
{
	CHECK(rmtree_at(AT_FDCWD, root) == 0);
}

#define V2_LINE "40 32 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
#define MEM_LINE \
	"33 32 0:28 / /sys/fs/cgroup/memory rw,relatime shared:1 - cgroup cgroup rw,memory\n"
#define CPU_LINE "34 32 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"

static void a_hybrid_host_has_v1_and_v2_groups(void)
{
	host("9:name=systemd:/\n4:memory:/a/b\n2:cpuacct,cpu:/c\n0::/u\n",
	     "22 1 8:1 / / rw - ext4 /dev/sda rw\n" MEM_LINE CPU_LINE V2_LINE);
	is(NULL, "/sys/fs/cgroup/unified/u");
	is("memory", "/sys/fs/cgroup/memory/a/b");
	is("cpu", "/sys/fs/cgroup/cpu,cpuacct/c");
	is("pids", NULL);
	end();
}

static void a_v2_host_has_one_group(void)
{
	host("0::/user.slice/session-1.scope\n",
	     "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
	is(NULL, "/sys/fs/cgroup/user.slice/session-1.scope");
	is("memory", NULL);
	end();
}

static void a_v1_host_has_no_v2_group(void)
{
	host("4:memory:/\n", MEM_LINE);
	is(NULL, NULL);
	is("memory", "/sys/fs/cgroup/memory/");
	end();
}

static void a_controller_is_a_whole_word(void)
{
	host("2:cpuacct:/x\n3:cpuset:/y\n",
	     "34 32 0:29 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
	     "35 32 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
	is("cpu", NULL);
	end();
}

static void a_partial_mount_gives_a_relative_path(void)
{
	host("4:memory:/docker/abc/inner\n",
	     "33 32 0:28 /docker/other /mnt rw - cgroup cgroup rw,memory\n"
	     "33 32 0:28 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
	is("memory", "/sys/fs/cgroup/memory/inner");
	end();
}

static void a_partial_mount_without_our_group_is_ignored(void)
{
	host("4:memory:/docker/abcd\n",
	     "33 32 0:28 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
	is("memory", NULL);
	end();
}

static void a_process_in_the_self_leaf_belongs_to_its_parent(void)
{
	host("0::/user.slice/run.scope/" CGROUP_SELF "\n",
	     "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	is(NULL, "/sys/fs/cgroup/user.slice/run.scope");
	end();
}

static void a_path_that_does_not_fit_is_refused(void)
{
	char small[24];

	host("0::/u\n", V2_LINE);
	CHECK(cgroup_find(root, NULL, small, sizeof small) == -ENAMETOOLONG);
	end();
}

T_MAIN(T(a_hybrid_host_has_v1_and_v2_groups), T(a_v2_host_has_one_group),
       T(a_v1_host_has_no_v2_group), T(a_controller_is_a_whole_word),
       T(a_partial_mount_gives_a_relative_path), T(a_partial_mount_without_our_group_is_ignored),
       T(a_process_in_the_self_leaf_belongs_to_its_parent), T(a_path_that_does_not_fit_is_refused))
