/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_accounts.h"

#include <stdint.h>

#include "t.h"

static struct host_accounts make(const char *passwd, const char *group)
{
	struct host_accounts a;
	struct err e;

	CHECK(host_accounts_make(str_of(passwd), str_of(group), "/bin/bash", &a, &e) == 0);
	return a;
}

static void system_accounts_stay_and_people_go(void)
{
	auto_done(host_accounts_done) struct host_accounts a =
		make("root:$6$hash:0:0:root:/root:/bin/bash\n"
		     "daemon:x:1:1::/:/usr/sbin/nologin\n"
		     "alice:x:1000:1000:Alice:/home/alice:/bin/zsh\n"
		     "edge:x:999:999::/:/bin/false\n"
		     "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
		     "root:x:0:\n"
		     "adm:!secret:4:alice,daemon,root\n"
		     "alice:x:1000:\n"
		     "shadow:x:42:alice\n");

	CHECK_STR(a.passwd.data, "root:x:0:0:root:/root:/bin/bash\n"
				 "daemon:x:1:1::/:/usr/sbin/nologin\n"
				 "edge:x:999:999::/:/bin/false\n"
				 "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
				 "user:x:1000:1000:Sandbox user:/home/user:/bin/bash\n");
	CHECK_STR(a.group.data, "root:x:0:\nadm:x:4:daemon,root\nshadow:x:42:\nuser:x:1000:\n");
	CHECK_STR(a.gshadow.data, "root:*::\nadm:*::daemon,root\nshadow:*::\nuser:*::\n");
	CHECK(strstr(a.shadow.data, "root:*:") == a.shadow.data);
	CHECK(!strstr(a.shadow.data, "hash") && !strstr(a.shadow.data, "alice"));
	CHECK(a.shadow_gid == 42);
}

static void lines_that_are_not_well_formed_are_dropped(void)
{
	auto_done(host_accounts_done) struct host_accounts a =
		make("\n:\n::::::\nnocolons\n+::::::\n+@netgroup::::::\n"
		     "neg:x:-1:0::/:/x\n"
		     "hex:x:0x1:0::/:/x\n"
		     "wrap:x:4294967296:0::/:/x\n"
		     "all:x:4294967295:0::/:/x\n"
		     "long:x:00000000001:0::/:/x\n"
		     "few:x:1:1::/\n"
		     "many:x:1:1::/:/x:y\n"
		     "bad name:x:1:1::/:/x\n"
		     "tab:x:1:1:a\tb:/:/x\n"
		     "-dash:x:1:1::/:/x\n"
		     "user:x:7:7::/:/x\n"
		     "twice:x:8:8::/:/x\n"
		     "twice:x:0:0::/:/x\n"
		     "last:x:9:9::/:/x",
		     "x\nx:y\nx:y:z\nx:y:-1:\nok:x:5:,,last,nobody-such,\nuser:x:6:\n");

	CHECK_STR(a.passwd.data, "twice:x:8:8::/:/x\nlast:x:9:9::/:/x\n"
				 "root:x:0:0:root:/root:/bin/sh\n"
				 "user:x:1000:1000:Sandbox user:/home/user:/bin/bash\n");
	CHECK_STR(a.group.data, "ok:x:5:last\nroot:x:0:\nuser:x:1000:\n");
}

static void huge_and_many_lines_are_harmless(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1 << 20);
	auto_done(buf_done) struct buf line = BUF_INIT(1 << 20);
	struct host_accounts a;
	struct err e;
	int users = 0;

	CHECK(buf_add_c(&line, "huge:x:1:1:") == 0);
	for (int i = 0; i < 100000; i++)
		CHECK(buf_add_c(&line, "A") == 0);
	CHECK(buf_printf(&b, "%s:/:/x\n", line.data) == 0);
	for (int i = 0; i < 5000; i++)
		CHECK(buf_printf(&b, "u%d:x:%d:1::/:/x\n", i, i % 1000) == 0);
	CHECK(host_accounts_make(buf_str(&b), buf_str(&line), "/bin/sh", &a, &e) == 0);
	CHECK(!strstr(a.passwd.data, "huge"));
	for (const char *p = a.passwd.data; (p = strchr(p, '\n')); p++)
		users++;
	CHECK(users == 1025);
	CHECK(strstr(a.passwd.data, "\nuser:x:1000:"));
	host_accounts_done(&a);
}

static void bytes_that_are_not_text_are_harmless(void)
{
	static const char raw[] =
		"a\0b:x:1:1::/:/x\n\xff\xfe:x:1:1::/:/x\nok:x:1:1:\xc3\xa9:/:/x\n";
	struct host_accounts a;
	struct err e;

	CHECK(host_accounts_make((struct str){ raw, sizeof raw - 1 }, STR_NONE, "/bin/sh", &a,
				 &e) == 0);
	CHECK(strstr(a.passwd.data, "ok:x:1:1:\xc3\xa9:/:/x\nroot:") == a.passwd.data);
	host_accounts_done(&a);
}

T_MAIN(T(system_accounts_stay_and_people_go), T(lines_that_are_not_well_formed_are_dropped),
       T(huge_and_many_lines_are_harmless), T(bytes_that_are_not_text_are_harmless))
