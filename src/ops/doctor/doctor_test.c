/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/doctor/doctor.h"
#include "t.h"

#include <errno.h>

/* A host without problems. */
static struct doctor_facts good(bool rootful)
{
	struct doctor_facts f = {
		.rootful = rootful,
		.kernel = { "6.18.1", "x86_64", 6, 18 },
		.guard = { .max_user_ns = 10000,
			   .userns_clone = -1,
			   .apparmor_restrict = -1,
			   .has_sys_admin = rootful },
		.subid = { "ann", 65536, 65536, true, true },
		.cgroup = { .mode = PROBE_CGROUP_V2,
			    .own = "/a",
			    .kill = true,
			    .freeze = true,
			    .given = 15,
			    .offered = 15 },
		.filter = { .killable = true, .landlock = 7 },
		.has_storage = true,
		.own_storage = { .path = "/p", .quota = true },
		.kvm = { .api = PROBE_KVM_API,
			 .finished = true,
			 .guest_ns = 100000,
			 .native_ns = 90000 },
		.cpu = { .known = true, .vmx_svm = true },
		.knobs = { 1, 1, 2, 2, 0, 0, false, "", "", false },
		.limits = { 65536, 30000, 500000, 128, 4194304, 60000, 64ull << 30, 0 },
		.state_dir = "/var/lib/cay",
		.state_exists = true,
		.storage = { .type = "btrfs",
			     .free_bytes = 1ull << 40,
			     .quota = PROBE_QUOTA_BTRFS,
			     .not_volatile = PROBE_UNTRIED },
		.cay = "/usr/bin/cay",
		.warden = { "/usr/libexec/cay/cay-warden", CAY_VERSION },
		.init = { "/usr/libexec/cay/cay-init", CAY_VERSION },
	};

	return f;
}

static const struct check *find(const struct doctor_facts *f, const char *name)
{
	static struct checks l;

	doctor_checks(f, &l);
	CHECK(l.n < CHECKS_MAX - 1);
	for (int i = 0; i < l.n; i++)
		if (strcmp(l.items[i].name, name) == 0)
			return &l.items[i];
	return NULL;
}

static void expect(const struct doctor_facts *f, const char *name, enum check_state state,
		   bool blocks, const char *finding, const char *fix)
{
	const struct check *c = find(f, name);

	CHECK(c);
	if (c->state != state || c->blocks != blocks)
		t_fail_str(__FILE__, __LINE__, c->finding, name);
	if (!strstr(c->finding, finding))
		t_fail_str(__FILE__, __LINE__, c->finding, finding);
	if (!strstr(c->fix, fix) || (fix[0] == '\0') != (c->fix[0] == '\0'))
		t_fail_str(__FILE__, __LINE__, c->fix, fix);
}

static struct level level(const struct doctor_facts *f, int i)
{
	static struct checks l;
	struct level v[LEVELS_MAX];

	doctor_checks(f, &l);
	CHECK(doctor_levels(f, &l, v) == LEVELS_MAX);
	CHECK(doctor_runs(&l) == (strcmp(v[0].level, "none") != 0));
	return v[i];
}

static void a_good_host_has_only_good_marks(void)
{
	for (int rootful = 0; rootful < 2; rootful++) {
		struct doctor_facts f = good(rootful);
		static struct checks l;

		doctor_checks(&f, &l);
		CHECK(l.n > 20 && doctor_runs(&l));
		for (int i = 0; i < l.n; i++) {
			if (strcmp(l.items[i].name, "uids") == 0)
				continue; /* one uid is normal without root */
			if (l.items[i].state != CHECK_OK)
				t_fail_str(__FILE__, __LINE__, l.items[i].finding, l.items[i].name);
			CHECK(!l.items[i].fix[0] && l.items[i].finding[0]);
		}
		CHECK_STR(level(&f, 0).level, rootful ? "full" : "reduced");
		CHECK_STR(level(&f, 1).level, "full");
		CHECK_STR(level(&f, 1).mode, rootful ? "rootful" : "rootless");
	}
}

