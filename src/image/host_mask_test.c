/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_mask.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "sys/files/rmtree.h"
#include "t.h"

static char top[64];
static int base, host, out;

static void put(const char *path, mode_t mode)
{
	auto_close int fd = openat(host, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && fchmod(fd, mode) == 0);
}

static void put_dir(const char *path, mode_t mode)
{
	CHECK(mkdirat(host, path, 0700) == 0 && fchmodat(host, path, mode, 0) == 0);
}

static void begin(void)
{
	(void)snprintf(top, sizeof top, "/tmp/cay-mask.XXXXXX");
	CHECK(mkdtemp(top));
	base = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(mkdirat(base, "host", 0755) == 0 && mkdirat(base, "out", 0755) == 0);
	host = openat(base, "host", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	out = openat(base, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(host >= 0 && out >= 0);
}

static int make(struct buf *report)
{
	char path[80];
	struct err e = { 0 };
	int r;

	(void)snprintf(path, sizeof path, "%s/host", top);
	r = host_mask_make(path, out, report, &e);
	if (r < 0)
		printf("# %s\n", e.msg);
	return r;
}

static void end(void)
{
	CHECK(rmtree_at(AT_FDCWD, top) == 0);
}

static bool is_hidden(const char *path)
{
	struct stat st;

	return fstatat(out, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(0, 0);
}

static bool is_there(const char *path)
{
	return faccessat(out, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void files_closed_to_others_are_hidden(void)
{
	auto_done(buf_done) struct buf report = BUF_INIT(4096);

	if (geteuid() != 0)
		return;
	begin();
	put("secret", 0600);
	put("group", 0640);
	put_dir("closed", 0750);
	put("closed/inside", 0644);
	put_dir("a", 02755);
	put_dir("a/b", 0755);
	put("a/b/key\n", 0400);
	put_dir("blind", 0711);
	put("blind/x", 0644);
	CHECK(make(&report) == 5);
	CHECK(is_hidden("secret") && is_hidden("group") && is_hidden("closed"));
	CHECK(is_hidden("blind"));
	CHECK(is_hidden("a/b/key\n"));
	CHECK(strstr(report.data, "/host/a/b/key?\n"));
	end();
}

static void files_open_to_others_are_shown(void)
{
	auto_done(buf_done) struct buf report = BUF_INIT(4096);

	if (geteuid() != 0)
		return;
	begin();
	put("public", 0644);
	put("sudo", 04111);
	put_dir("list", 0755);
	put("list/x", 0604);
	CHECK(symlinkat("/etc/shadow", host, "link") == 0);
	CHECK(mkfifoat(host, "fifo", 0600) == 0);
	CHECK(make(&report) == 0);
	CHECK(!is_there("public") && !is_there("sudo") && !is_there("list") && !is_there("link"));
	CHECK(report.len == 0);
	end();
}

static void directories_above_keep_their_attributes(void)
{
	auto_done(buf_done) struct buf report = BUF_INIT(4096);
	struct stat st;

	if (geteuid() != 0)
		return;
	begin();
	put_dir("a", 01775);
	CHECK(fchownat(host, "a", 12, 34, 0) == 0 && fchmodat(host, "a", 01775, 0) == 0);
	put("a/secret", 0600);
	CHECK(fchmod(host, 0711) == 0);
	CHECK(make(&report) == 1);
	CHECK(fstatat(out, "a", &st, 0) == 0 && (st.st_mode & 07777) == 01775);
	CHECK(st.st_uid == 12 && st.st_gid == 34);
	CHECK(fstat(out, &st) == 0 && (st.st_mode & 07777) == 0711);
	end();
}

static void put_text(const char *path, const char *text)
{
	auto_close int fd = openat(host, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* `local` stands for /usr/local; elsewhere in /usr only the mode counts. */
static void credentials_are_hidden_where_people_install_by_hand(void)
{
	auto_done(buf_done) struct buf report = BUF_INIT(4096);

	begin();
	put_dir("local", 0755);
	put_dir("local/.git", 0755);
	put_dir("lib", 0755);
	put("lib/server.key", 0644);
	put_text("local/.env", "A=1\n");
	put_text("local/db.yml", "url: postgres://u:hunter2@db/x\n");
	put_text("local/ok.yml", "url: postgres://db/x\n");
	put_text("local/cacert.pem", "-----BEGIN CERTIFICATE-----\n");
	put_text("local/site.pem", "-----BEGIN PRIVATE KEY-----\n");
	put_text("local/.git/config", "[remote]\nurl = https://u:hunter2@h/x\n");
	put("local/runs", 0711);
	CHECK(make(&report) == 5);
	CHECK(is_hidden("local/.env") && is_hidden("local/db.yml") && is_hidden("local/site.pem"));
	CHECK(is_hidden("local/.git/config") && is_hidden("local/runs"));
	CHECK(!is_there("local/ok.yml") && !is_there("local/cacert.pem") && !is_there("lib"));
	CHECK(strstr(report.data, "holds an address with a password\t"));
	end();
}

static void a_report_lists_suspects_and_makes_nothing(void)
{
	auto_done(buf_done) struct buf report = BUF_INIT(4096);
	struct err e = { 0 };
	char path[80];

	begin();
	put_dir("local", 0755);
	put_text("local/.env", "A=1\n");
	put_text("local/deploy-token.txt", "x\n");
	put_text("local/tokens.py", "x\n");
	put_text("secret.txt", "x\n");
	(void)snprintf(path, sizeof path, "%s/host", top);
	CHECK(host_mask_look(path, 100, &report, &e) == 1);
	CHECK(strstr(report.data, "local/deploy-token.txt\n"));
	CHECK(host_mask_look(path, 1, &report, &e) == 0);
	CHECK(host_mask_look("/no/such", 1, &report, &e) == 0);
	end();
}

T_MAIN(T(files_closed_to_others_are_hidden), T(files_open_to_others_are_shown),
       T(directories_above_keep_their_attributes),
       T(credentials_are_hidden_where_people_install_by_hand),
       T(a_report_lists_suspects_and_makes_nothing))
