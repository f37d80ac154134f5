/* SPDX-License-Identifier: Apache-2.0 */
#include "image/template.h"

#include <dirent.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "image/template_testing.h"

static int count_entries(const char *rel)
{
	auto_free char *p = path_of(rel);
	struct dirent **v;
	int n = scandir(p, &v, NULL, NULL);

	CHECK(n >= 2);
	for (int i = 0; i < n; i++)
		free(v[i]);
	free(v);
	return n - 2;
}

static void four_at_once_make_one_layer(void)
{
	int go[2], st;
	char c;

	state_new();
	CHECK(pipe(go) == 0);
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			struct template t;
			struct stat s;

			(void)close(go[1]);
			CHECK(read(go[0], &c, 1) == 0);
			t = resolve("host");
			CHECK(stat(t.mounts[0].lower[0], &s) == 0);
			template_done(&t);
			_exit(0);
		}
	}
	(void)close(go[1]);
	for (int i = 0; i < 4; i++)
		CHECK(wait(&st) > 0 && st == 0);
	CHECK(count_entries("templates/host") == 1);
	rm(state);
}

/* With an /etc and a dpkg of our own a build takes little and the host can be changed. */
static int small_host(void)
{
	int etc;

	state_new();
	etc = bind_own("etc", "/etc");
	put(etc, "passwd", 0644, "root:x:0:0::/root:/bin/sh\n");
	(void)close(bind_own("dpkg", "/var/lib/dpkg"));
	return etc;
}

static void small_host_done(int etc)
{
	(void)close(etc);
	CHECK(umount2("/etc", MNT_DETACH) == 0 && umount2("/var/lib/dpkg", MNT_DETACH) == 0);
	rm(state);
}

static void a_layer_is_kept_until_the_host_changes(void)
{
	struct template a, b, c, d;
	int etc;

	if (!private_mounts())
		return;
	etc = small_host();
	a = resolve("host");
	b = resolve("host");
	CHECK_STR(a.mounts[0].lower[0], b.mounts[0].lower[0]);
	put(etc, "new.conf", 0644, "");
	c = resolve("host");
	CHECK(strcmp(a.mounts[0].lower[0], c.mounts[0].lower[0]) != 0);
	CHECK(renameat(etc, "new.conf", etc, "old.conf") == 0);
	d = resolve("host");
	CHECK(strcmp(c.mounts[0].lower[0], d.mounts[0].lower[0]) != 0);
	CHECK(count_entries("templates/host") == 3);
	template_done(&a);
	template_done(&b);
	template_done(&c);
	template_done(&d);
	small_host_done(etc);
}

static void a_failed_build_leaves_nothing_and_says_where(void)
{
	auto_free char *host = NULL;
	struct err e;
	int etc;

	if (!private_mounts())
		return;
	etc = small_host();
	host = path_of("templates/host");
	CHECK(io_mkdir_all(host, 0700) == 0);
	/* room for directories, but none for files */
	CHECK(mount("none", host, "tmpfs", 0, "nr_inodes=40") == 0);
	e = refused(state, "host");
	CHECK(e.kind == ERR_SYS && e.sys == ENOSPC && strstr(e.msg, "var/"));
	CHECK(count_entries("templates/host") == 0);
	CHECK(umount2(host, MNT_DETACH) == 0);
	small_host_done(etc);
}

static void age(const char *rel, time_t seconds)
{
	auto_free char *p = path_of(rel);
	struct timespec t = { .tv_sec = time(NULL) - seconds };

	CHECK(utimensat(AT_FDCWD, p, (struct timespec[]){ t, t }, 0) == 0);
}

static void make_dirs(const char *rel)
{
	auto_free char *p = path_of(rel);

	CHECK(io_mkdir_all(p, 0700) == 0);
}

static bool is_there(const char *rel)
{
	auto_free char *p = path_of(rel);

	return access(p, F_OK) == 0;
}

static void leftovers_of_a_crash_are_swept(void)
{
	struct template t;
	int etc;

	if (!private_mounts())
		return;
	etc = small_host();
	make_dirs("templates/host/v3-0.new-dead/root/etc");
	make_dirs("templates/host/v3-0.new-busy/root");
	age("templates/host/v3-0.new-dead", 11 * 60);
	t = resolve("host");
	template_done(&t);
	CHECK(!is_there("templates/host/v3-0.new-dead"));
	CHECK(is_there("templates/host/v3-0.new-busy"));
	/* Also where there is nothing to build. */
	make_dirs("templates/host/v3-0.new-later/root");
	age("templates/host/v3-0.new-later", 11 * 60);
	CHECK(template_host_sweep(state) == 0);
	CHECK(!is_there("templates/host/v3-0.new-later"));
	CHECK(is_there("templates/host/v3-0.new-busy"));
	small_host_done(etc);
}

