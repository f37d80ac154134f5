/* SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "sys/probe/probe_cgroup.h"
#include "sys/probe/probe_cpu.h"
#include "sys/probe/probe_kernel.h"
#include "sys/probe/probe_knobs.h"
#include "sys/probe/probe_mountinfo.h"
#include "sys/probe/probe_storage.h"
#include "sys/probe/probe_subid.h"

static void set_seven(void *result, const void *arg)
{
	*(int *)result = *(const int *)arg;
}

static void set_and_hang(void *result, const void *arg)
{
	set_seven(result, arg);
	for (;;)
		pause();
}

static void set_and_die(void *result, const void *arg)
{
	set_seven(result, arg);
	raise(SIGKILL);
}

static void a_child_returns_its_result(void)
{
	int result = 1, seven = 7;

	CHECK(probe_in_child(set_seven, &result, sizeof result, &seven, 5000) == 0);
	CHECK(result == 7);
}

static void a_child_that_hangs_is_killed_and_its_facts_are_kept(void)
{
	int result = 1, seven = 7;
	uint64_t start = clock_mono_ns();

	CHECK(probe_in_child(set_and_hang, &result, sizeof result, &seven, 50) == -ETIMEDOUT);
	CHECK(clock_mono_ns() - start < 5 * NS_PER_S);
	CHECK(result == 7);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void a_child_that_dies_is_reported(void)
{
	int result = 1, seven = 7;

	CHECK(probe_in_child(set_and_die, &result, sizeof result, &seven, 5000) == -EIO);
	CHECK(result == 7);
}

static void words_are_found_whole(void)
{
	CHECK(probe_has_word(STR("rw,prjquota,seclabel"), ",", "prjquota"));
	CHECK(!probe_has_word(STR("rw,noprjquota"), ",", "prjquota"));
	CHECK(!probe_has_word(STR("cpuset"), ",", "cpu"));
	CHECK(probe_has_word(STR("cpuset,cpu"), ",", "cpu"));
	CHECK(!probe_has_word(STR(""), ",", "cpu"));
}

static void releases_are_read(void)
{
	static const struct {
		const char *text;
		bool ok;
		int major, minor;
	} rows[] = {
		{ "6.1.0-13-amd64", true, 6, 1 },
		{ "5.15.167.4-microsoft-standard-WSL2", true, 5, 15 },
		{ "6.18.44", true, 6, 18 },
		{ "7.0-rc1", true, 7, 0 },
		{ "", false, 0, 0 },
		{ "linux", false, 0, 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int major = 0, minor = 0;

		CHECK(probe_release_parse(rows[i].text, &major, &minor) == rows[i].ok);
		CHECK(!rows[i].ok || (major == rows[i].major && minor == rows[i].minor));
	}
}

static void status_gives_seccomp_mode_and_capability(void)
{
	struct probe_guard g = { .seccomp = -1 };

	probe_status_parse(
		STR("Name:\tcay\nCapEff:\t000001fffeffffff\nSeccomp:\t2\nSeccomp_filters:\t1\n"),
		&g);
	CHECK(g.seccomp == 2 && g.has_sys_admin);
	probe_status_parse(STR("CapEff:\t00000000a80425fb\nSeccomp:\t0\n"), &g);
	CHECK(g.seccomp == 0 && !g.has_sys_admin);
}

#define MOUNTS \
	"23 28 0:21 / /proc rw,nosuid - proc proc rw\n" \
	"nonsense\n" \
	"28 1 254:1 / / rw,relatime shared:1 master:2 - ext4 /dev/vda1 rw,prjquota\n" \
	"40 28 0:30 /a\\040b /mnt/a\\040b rw - btrfs /dev/vdb rw,subvol=/x\n"

static void a_mount_is_found_by_its_number(void)
{
	struct mountinfo m;

	CHECK(mountinfo_find(STR(MOUNTS), 28, &m));
	CHECK(str_is(m.type, "ext4") && str_is(m.point, "/") && str_is(m.source, "/dev/vda1"));
	CHECK(str_is(m.options, "rw,relatime") && probe_quota_is_project(m.super));
	CHECK(mountinfo_find(STR(MOUNTS), 40, &m));
	CHECK(str_is(m.type, "btrfs") && str_is(m.root, "/a\\040b"));
	CHECK(!probe_quota_is_project(m.super));
	CHECK(!mountinfo_find(STR(MOUNTS), 99, &m));
}

#define V1 "30 28 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define V2 "31 28 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"

static void the_cgroup_mode_is_detected(void)
{
	CHECK(probe_cgroup_mode(STR(MOUNTS)) == PROBE_CGROUP_NONE);
	CHECK(probe_cgroup_mode(STR(MOUNTS V1)) == PROBE_CGROUP_V1);
	CHECK(probe_cgroup_mode(STR(V2 MOUNTS)) == PROBE_CGROUP_V2);
	CHECK(probe_cgroup_mode(STR(V2 V1)) == PROBE_CGROUP_HYBRID);
}

static void our_own_group_is_found_in_each_hierarchy(void)
{
	static const char text[] =
		"9:name=systemd:/x\n4:memory:/a/b\n2:cpu,cpuacct:/c\n0::/user.slice/d\n";
	struct str own;

	CHECK(probe_cgroup_own(str_of(text), NULL, &own) && str_is(own, "/user.slice/d"));
	CHECK(probe_cgroup_own(str_of(text), "memory", &own) && str_is(own, "/a/b"));
	CHECK(probe_cgroup_own(str_of(text), "cpu", &own) && str_is(own, "/c"));
	CHECK(!probe_cgroup_own(str_of(text), "pids", &own));
	CHECK(!probe_cgroup_own(STR("4:memory:/a\n"), NULL, &own));
}

static void controllers_are_read(void)
{
	CHECK(probe_cgroup_set(STR("cpuset cpu io memory pids\n")) == 15);
	CHECK(probe_cgroup_set(STR("cpuset hugetlb\n")) == 0);
	CHECK(probe_cgroup_set(STR("rw,blkio")) == 1 << PROBE_CG_IO);
}

static void ranges_of_a_user_are_added_up(void)
{
	static const char text[] =
		"root:1:1\nann:100000:65536\n1000:300000:1000\nannie:1:5\nann:x:7\nann:5\n";

	CHECK(subid_count(str_of(text), "ann", 1000) == 66536);
	CHECK(subid_count(str_of(text), "ann", 7) == 65536);
	CHECK(subid_count(str_of(text), "nobody", 65534) == 0);
	CHECK(subid_count(STR(""), "ann", 1000) == 0);
}

static void the_name_of_a_user_is_found(void)
{
	static const char text[] = "root:x:0:0::/:/bin/sh\nann:x:1000:1000::/:/bin/sh\n";
	char name[8];

	CHECK(subid_user(str_of(text), 1000, name, sizeof name));
	CHECK_STR(name, "ann");
	CHECK(!subid_user(str_of(text), 100, name, sizeof name));
}

static void only_unmitigated_vulnerabilities_count(void)
{
	CHECK(probe_cpu_is_open("Vulnerable"));
	CHECK(probe_cpu_is_open("Vulnerable: Safe RET, no microcode"));
	CHECK(probe_cpu_is_open("KVM: Vulnerable"));
	CHECK(!probe_cpu_is_open("Not affected"));
	CHECK(!probe_cpu_is_open("Mitigation: Clear CPU buffers; SMT vulnerable"));
	CHECK(!probe_cpu_is_open("KVM: Mitigation: VMX disabled"));
	CHECK(!probe_cpu_is_open(""));
}

static void flags_of_the_cpu_are_read(void)
{
	struct probe_cpu c = { 0 };

	probe_cpu_flags(STR("model name\t: svm\nflags\t\t: fpu sse hypervisor\n"), &c);
	CHECK(c.virtual_ && !c.vmx_svm);
	probe_cpu_flags(STR("flags\t\t: fpu vmx\nvmx flags\t: ept\n"), &c);
	CHECK(!c.virtual_ && c.vmx_svm);
}

static void swap_needs_more_than_the_heading_line(void)
{
	CHECK(!probe_has_swap(STR("Filename\tType\tSize\tUsed\tPriority\n")));
	CHECK(!probe_has_swap(STR("")));
	CHECK(probe_has_swap(STR("Filename\n/dev/zram0 partition 1 0 100\n")));
}

static void blocked_modules_do_not_count(void)
{
	static const char dep[] =
		"kernel/crypto/algif_aead.ko: x\nkernel/net/ipv4/esp4.ko.zst:\nnet/foo_rxrpc.ko:\n";
	char out[64];

	probe_risky_modules(str_of(dep), STR(""), out, sizeof out);
	CHECK_STR(out, "algif_aead esp4");
	probe_risky_modules(str_of(dep),
			    STR("# x\ninstall esp4 /bin/false\ninstall algif_aead /sbin/x\n"), out,
			    sizeof out);
	CHECK_STR(out, "algif_aead");
	probe_risky_modules(STR(""), STR(""), out, sizeof out);
	CHECK_STR(out, "");
}

static int count_entries(const char *dir)
{
	struct stat st;

	CHECK(stat(dir, &st) == 0);
	return (int)st.st_nlink;
}

static void storage_is_probed_and_left_unchanged(void)
{
	char dir[] = "/tmp/probe-test-XXXXXX";
	struct probe_storage s;

	struct timespec old = { .tv_sec = time(NULL) - 120 };
	char dead[64];

	CHECK(mkdtemp(dir));
	(void)snprintf(dead, sizeof dead, "%s/.doctor-dead", dir);
	CHECK(mkdir(dead, 0700) == 0);
	CHECK(utimensat(AT_FDCWD, dead, (struct timespec[]){ old, old }, 0) == 0);
	probe_storage(&s, dir, geteuid() == 0);
	CHECK(s.scratch == 0 && s.type[0] && s.free_bytes > 0);
	CHECK(s.overlay != PROBE_UNTRIED && s.reflink != PROBE_UNTRIED);
	CHECK(count_entries(dir) == 2);
	CHECK(rmdir(dir) == 0);
}

T_MAIN(T(a_child_returns_its_result), T(a_child_that_hangs_is_killed_and_its_facts_are_kept),
       T(a_child_that_dies_is_reported), T(words_are_found_whole), T(releases_are_read),
       T(status_gives_seccomp_mode_and_capability), T(a_mount_is_found_by_its_number),
       T(the_cgroup_mode_is_detected), T(our_own_group_is_found_in_each_hierarchy),
       T(controllers_are_read), T(ranges_of_a_user_are_added_up), T(the_name_of_a_user_is_found),
       T(only_unmitigated_vulnerabilities_count), T(flags_of_the_cpu_are_read),
       T(swap_needs_more_than_the_heading_line), T(blocked_modules_do_not_count),
       T(storage_is_probed_and_left_unchanged))