/* clang-format off */
static const struct block_row {
	bool rootful;
	int user, map, nested;
	struct probe_guard guard;
	enum userns_block want;
	const char *fix;
} block_rows[] = {
	/* RHEL, or a hardened host */
	{ 0, -ENOSPC, 1, 1, { 0, -1, -1, "", 0, 0, 0, 0 }, USERNS_LIMIT, "user.max_user_namespaces=" },
	{ 1, -ENOSPC, 1, 1, { 0, -1, -1, "", 0, 1, 0, 0 }, USERNS_LIMIT, "user.max_user_namespaces=" },
	{ 0, 0, 0, -EUSERS, { 9, -1, -1, "", 0, 0, 0, 0 }, USERNS_LIMIT, "user.max_user_namespaces=" },
	/* CONFIG_USER_NS is off */
	{ 0, -EINVAL, 1, 1, { -1, -1, -1, "", 0, 0, 0, 0 }, USERNS_KERNEL, "CONFIG_USER_NS" },
	/* Debian's switch */
	{ 0, -EPERM, 1, 1, { 9, 0, -1, "", 0, 0, 0, 0 }, USERNS_SYSCTL, "unprivileged_userns_clone=1" },
	/* Docker's default profile: clone3 gives ENOSYS, unshare EPERM */
	{ 0, -ENOSYS, 1, 1, { 9, 1, -1, "docker", 2, 0, 1, 0 }, USERNS_SECCOMP, "seccomp=unconfined" },
	{ 1, -EPERM, 1, 1, { 9, 0, -1, "docker", 2, 0, 1, 0 }, USERNS_SECCOMP, "seccomp=unconfined" },
	/* Ubuntu 24.04: a namespace can be created, but not used */
	{ 0, 0, -EPERM, 1, { 9, 1, 1, "unconfined", 0, 0, 0, 0 }, USERNS_APPARMOR, "apparmor_parser -r" },
	{ 0, 0, 0, -EACCES, { 9, 1, 1, "unconfined", 2, 0, 0, 0 }, USERNS_APPARMOR, "cay /{usr/bin/cay," },
	{ 0, 0, -EPERM, 1, { 9, 1, -1, "", 2, 0, 1, 0 }, USERNS_SECCOMP, "seccomp=unconfined" },
	{ 0, -EPERM, 1, 1, { 9, 1, -1, "", 0, 0, 0, 1 }, USERNS_CHROOT, "chroot" },
	{ 1, 0, -EPERM, 1, { 9, 1, -1, "", 0, 1, 0, 0 }, USERNS_OUTER, "root of the host" },
	{ 0, -EPERM, 1, 1, { 9, 1, 0, "", 0, 0, 0, 0 }, USERNS_UNKNOWN, "dmesg" },
	{ 1, -EPERM, 1, 1, { 9, 1, 1, "", 0, 1, 1, 0 }, USERNS_UNKNOWN, "--privileged" },
};
/* clang-format on */

static void what_blocks_user_namespaces_is_told(void)
{
	for (size_t i = 0; i < sizeof block_rows / sizeof block_rows[0]; i++) {
		const struct block_row *row = &block_rows[i];
		struct doctor_facts f = good(row->rootful);

		f.ns.user = row->user;
		f.ns.map = row->map;
		f.ns.nested = row->nested;
		f.guard = row->guard;
		printf("# row %zu\n", i);
		CHECK(doctor_userns(&f) == row->want);
		expect(&f, "user", CHECK_MISSING, true, "", row->fix);
		CHECK_STR(level(&f, 0).level, "none");
		CHECK(strstr(level(&f, 0).sentence, "'user'"));
	}
}

static void ubuntu_may_refuse_only_the_mount_namespace(void)
{
	struct doctor_facts f = good(false);

	f.guard.apparmor_restrict = 1;
	CHECK(doctor_userns(&f) == USERNS_OK);
	f.ns.other[PROBE_NS_MNT] = -EPERM;
	CHECK(doctor_userns(&f) == USERNS_APPARMOR);
	(void)snprintf(f.cay, sizeof f.cay, "/opt/it's/cay");
	expect(&f, "user", CHECK_MISSING, true, "AppArmor",
	       "apparmor_restrict_unprivileged_userns=0");
}

static void root_does_not_need_nesting(void)
{
	struct doctor_facts f = good(true);

	f.ns.nested = -EPERM;
	CHECK(doctor_userns(&f) == USERNS_OK);
}

