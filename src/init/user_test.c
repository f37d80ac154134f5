/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts from files that a sandbox can write freely: each test has its own /etc. */
#include "init/user.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "t_ns.h"

static struct user u;

static void put(const char *path, const char *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && io_write_all(fd, text, n) == 0 && close(fd) == 0);
}

static void etc(const char *passwd, const char *group)
{
	t_own_namespaces(0);
	CHECK(mount("etc", "/etc", "tmpfs", 0, NULL) == 0);
	put("/etc/passwd", passwd, strlen(passwd));
	put("/etc/group", group, strlen(group));
}

static void a_name_gives_ids_home_shell_and_groups(void)
{
	etc("root:x:0:0:root:/root:/bin/bash\nme:x:1000:100:Me,,,:/home/me:/bin/zsh\n",
	    "users:x:100:me\nsudo:x:27:root,me\nabc:x:5:mee,em\ndocker:x:999:me,root\n");
	CHECK(user_find("me", &u) == 0);
	CHECK(u.uid == 1000 && u.gid == 100);
	CHECK_STR(u.name, "me");
	CHECK_STR(u.home, "/home/me");
	CHECK_STR(u.shell, "/bin/zsh");
	CHECK(u.ngroups == 2 && u.groups[0] == 27 && u.groups[1] == 999);
	CHECK(user_find("0", &u) == 0 && u.uid == 0 && u.ngroups == 2);
	CHECK_STR(u.name, "root");
	CHECK_STR(u.home, "/root");
}

static void a_uid_needs_no_account(void)
{
	etc("", "evil:x:0:4711\n");
	CHECK(user_find("4711", &u) == 0);
	CHECK(u.uid == 4711 && u.gid == 4711 && u.ngroups == 0);
	CHECK_STR(u.name, "4711");
	CHECK_STR(u.home, "/");
	CHECK_STR(u.shell, "/bin/sh");
	CHECK(user_find("4294967294", &u) == 0 && u.uid == 4294967294u);
}

static void a_given_group_is_the_only_one(void)
{
	etc("me:x:1000:100::/home/me:/bin/sh\n", "sudo:x:27:me\n");
	CHECK(user_find("1000:5", &u) == 0 && u.uid == 1000 && u.gid == 5 && u.ngroups == 0);
	CHECK_STR(u.home, "/home/me");
	CHECK(user_find("me:0", &u) == 0 && u.uid == 1000 && u.gid == 0 && u.ngroups == 0);
	CHECK(user_find("7:8", &u) == 0 && u.uid == 7 && u.gid == 8);
}

static void invalid_accounts_are_refused(void)
{
	char name[200];

	etc("me:x:1000:100::/home/me:/bin/sh\n", "");
	memset(name, 'a', sizeof name);
	CHECK(user_find("m", &u) == -ENOENT && user_find("mee", &u) == -ENOENT);
	CHECK(user_find("", &u) == -ENOENT && user_find("-1", &u) == -ENOENT);
	CHECK(user_find("4294967295", &u) == -ENOENT && user_find("0x0", &u) == -ENOENT);
	CHECK(user_find("me:", &u) == -EINVAL && user_find("me:users", &u) == -EINVAL);
	CHECK(user_find("0:-1", &u) == -EINVAL && user_find("0:4294967295", &u) == -EINVAL);
	CHECK(user_find("0:1:2", &u) == -EINVAL);
	for (size_t n = 63; n < sizeof name; n++) {
		name[n] = '\0';
		CHECK(user_find(name, &u) == -ENOENT);
		name[n] = 'a';
	}
}

static void invalid_account_lines_are_skipped(void)
{
	etc("me\nme:x\nme:x:0:0:short:/\n:::::::\n\n\n"
	    "me:x:-1:0::/:/bin/sh\nme:x:4294967295:0::/:/bin/sh\n"
	    "me:x:99999999999999999999:0::/:/bin/sh\nme:x:0x0:0::/:/bin/sh\n"
	    "me:x: 0:0::/:/bin/sh\nme:x::0::/:/bin/sh\nme:x:0:root::/:/bin/sh\n"
	    "me:x:0 :0::/:/bin/sh\nMe:x:0:0::/:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh:more",
	    "sudo\nsudo:x\nsudo:x:27\nsudo:x:-1:me\nsudo:x::me\nok:x:30:,,me,:");
	CHECK(user_find("me", &u) == 0 && u.uid == 1000 && u.gid == 1000);
	CHECK_STR(u.shell, "/bin/sh");
	CHECK(u.ngroups == 1 && u.groups[0] == 30);
}

static void a_line_without_a_name_is_nobody(void)
{
	etc(":x:1000:1000::/evil:/evil\n", "root:x:0:\nsudo:x:27:root,,me\n");
	CHECK(user_find("", &u) == -ENOENT);
	CHECK(user_find("1000", &u) == 0 && u.ngroups == 0);
	CHECK_STR(u.home, "/");
}

