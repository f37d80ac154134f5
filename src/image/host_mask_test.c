/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_mask.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "sys/rmtree.h"
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

static void what_is_closed_to_others_is_hidden(void)
{
	auto_done(buf_done) struct buf report = BUF_INIT(4096);

	if (geteuid() != 0)
		return;
	begin();
	put("secret", 0600);
	put("group", 0640);
	put_dir("closed", 0750);
	put("closed/inside", 0644);
	put_dir("a", 02751);
	put_dir("a/b", 0755);
	put("a/b/key\n", 0400);
	CHECK(make(&report) == 4);
	CHECK(is_hidden("secret") && is_hidden("group") && is_hidden("closed"));
	CHECK(is_hidden("a/b/key\n"));
	CHECK(strstr(report.data, "/host/a/b/key?\n"));
	end();
}

static void what_others_may_use_is_not(void)
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
	put_dir("a", 01771);
	CHECK(fchownat(host, "a", 12, 34, 0) == 0 && fchmodat(host, "a", 01771, 0) == 0);
	put("a/secret", 0600);
	CHECK(fchmod(host, 0711) == 0);
	CHECK(make(&report) == 1);
	CHECK(fstatat(out, "a", &st, 0) == 0 && (st.st_mode & 07777) == 01771);
	CHECK(st.st_uid == 12 && st.st_gid == 34);
	CHECK(fstat(out, &st) == 0 && (st.st_mode & 07777) == 0711);
	end();
}

T_MAIN(T(what_is_closed_to_others_is_hidden), T(what_others_may_use_is_not),
       T(directories_above_keep_their_attributes))