static void other_namespaces_are_needed(void)
{
	struct doctor_facts f = good(true);

	f.ns.other[PROBE_NS_NET] = -EPERM;
	f.ns.other[PROBE_NS_IPC] = -EPERM;
	f.guard.has_sys_admin = false;
	expect(&f, "others", CHECK_MISSING, true, "refused: net, ipc (", "SYS_ADMIN");
	f = good(true);
	f.ns.proc = -EPERM;
	expect(&f, "proc", CHECK_MISSING, true, "masked", "systempaths=unconfined");
	f.ns.proc = PROBE_UNTRIED;
	CHECK(!find(&f, "proc"));
}

static void without_root_dev_has_a_gap_and_locked_has_none(void)
{
	struct doctor_facts f = good(false);

	expect(&f, "uids", CHECK_NOTE, false, "subuids are not used", "as root");
	CHECK_STR(level(&f, 0).level, "reduced");
	CHECK(strstr(level(&f, 0).sentence, "no sudo"));
	CHECK(strstr(level(&f, 0).sentence, "there is no root inside"));
	CHECK_STR(level(&f, 1).level, "full");
	f.rootful = true;
	CHECK(!find(&f, "uids"));
}

static void old_kernels_are_told(void)
{
	static const struct {
		int major, minor;
		enum check_state state;
	} rows[] = { { 4, 20, CHECK_MISSING }, { 5, 18, CHECK_MISSING }, { 5, 19, CHECK_NOTE },
		     { 6, 0, CHECK_NOTE },     { 6, 1, CHECK_OK },	 { 7, 0, CHECK_OK } };

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct doctor_facts f = good(true);

		f.kernel.major = rows[i].major;
		f.kernel.minor = rows[i].minor;
		expect(&f, "kernel", rows[i].state, rows[i].state == CHECK_MISSING, "",
		       rows[i].state == CHECK_OK ? "" : "install");
		CHECK(!find(&f, "file times") == (rows[i].major > 6));
	}
}

static void missing_walls_lower_the_level_but_do_not_block(void)
{
	struct doctor_facts f = good(true);

	f.filter.landlock = -EOPNOTSUPP;
	expect(&f, "Landlock", CHECK_MISSING, false, "not enabled", "lsm=");
	f.filter.landlock = -ENOSYS;
	expect(&f, "Landlock", CHECK_MISSING, false, "not in this kernel", "CONFIG");
	CHECK_STR(level(&f, 1).level, "reduced");
	CHECK(strstr(level(&f, 1).sentence, "no Landlock"));
	f.filter.landlock = 1;
	expect(&f, "Landlock", CHECK_MISSING, false, "too old", "5.19");
	f.filter.landlock = 4;
	expect(&f, "Landlock", CHECK_NOTE, false, "ABI 4", "");
	f.filter.notify = -EBUSY;
	expect(&f, "seccomp", CHECK_MISSING, false, "watches us", "outside");
	f.filter.notify = PROBE_UNTRIED;
	expect(&f, "seccomp", CHECK_MISSING, false, "no answer", "CONFIG");
	f.filter.pidfd_exit = -ENOTTY;
	expect(&f, "pidfd", CHECK_NOTE, false, "6.15", "");
}

static void every_kind_of_hierarchy_has_its_words(void)
{
	struct doctor_facts f = good(true);

	expect(&f, "hierarchy", CHECK_OK, false, "v2; ours is /a", "");
	f.cgroup.mode = PROBE_CGROUP_HYBRID;
	f.cgroup.given = f.cgroup.offered = 0;
	f.cgroup.v1 = 15;
	expect(&f, "hierarchy", CHECK_OK, false, "v1 and v2", "");
	expect(&f, "limits", CHECK_OK, false, "memory, pids, cpu, io, by v1", "");
	f.cgroup.mode = PROBE_CGROUP_V1;
	expect(&f, "freeze", CHECK_NOTE, false, "by signals", "");
	f.cgroup.make = -ENOENT;
	expect(&f, "hierarchy", CHECK_NOTE, false, "v1 only", "unified");
	CHECK(!find(&f, "groups"));
	f.cgroup.mode = PROBE_CGROUP_NONE;
	f.cgroup.v1 = 0;
	expect(&f, "hierarchy", CHECK_MISSING, false, "none", "mount -t cgroup2");
	CHECK_STR(level(&f, 0).level, "reduced");
}

