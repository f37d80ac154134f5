/* SPDX-License-Identifier: Apache-2.0 */
#include "init/mover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init/caller.h"
#include "t.h"
#include "wire/proto.h"

static void put_order(struct buf *b, int paths, uint64_t tid)
{
	CHECK(field_put_u64(b, TAG_PID, tid) == 0 && field_put_u64(b, TAG_FLAGS, 2) == 0);
	CHECK(field_put_u64(b, TAG_DIRFD, (uint32_t)AT_FDCWD) == 0);
	CHECK(field_put_u64(b, TAG_DIRFD, 7) == 0);
	for (int i = 0; i < paths; i++)
		CHECK(field_put_c(b, TAG_PATH, i ? "b" : "a/") == 0);
}

static int parse(const struct buf *b, struct move_order *o)
{
	return move_order_parse(o, (struct str){ b->data, b->len });
}

static void an_order_is_read(void)
{
	static struct move_order o;
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY);

	put_order(&b, 2, 12);
	CHECK(parse(&b, &o) == 0 && o.tid == 12 && o.flags == 2);
	CHECK(o.dirfd[0] == AT_FDCWD && o.dirfd[1] == 7);
	CHECK_STR(o.path[0], "a/");
	CHECK_STR(o.path[1], "b");
}

static void an_order_without_all_its_parts_is_refused(void)
{
	static struct move_order o;
	auto_done(buf_done) struct buf one = BUF_INIT(LIMIT_FRAME_BODY),
				       three = BUF_INIT(LIMIT_FRAME_BODY),
				       none = BUF_INIT(LIMIT_FRAME_BODY);

	put_order(&one, 1, 12);
	put_order(&three, 3, 12);
	put_order(&none, 2, 0);
	CHECK(parse(&one, &o) == -EBADMSG && parse(&three, &o) == -EBADMSG);
	CHECK(parse(&none, &o) == -EBADMSG);
}

static void the_rights_of_a_thread_are_those_for_files(void)
{
	struct caller c;
	const char *text = "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t20 30 \n"
			   "CapEff:\t00000000a80425fb\n";

	CHECK(caller_parse(text, &c) == 0 && c.uid == 4 && c.gid == 8 && c.ngroups == 2);
	CHECK(c.groups[0] == 20 && c.groups[1] == 30 && c.caps == 0xa80425fb);
	CHECK(caller_parse("Name:\tx\nUid:\t1\t2\nGid:\t1\t1\t1\t1\n", &c) == -EBADMSG);
	CHECK(caller_parse("", &c) == -EBADMSG);
}

static void our_own_rights_come_back(void)
{
	struct caller c;

	CHECK(caller_open(getpid(), &c) == 0 && c.uid == geteuid());
	c.caps = 0;
	CHECK(caller_become(&c) == 0);
	/* Without root nobody may change its root, not even to the same one. */
	CHECK(caller_leave(&c) == (geteuid() == 0 ? 0 : -EPERM));
	CHECK(caller_open(getpid(), &c) == 0 && (geteuid() != 0 || c.caps != 0));
	(void)caller_leave(&c);
}

static void a_stage_of_somebody_else_is_refused(void)
{
	char dir[] = "/tmp/mover_test.XXXXXX";
	auto_close int parent = FD_NONE, stage = FD_NONE;

	CHECK(mkdtemp(dir));
	parent = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(parent >= 0 && mkdirat(parent, "s", 0700) == 0);
	stage = mover_open_stage(parent, "s");
	CHECK(stage >= 0 && fchmod(stage, 0710) == 0);
	CHECK(mover_open_stage(parent, "s") == -EBUSY);
	CHECK(fchmod(stage, 0700) == 0);
	if (geteuid() == 0) {
		CHECK(fchown(stage, 1000, 1000) == 0);
		CHECK(mover_open_stage(parent, "s") == -EBUSY);
	}
	CHECK(unlinkat(parent, "s", AT_REMOVEDIR) == 0 && symlinkat("/tmp", parent, "s") == 0);
	CHECK(mover_open_stage(parent, "s") == -ENOTDIR);
	CHECK(unlinkat(parent, "s", 0) == 0 && rmdir(dir) == 0);
}

T_MAIN(T(an_order_is_read), T(an_order_without_all_its_parts_is_refused),
       T(the_rights_of_a_thread_are_those_for_files), T(our_own_rights_come_back),
       T(a_stage_of_somebody_else_is_refused))
