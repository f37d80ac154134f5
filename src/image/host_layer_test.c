/* SPDX-License-Identifier: Apache-2.0 */
/* What gets into the base layer of `host`, and above all what does not. */
#include "image/host_layer.h"

#include <ftw.h>

#include "image/template_testing.h"

#define CANARY "CANARY-7f3a"
#define MARK   "PUBLIC-7f3a"

enum { NOBODY = 65534, BIG = 1 << 20 };

static char *layer; /* where the walks look */
static int canaries, marks, compared;

/* Build as uid; the layer's path goes to `layer`. */
static void build_as(uid_t uid)
{
	char *out = path_of("path");
	int st;

	CHECK(chown(state, uid, uid) == 0);
	if (fork() == 0) {
		struct template t;
		FILE *f;

		CHECK(setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0);
		t = resolve("host");
		f = fopen(out, "w");
		CHECK(f && fputs(t.mounts[0].lower[0], f) >= 0 && fclose(f) == 0);
		template_done(&t);
		_exit(0);
	}
	CHECK(wait(&st) > 0 && st == 0);
	{
		auto_done(buf_done) struct buf b = BUF_INIT(4096);

		CHECK(io_read_file(AT_FDCWD, out, &b) == 0);
		layer = buf_take(&b, NULL);
	}
	free(out);
}

static bool same_content(const char *a, const char *b)
{
	auto_done(buf_done) struct buf x = BUF_INIT(64 << 20), y = BUF_INIT(64 << 20);

	return io_read_file(AT_FDCWD, a, &x) == 0 && io_read_file(AT_FDCWD, b, &y) == 0 &&
	       x.len > 0 && str_eq(buf_str(&x), buf_str(&y));
}

static int check_against_host(const char *path, const struct stat *st, int type, struct FTW *f)
{
	const char *host = path + strlen(layer);
	struct stat hst;

	(void)f;
	CHECK(type == FTW_F || type == FTW_D || type == FTW_SL);
	CHECK(type == FTW_D || (st->st_mode & (S_ISUID | S_ISGID)) == 0);
	if (type != FTW_F || lstat(host, &hst) < 0 || !S_ISREG(hst.st_mode) ||
	    !same_content(path, host))
		return 0;
	compared++;
	if (!(hst.st_mode & S_IROTH))
		printf("# %s\n", host);
	CHECK(hst.st_mode & S_IROTH);
	return 0;
}

static void check_host_layer(uid_t uid)
{
	bool root = uid == 0;

	state_new();
	build_as(uid);
	CHECK(nftw(layer, check_against_host, 16, FTW_PHYS) == 0);
	CHECK(compared > 50);
	check_mode(layer, "tmp", 01777, uid, uid);
	check_mode(layer, "root", 0700, uid, uid);
	check_mode(layer, "home/user", 0750, root ? 1000 : uid, root ? 1000 : uid);
	check_mode(layer, "etc/sudoers", 0440, uid, uid);
	check_mode(layer, "etc/passwd", 0644, uid, uid);
	check_mode(layer, "var/lib/apt/lists/partial", 0700, uid, uid);
	check_mode(layer, "run/lock", 01777, uid, uid);
	rm(state);
	free(layer);
}

static void nothing_private_of_this_host_is_in_a_layer_built_by_root(void)
{
	if (is_root())
		check_host_layer(0);
}

static void nothing_private_of_this_host_is_in_a_layer_built_by_a_user(void)
{
	check_host_layer(geteuid() == 0 ? NOBODY : geteuid());
}

static void put_sized(int dir, const char *name, size_t n, const char *text)
{
	char *all = malloc(n + 1);

	memset(all, 'x', n);
	memcpy(all, text, strlen(text));
	all[n] = '\0';
	put(dir, name, 0644, all);
	free(all);
}