static void groups_without_permission_are_told_with_the_way_out(void)
{
	struct doctor_facts f = good(false);

	f.cgroup.make = -EACCES;
	expect(&f, "groups", CHECK_MISSING, false, "cannot be made", "systemd-run --user");
	expect(&f, "limits", CHECK_MISSING, false,
	       "no limits on memory, cpu; there are those on pids", "see above");
	CHECK(strstr(level(&f, 1).sentence, "no control groups"));
	f.cgroup.make = -EROFS;
	expect(&f, "groups", CHECK_MISSING, false, "cannot be made", "remount,rw");
	f.cgroup.make = -EACCES;
	f.cgroup.mode = PROBE_CGROUP_HYBRID;
	expect(&f, "groups", CHECK_MISSING, false, "cannot be made", "chown ann");
	expect(&f, "limits", CHECK_MISSING, false, "memory", "as root");
}

static void controllers_that_are_missing_or_wait_are_told(void)
{
	struct doctor_facts f = good(false);

	f.cgroup.given = f.cgroup.offered = 1u << PROBE_CG_MEMORY | 1u << PROBE_CG_PIDS;
	expect(&f, "limits", CHECK_MISSING, false,
	       "no limits on cpu; there are those on memory, pids", "Delegate=");
	f.cgroup.offered = 15;
	expect(&f, "limits", CHECK_OK, false, "(cpu, io given to us", "");
	f.cgroup.kill = false;
	expect(&f, "kill, freeze", CHECK_NOTE, false, "no cgroup.kill", "");
	f.cgroup.freeze = false;
	expect(&f, "freeze", CHECK_NOTE, false, "a snapshot is refused while commands run", "");
}

static void a_place_that_cannot_be_used_blocks(void)
{
	struct doctor_facts f = good(true);

	f.storage.scratch = -EACCES;
	expect(&f, "state directory", CHECK_MISSING, true, "/var/lib/cay: Permission", "CAY_STATE");
	f = good(true);
	(void)err_set(&f.state_err, ERR_NOT_ALLOWED, "belongs to uid 7");
	expect(&f, "state directory", CHECK_MISSING, true, "belongs to uid 7", "CAY_STATE");
	f = good(true);
	f.storage.overlay = -EINVAL;
	expect(&f, "overlay", CHECK_MISSING, true, "upper here", "CAY_STATE");
	f.storage.not_volatile = 0;
	expect(&f, "overlay", CHECK_MISSING, true, "volatile", "CAY_STATE");
	f.storage.overlay = -ENODEV;
	expect(&f, "overlay", CHECK_MISSING, true, "", "modprobe overlay");
	f = good(true);
	f.storage.idmap = -EINVAL;
	expect(&f, "id-mapped mounts", CHECK_MISSING, true, "refused", "CAY_STATE");
	f.rootful = false;
	CHECK(!find(&f, "id-mapped mounts"));
}

static void file_systems_have_their_notes(void)
{
	struct doctor_facts f = good(true);

	(void)snprintf(f.storage.type, sizeof f.storage.type, "tmpfs");
	f.storage.quota = PROBE_QUOTA_NONE;
	f.storage.reflink = -EOPNOTSUPP;
	expect(&f, "file system", CHECK_NOTE, false, "in memory", "CAY_STATE");
	expect(&f, "reflink", CHECK_NOTE, false, "not on this", "");
	f.has_storage = false;
	expect(&f, "disk limit", CHECK_NOTE, false, "watched", "cay setup storage");
	(void)snprintf(f.storage.type, sizeof f.storage.type, "nfs4");
	expect(&f, "file system", CHECK_NOTE, false, "network", "CAY_STATE");
	f = good(true);
	expect(&f, "disk limit", CHECK_OK, false, "held by the kernel: btrfs storage /p", "");
	f.has_storage = false;
	f.storage.quota = PROBE_QUOTA_BTRFS_OFF;
	expect(&f, "disk limit", CHECK_NOTE, false, "watched", "setup storage DIRECTORY");
	(void)err_set(&f.storage_err, ERR_UNAVAILABLE, "the storage is not there");
	expect(&f, "disk limit", CHECK_MISSING, false, "not there", "");
	f = good(false);
	f.has_storage = false;
	expect(&f, "disk limit", CHECK_NOTE, false, "a quota needs root", "");
	f = good(true);
	f.storage.counts_inodes = true;
	f.storage.free_inodes = 5;
	expect(&f, "file system", CHECK_NOTE, false, "5 inodes free; that is little", "cay gc");
}