static void bytes_after_a_nul_count_for_nothing(void)
{
	static const char evil[] = "a:x:1:1::/:/a\n\0me:x:0:0::/:/bin/sh\n";

	etc("", "");
	put("/etc/passwd", evil, sizeof evil - 1);
	CHECK(user_find("me", &u) == -ENOENT && user_find("a", &u) == 0);
}

static void groups_end_at_their_limit(void)
{
	char line[64];

	etc("me:x:1000:100::/home/me:/bin/sh\n", "");
	for (int i = 0; i < 3 * USER_GROUPS; i++) {
		int n = snprintf(line, sizeof line, "g%d:x:%d:me\n", i, 1000 + i);

		put("/etc/group", line, (size_t)n);
	}
	CHECK(user_find("me", &u) == 0 && u.ngroups == USER_GROUPS);
	CHECK(u.groups[USER_GROUPS - 1] == 1000 + USER_GROUPS - 1);
}

static void long_fields_are_cut(void)
{
	static char line[3000];
	int n = snprintf(line, sizeof line, "%0200d:x:7:7::/%0999d:/%0999d\n", 0, 0, 0);

	etc("", "");
	put("/etc/passwd", line, (size_t)n);
	CHECK(user_find("7", &u) == 0 && u.uid == 7);
	CHECK(strlen(u.name) == sizeof u.name - 1 && strlen(u.home) == sizeof u.home - 1);
	CHECK(strlen(u.shell) == sizeof u.shell - 1 && u.shell[0] == '/');
}

static void files_that_cannot_be_read_are_empty_ones(void)
{
	static char junk[(1 << 20) + 64];

	etc("me:x:1000:100::/home/me:/bin/sh\n", "");
	memset(junk, '\n', sizeof junk);
	put("/etc/passwd", junk, sizeof junk);
	CHECK(user_find("me", &u) == -ENOENT && user_find("1000", &u) == 0);
	CHECK(unlink("/etc/passwd") == 0 && unlink("/etc/group") == 0);
	CHECK(user_find("me", &u) == -ENOENT && user_find("0", &u) == 0 && u.uid == 0);
	CHECK(mkdir("/etc/passwd", 0755) == 0);
	CHECK(user_find("me", &u) == -ENOENT && user_find("0", &u) == 0);
}

/* user_remember() does not trust a file written just now, which could change unnoticed: wait. */
static void let_settle(const char *path)
{
	struct stat st;

	CHECK(stat(path, &st) == 0);
	while ((uint64_t)st.st_ctim.tv_sec + 2 >= clock_real_ns() / NS_PER_S)
		(void)poll(NULL, 0, 50);
}

static void a_changed_file_ends_what_is_remembered(void)
{
	etc("me:x:1000:100::/home/me:/bin/sh\n", "");
	let_settle("/etc/group");
	user_remember("me");
	CHECK(user_recall("me", &u) == 0 && u.uid == 1000);
	CHECK(user_recall("you", &u) == -ENOENT);
	put("/etc/passwd", "you:x:7:7::/:/bin/sh\n", 21);
	user_remember("you");
	CHECK(user_recall("you", &u) == 0 && u.uid == 7);
	CHECK(user_recall("me", &u) == 0 && u.uid == 1000);
	put("/etc/group", "sudo:x:27:me\n", 13);
	user_remember("me");
	CHECK(user_recall("me", &u) == 0 && u.ngroups == 1 && u.groups[0] == 27);
	CHECK(unlink("/etc/passwd") == 0);
	user_remember("me");
	CHECK(user_recall("me", &u) == -ENOENT);
}

static void a_remembered_user_is_not_read_again(void)
{
	etc("me:x:1000:100::/home/me:/bin/sh\n", "");
	let_settle("/etc/group");
	user_remember("me");
	/* Replace /etc unnoticed with another file system, which no sandbox could do. */
	CHECK(mount("none", "/etc", "tmpfs", 0, NULL) == 0);
	CHECK(user_find("me", &u) == -ENOENT);
	CHECK(user_recall("me", &u) == 0 && u.uid == 1000);
}

T_MAIN(T(a_name_gives_ids_home_shell_and_groups), T(a_uid_needs_no_account),
       T(a_given_group_is_the_only_one), T(invalid_accounts_are_refused),
       T(invalid_account_lines_are_skipped), T(a_line_without_a_name_is_nobody),
       T(bytes_after_a_nul_count_for_nothing), T(groups_end_at_their_limit), T(long_fields_are_cut),
       T(files_that_cannot_be_read_are_empty_ones), T(a_changed_file_ends_what_is_remembered),
       T(a_remembered_user_is_not_read_again))