static void put_dirs(int d)
{
	static const char *const dirs[] = {
		"apt",	       "apt/apt.conf.d", "apt/auth.conf.d", "ssh",     "ssl",  "ssl/certs",
		"ssl/private", "perl",		 "perl/er",	    "systemd", ".git", "cron.d",
		"dpkg",	       "dpkg/dpkg.cfg.d"
	};

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		CHECK(mkdirat(d, dirs[i], 0755) == 0);
	CHECK(mkdirat(d, "perl/closed", 0750) == 0 && mkdirat(d, "perl/blind", 0711) == 0);
	CHECK(mkdirat(d, "perl/listed", 0744) == 0);
	CHECK(fchmodat(d, "perl/closed", 0750, 0) == 0);
}

static void put_secrets_by_mode(int d)
{
	put(d, "perl/private.conf", 0600, CANARY);
	put(d, "perl/group-only.conf", 0640, CANARY);
	put(d, "perl/closed/a", 0644, CANARY);
	put(d, "perl/blind/a", 0644, CANARY);
	put(d, "perl/listed/a", 0644, CANARY);
	put(d, "perl/suid", 04755, CANARY);
	put(d, "perl/sgid", 02755, CANARY);
	put(d, "perl/odd\n\xff\x01 private", 0600, CANARY);
	put(d, "perl/[*?", 0600, CANARY);
	put_sized(d, "perl/big", BIG + 1, CANARY);
	CHECK(linkat(d, "perl/private.conf", d, "perl/hard", 0) == 0);
	CHECK(symlinkat("/etc/shadow", d, "perl/link-to-shadow") == 0);
	CHECK(symlinkat("closed", d, "perl/link-to-closed") == 0);
	CHECK(symlinkat("perl/private.conf", d, "resolv.conf") == 0);
	CHECK(mkfifoat(d, "perl/fifo", 0644) == 0);
	CHECK(mknodat(d, "perl/device", S_IFCHR | 0644, 0) == 0);
}

static void put_secrets_by_kind(int d)
{
	put(d, "shadow", 0644, "root:" CANARY ":1::::::\n");
	put(d, "passwd", 0644,
	    "root:" CANARY ":0:0:root:/root:/bin/sh\ndaemon:x:1:1:" MARK
	    ":/:/x\nalice:x:1000:1000:" CANARY ":/:/x\n" CANARY);
	put(d, "group", 0644, "root:" CANARY ":0:" CANARY "\npeople:x:1000:" CANARY "\n");
	put(d, "apt/apt.conf.d/99proxy", 0644,
	    "Acquire::http::Proxy \"http://bob:" CANARY "@proxy:3128\";\n");
	put(d, "apt/sources.list", 0644, "deb https://long-token-of-" CANARY "@h/ stable main\n");
	put(d, "apt/auth.conf.d/x", 0644, CANARY);
	put(d, "npmrc", 0644, "//r.example/:_authToken=" CANARY "\n");
	put(d, "pip.conf", 0644, "[global]\nindex-url = https://u:" CANARY "@h/simple\n");
	put(d, "ssh/ssh_host_rsa_key", 0644, CANARY);
	put(d, "ssl/private/a", 0644, CANARY);
	put(d, "ssl/certs/bundle.pem", 0644, "-----BEGIN PRIVATE KEY-----\n" CANARY "\n");
	put(d, "site.pem", 0644, CANARY);
	put(d, "perl/er/my.key", 0644, CANARY);
	put(d, "machine-id", 0444, CANARY);
	put(d, "hosts", 0644, CANARY);
	put(d, "hostname", 0644, CANARY);
	put(d, "environment", 0644, CANARY);
	put(d, ".git/config", 0644, CANARY);
	put(d, "cron.d/job", 0644, CANARY);
	put(d, "perl/site.conf.bak", 0644, CANARY);
	put(d, "our-company.conf", 0644, CANARY);
	put(d, "systemd/app.service", 0644, CANARY);
	put(d, "profile", 0644, "export DEPLOY_TOKEN=" CANARY "\n");
}