static void kvm_counts_only_where_a_guest_runs(void)
{
	struct doctor_facts f = good(true);

	expect(&f, "KVM", CHECK_OK, false, "full speed", "");
	CHECK(strstr(level(&f, 2).sentence, "not built yet; KVM here would run it at full speed"));
	f.kvm.guest_ns = 90000000;
	expect(&f, "KVM", CHECK_NOTE, false, "interpreted): 1000 times", "");
	f.kvm.guest_ns = 0;
	f.kvm.finished = false;
	expect(&f, "KVM", CHECK_NOTE, false, "interpreted): a loop", "");
	CHECK(strstr(level(&f, 2).sentence, "slowly"));
	f.kvm.run = -EIO;
	expect(&f, "KVM", CHECK_NOTE, false, "no guest runs", "");
	CHECK(strstr(level(&f, 2).sentence, "no KVM"));
	f.kvm.open = -EACCES;
	expect(&f, "KVM", CHECK_NOTE, false, "Permission", "setfacl -m u:ann:rw");
	f.kvm.group = true;
	expect(&f, "KVM", CHECK_NOTE, false, "Permission", "usermod -aG kvm ann");
	f.kvm.open = -ENOENT;
	expect(&f, "KVM", CHECK_NOTE, false, "No such", "modprobe");
	f.cpu.vmx_svm = false;
	expect(&f, "KVM", CHECK_NOTE, false, "offers no", "firmware");
	f.cpu.virtual_ = true;
	expect(&f, "KVM", CHECK_NOTE, false, "offers no", "nested");
	f.kvm.open = -EACCES; /* KVM may be an emulator */
	expect(&f, "KVM", CHECK_NOTE, false, "Permission denied; whether", "usermod -aG kvm ann");
	CHECK_STR(level(&f, 2).level, "none");
}

static void crashes_inside_start_a_helper_only_where_the_limit_cannot_be_one(void)
{
	struct doctor_facts f = good(true);

	probe_core("core.%p", &f.knobs);
	expect(&f, "core dumps", CHECK_OK, false, "start no program", "");
	probe_core("|/usr/share/apport/apport -p%p -s%s", &f.knobs);
	f.limits.core = UINT64_MAX;
	expect(&f, "core dumps", CHECK_OK, false,
	       "start /usr/share/apport/apport for crashes outside of sandboxes only", "");
	f.limits.core = 0;
	expect(&f, "core dumps", CHECK_NOTE, false,
	       "in a sandbox too, starts /usr/share/apport/apport", "core_pattern=core");
	for (int i = 0; i < 2; i++) {
		probe_core(i ? "@@/run/dump.sock" : "@/run/dump.sock", &f.knobs);
		f.limits.core = UINT64_MAX;
		expect(&f, "core dumps", CHECK_NOTE, false,
		       "in a sandbox too, is told to /run/dump.sock", "core_pattern=core");
	}
}