static bool is_used(void *ctx, const char *name)
{
	return strcmp(name, ctx) == 0;
}

static void old_layers_are_removed_only_if_unused(void)
{
	struct template t;
	int etc;

	if (!private_mounts())
		return;
	etc = small_host();
	CHECK(template_host_prune(state, is_used, "none") == 0);
	make_dirs("templates/host/v3-old/root");
	t = resolve("host");
	age("templates/host/v3-old", 60);
	CHECK(template_host_prune(state, is_used, "v3-old") == 0);
	CHECK(is_there("templates/host/v3-old"));
	CHECK(template_host_prune(state, is_used, "none") == 1);
	CHECK(!is_there("templates/host/v3-old"));
	CHECK(access(t.mounts[0].lower[0], F_OK) == 0);
	template_done(&t);
	small_host_done(etc);
}

static const struct template_mount *find_mount(const struct template *t, const char *dest)
{
	for (int i = 0; i < t->nmounts; i++)
		if (strcmp(t->mounts[i].dest, dest) == 0)
			return &t->mounts[i];
	return NULL;
}

static void directories_with_mounts_below_are_read_only(void)
{
	const struct template_mount *m;
	struct template t;
	int etc;

	if (!private_mounts())
		return;
	etc = small_host();
	t = resolve("host");
	m = find_mount(&t, "/usr");
	CHECK(m && m->kind == MOUNT_OVERLAY && m->nlower >= 1 && m->nlower <= 2);
	CHECK_STR(m->lower[m->nlower - 1], "/usr"); /* below its mask, if there is one */
	CHECK(t.mounts[0].kind == MOUNT_OVERLAY);
	CHECK_STR(t.mounts[0].dest, "/");
	template_done(&t);
	CHECK(mount("none", "/usr/share", "tmpfs", 0, NULL) == 0);
	t = resolve("host");
	m = find_mount(&t, "/usr");
	CHECK(m && m->kind == MOUNT_RO);
	template_done(&t);
	small_host_done(etc);
}

static void a_directory_of_its_own_at_the_top_is_a_mount(void)
{
	const struct template_mount *m;
	struct template t;
	int etc, old;

	if (!private_mounts())
		return;
	etc = small_host();
	/* A stand-in for a host without merged /usr: a root that has a real /bin */
	make_dirs("r/bin");
	make_dirs("r/usr/bin");
	make_dirs("r/etc");
	make_dirs("r/proc");
	make_dirs("r/opt");
	make_dirs("r/state");
	{
		auto_free char *r = path_of("r"), *proc = path_of("r/proc");
		auto_free char *link = path_of("r/sbin");

		CHECK(symlink("usr/sbin", link) == 0);
		CHECK(mount(r, r, NULL, MS_BIND, NULL) == 0);
		CHECK(mount("proc", proc, "proc", 0, NULL) == 0);
		old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		CHECK(old >= 0 && chroot(r) == 0 && chdir("/") == 0);
	}
	{
		struct err e;

		CHECK(template_resolve("/state", "host", &t, &e) == 0);
	}
	m = find_mount(&t, "/bin");
	CHECK(m && m->kind == MOUNT_OVERLAY);
	CHECK(find_mount(&t, "/usr") && !find_mount(&t, "/opt") && !find_mount(&t, "/sbin"));
	check_mode(t.mounts[0].lower[0], "bin", 0755, 0, 0);
	check_link(t.mounts[0].lower[0], "sbin", "usr/sbin");
	template_done(&t);
	CHECK(fchdir(old) == 0 && chroot(".") == 0);
	(void)close(old);
	{
		auto_free char *r = path_of("r");

		CHECK(umount2(r, MNT_DETACH) == 0);
	}
	small_host_done(etc);
}

/* Read-only, so that a check that fails to refuse cannot write to the host. */
static void bind_ro(const char *from, const char *to)
{
	CHECK(mount(from, to, NULL, MS_BIND, NULL) == 0);
	CHECK(mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0);
}