static void put_public(int d)
{
	put(d, "nsswitch.conf", 0644, MARK);
	put(d, "perl/er/a", 0444, MARK);
	put(d, "perl/odd\n\xff\x01", 0644, MARK);
	put(d, "apt/apt.conf.d/10plain", 0644, MARK);
	put(d, "ssl/certs/root.pem", 0644, MARK);
	put(d, "perl/unreadable-by-owner", 0044, MARK);
	put_sized(d, "perl/just-fits", BIG, MARK);
}

/* Those of put_public, and passwd. */
enum { PUBLIC_FILES = 7 + 1 };

static int count_marks(const char *path, const struct stat *st, int type, struct FTW *f)
{
	auto_done(buf_done) struct buf b = BUF_INIT(64 << 20);

	(void)f;
	CHECK(!(st->st_mode & (S_ISUID | S_ISGID)) || type == FTW_D);
	CHECK(type == FTW_F || type == FTW_D || type == FTW_SL);
	if (type != FTW_F)
		return 0;
	CHECK(io_read_file(AT_FDCWD, path, &b) == 0);
	if (b.data && memmem(b.data, b.len, CANARY, strlen(CANARY))) {
		printf("# canary in %s\n", path);
		canaries++;
	}
	marks += b.data && memmem(b.data, b.len, MARK, strlen(MARK));
	return 0;
}

static bool is_masked(const char *name)
{
	struct stat st;
	char *path;
	bool r;

	CHECK(asprintf(&path, "%s/../mask/opt/%s", layer, name) > 0);
	r = lstat(path, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == 0;
	free(path);
	return r;
}

static void put_opt(int d)
{
	CHECK(mkdirat(d, "app", 0755) == 0 && mkdirat(d, "app/blind", 0711) == 0);
	put(d, "app/.env", 0644, CANARY);
	put(d, "app/private", 0600, CANARY);
	put(d, "app/db.conf", 0644, "postgres://u:" CANARY "@db/x\n");
	put(d, "app/public", 0644, MARK);
}

static void check_canaries(uid_t uid)
{
	auto_close int etc = FD_NONE, dpkg = FD_NONE, opt = FD_NONE;

	if (!private_mounts())
		return;
	umask(0);
	state_new();
	CHECK(chmod(state, 0711) == 0);
	etc = bind_own("etc", "/etc");
	put_dirs(etc);
	put_secrets_by_mode(etc);
	put_secrets_by_kind(etc);
	put_public(etc);
	dpkg = bind_own("dpkg", "/var/lib/dpkg");
	put(dpkg, "status", 0644, "");
	put(dpkg, "lock", 0644, CANARY);
	put(dpkg, "unheard-of", 0644, CANARY);
	opt = bind_own("opt", "/opt");
	put_opt(opt);
	build_as(uid);
	CHECK(is_masked("app/.env") && is_masked("app/private") && is_masked("app/db.conf"));
	CHECK(is_masked("app/blind") && !is_masked("app/public"));
	CHECK(umount2("/opt", MNT_DETACH) == 0);
	CHECK(nftw(layer, count_marks, 16, FTW_PHYS) == 0);
	CHECK(canaries == 0);
	CHECK(marks == PUBLIC_FILES);
	check_link(layer, "etc/perl/link-to-shadow", "/etc/shadow");
	check_link(layer, "etc/perl/link-to-closed", "closed");
	CHECK(umount2("/etc", MNT_DETACH) == 0 && umount2("/var/lib/dpkg", MNT_DETACH) == 0);
	rm(state);
	free(layer);
}

static void no_canary_of_a_made_up_host_gets_in_as_root(void)
{
	check_canaries(0);
}

static void no_canary_of_a_made_up_host_gets_in_as_a_user(void)
{
	check_canaries(NOBODY);
}

T_MAIN(T(nothing_private_of_this_host_is_in_a_layer_built_by_root),
       T(nothing_private_of_this_host_is_in_a_layer_built_by_a_user),
       T(no_canary_of_a_made_up_host_gets_in_as_root),
       T(no_canary_of_a_made_up_host_gets_in_as_a_user))