static void weak_settings_are_notes_with_a_command(void)
{
	struct doctor_facts f = good(true);

	f.cpu = (struct probe_cpu){ .known = true, .vulnerable = "mds l1tf", .smt = 1 };
	f.knobs =
		(struct probe_knobs){ 0,    0, 0, 0, 1, 1, true, "/usr/share/apport", "esp4 rxrpc",
				      false };
	expect(&f, "CPU weaknesses", CHECK_NOTE, false, "open: mds l1tf", "microcode");
	expect(&f, "SMT", CHECK_NOTE, false, "on", "smt/control");
	expect(&f, "swap", CHECK_NOTE, false, "disk", "swapoff");
	expect(&f, "KSM", CHECK_NOTE, false, "merged", "ksm/run");
	expect(&f, "core dumps", CHECK_NOTE, false, "in a sandbox too, starts /usr/share/apport",
	       "core_pattern=core");
	expect(&f, "dmesg", CHECK_NOTE, false, "log", "kernel.dmesg_restrict=1");
	expect(&f, "ptrace", CHECK_NOTE, false, "attach", "ptrace_scope=1");
	expect(&f, "bpf", CHECK_NOTE, false, "programs", "unprivileged_bpf_disabled=1");
	expect(&f, "io_uring", CHECK_NOTE, false, "use it", "io_uring_disabled=1");
	expect(&f, "TIOCSTI", CHECK_NOTE, false, "type", "legacy_tiocsti=0");
	expect(&f, "modules", CHECK_NOTE, false, "esp4 rxrpc",
	       "printf 'install %s /bin/false\\n' esp4 rxrpc");
	CHECK_STR(level(&f, 0).level, "full");
	CHECK(strstr(level(&f, 0).sentence, "open weaknesses"));
}

static void companions_of_another_build_block(void)
{
	struct doctor_facts f = good(true);

	f.init.path[0] = '\0';
	expect(&f, "cay-init", CHECK_MISSING, true, "not found", "install");
	(void)snprintf(f.warden.version, sizeof f.warden.version, "0.0.9");
	expect(&f, "cay-warden", CHECK_MISSING, true, "is 0.0.9, cay is " CAY_VERSION, "install");
	f.warden.version[0] = '\0';
	expect(&f, "cay-warden", CHECK_MISSING, true, "is of another version", "install");
}

static void capacity_names_what_bounds_it(void)
{
	struct doctor_facts f = good(true);

	expect(&f, "capacity", CHECK_OK, false, "4096 idle sandboxes at once, bounded by ranges",
	       "");
	f.limits.pid_max = 4000;
	expect(&f, "capacity", CHECK_OK, false,
	       "1000 idle sandboxes at once, bounded by kernel.pid_max", "");
	f.rootful = false;
	f.limits.processes = 40;
	expect(&f, "capacity", CHECK_NOTE, false, "10 idle sandboxes at once, bounded by the limit",
	       "");
	f.limits.files = 1024;
	f.limits.inotify_watches = 8192;
	expect(&f, "open files", CHECK_NOTE, false, "at most 1024", "nofile");
	expect(&f, "inotify", CHECK_NOTE, false, "8192", "max_user_watches");
}

static void files_that_may_be_credentials_are_a_note(void)
{
	struct doctor_facts f = good(true);

	expect(&f, "credentials", CHECK_OK, false, "no file", "");
	CHECK(!find(&f, "hidden files"));
	f.credentials = 7;
	(void)snprintf(f.credential_names, sizeof f.credential_names, "/opt/a/token.txt");
	expect(&f, "credentials", CHECK_NOTE, false, "7 files that may be one: /opt/a/token.txt",
	       "chmod o-r");
	f.mounts_below = true;
	CHECK(!find(&f, "hidden files"));
	f.rootful = false;
	expect(&f, "hidden files", CHECK_NOTE, false, "mounted below", "--template dir:");
}

T_MAIN(T(files_that_may_be_credentials_are_a_note), T(a_good_host_has_only_good_marks),
       T(what_blocks_user_namespaces_is_told), T(ubuntu_may_refuse_only_the_mount_namespace),
       T(root_does_not_need_nesting), T(other_namespaces_are_needed),
       T(without_root_dev_has_a_gap_and_locked_has_none), T(old_kernels_are_told),
       T(missing_walls_lower_the_level_but_do_not_block), T(every_kind_of_hierarchy_has_its_words),
       T(groups_without_permission_are_told_with_the_way_out),
       T(controllers_that_are_missing_or_wait_are_told), T(a_place_that_cannot_be_used_blocks),
       T(file_systems_have_their_notes), T(kvm_counts_only_where_a_guest_runs),
       T(crashes_inside_start_a_helper_only_where_the_limit_cannot_be_one),
       T(weak_settings_are_notes_with_a_command), T(companions_of_another_build_block),
       T(capacity_names_what_bounds_it))