static void a_state_directory_that_would_show_is_refused(void)
{
	auto_free char *bound = NULL;
	struct err e;

	if (!private_mounts())
		return;
	state_new();
	bound = path_of("bound");
	CHECK(mkdir(bound, 0700) == 0);
	bind_ro("/usr/share", bound);
	e = refused(bound, "host");
	CHECK(e.kind == ERR_INVALID);
	CHECK(umount2(bound, MNT_DETACH) == 0);
	bind_ro("/usr/share", "/usr/share");
	e = refused("/usr/share", "host");
	CHECK(e.kind == ERR_INVALID && strstr(e.msg, "/usr/share") && e.hint[0]);
	rm(state);
}

static void resolving_an_existing_layer_is_cheap(void)
{
	enum { ROUNDS = 300 };
	uint64_t best = UINT64_MAX;
	struct template t;

	state_new();
	t = resolve("host");
	template_done(&t);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = clock_mono_ns();

		t = resolve("host");
		if (clock_mono_ns() - start < best)
			best = clock_mono_ns() - start;
		template_done(&t);
	}
	printf("# resolved in %.1f us\n", (double)best / (double)NS_PER_US);
	CHECK(best < NS_PER_MS);
	rm(state);
}

static void a_directory_with_a_root_is_a_template(void)
{
	auto_free char *real = NULL;
	struct template t;

	state_new();
	real = path_of("r");
	make_dirs("s");
	make_dirs("r/usr/bin");
	{
		auto_free char *s = path_of("s"), *name = NULL, *link = path_of("link");
		struct err e;

		CHECK(symlink(real, link) == 0);
		CHECK(asprintf(&name, "dir:%s/../link", real) > 0);
		CHECK(template_resolve(s, name, &t, &e) == 0);
		CHECK_STR(t.name, name);
	}
	CHECK(t.nmounts == 1 && t.mounts[0].nlower == 1 && t.mounts[0].kind == MOUNT_OVERLAY);
	CHECK_STR(t.mounts[0].dest, "/");
	CHECK_STR(t.mounts[0].lower[0], real);
	template_done(&t);
	rm(state);
}

static enum err_kind refused_dir(const char *rel, const char *what)
{
	auto_free char *s = path_of("s"), *name = NULL;
	struct err e;

	CHECK(asprintf(&name, "dir:%s/%s", state, rel) > 0);
	e = refused(s, name);
	if (!strstr(e.msg, what))
		printf("# %s\n", e.msg);
	CHECK(strstr(e.msg, what));
	return e.kind;
}

static void a_directory_without_a_root_is_refused(void)
{
	state_new();
	make_dirs("s/in/bin");
	make_dirs("bin");
	make_dirs("empty");
	make_dirs("files");
	{
		auto_free char *f = path_of("files/bin");

		put(AT_FDCWD, f, 0644, "");
	}
	CHECK(refused_dir("empty", "(no bin or usr/bin)") == ERR_INVALID);
	CHECK(refused_dir("files", "(no bin or usr/bin)") == ERR_INVALID);
	CHECK(refused_dir("none", "not found") == ERR_NOT_FOUND);
	CHECK(refused_dir("files/bin", "not a directory") == ERR_INVALID);
	CHECK(refused_dir("s/in", "inside the state directory") == ERR_INVALID);
	CHECK(refused_dir("", "would be visible") == ERR_INVALID);
	CHECK(refused(state, "dir:").kind == ERR_INVALID);
	CHECK(refused(state, "dir:/").kind == ERR_INVALID);
	rm(state);
}

static void other_names_are_not_found(void)
{
	struct err e = refused("/", "base");

	CHECK(e.kind == ERR_NOT_FOUND);
	CHECK_STR(e.msg, "template 'base' not found");
	CHECK_STR(e.hint, "templates are: host, dir:PATH, snap:SNAPSHOT");
	CHECK(refused("/", "").kind == ERR_NOT_FOUND);
	CHECK(refused("/", "hosts").kind == ERR_NOT_FOUND);
}

T_MAIN(T(four_at_once_make_one_layer), T(a_layer_is_kept_until_the_host_changes),
       T(a_failed_build_leaves_nothing_and_says_where), T(leftovers_of_a_crash_are_swept),
       T(old_layers_are_removed_only_if_unused), T(directories_with_mounts_below_are_read_only),
       T(a_directory_of_its_own_at_the_top_is_a_mount),
       T(a_state_directory_that_would_show_is_refused), T(resolving_an_existing_layer_is_cheap),
       T(a_directory_with_a_root_is_a_template), T(a_directory_without_a_root_is_refused),
       T(other_names_are_not_found))
