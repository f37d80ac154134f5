/* SPDX-License-Identifier: Apache-2.0 */
#include "image/newfile.h"

#include <errno.h>

#include "t_tree.h"

static int dir;

static void begin(void)
{
	t_tree_begin();
	t_sh("mkdir d");
	dir = t_open("d");
}

static void end(void)
{
	(void)close(dir);
	t_tree_end();
}

static void a_file_has_no_name_before_it_is_complete(void)
{
	struct newfile f;

	begin();
	CHECK(newfile_open(&f, dir, "f", false) == 0);
	CHECK(newfile_write(&f, STR("some")) == 0);
	if (!f.named)
		t_sh("test -z \"$(ls -A d)\"");
	newfile_drop(&f, dir, "f");
	t_sh("test -z \"$(ls -A d)\"");
	CHECK(newfile_open(&f, dir, "f", false) == 0);
	CHECK(newfile_write(&f, STR("so")) == 0 && newfile_write(&f, STR("me")) == 0);
	CHECK(newfile_end(&f) == 0 && newfile_commit(&f, dir, "f") == 0);
	(void)close(f.fd);
	t_sh("test some = $(cat d/f)");
	end();
}

static void a_named_one_is_removed_when_it_is_dropped(void)
{
	struct newfile f;

	begin();
	CHECK(newfile_open(&f, dir, "f", true) == 0);
	t_sh("test -e d/f");
	newfile_drop(&f, dir, "f");
	t_sh("test -z \"$(ls -A d)\"");
	end();
}

static void an_existing_name_is_reported_and_can_be_retried(void)
{
	struct newfile f;

	begin();
	t_sh("echo old > d/f");
	CHECK(newfile_open(&f, dir, "f", false) == 0);
	CHECK(newfile_write(&f, STR("new")) == 0 && newfile_end(&f) == 0);
	CHECK(newfile_commit(&f, dir, "f") == -EEXIST);
	t_sh("test old = $(cat d/f) && rm d/f");
	CHECK(newfile_commit(&f, dir, "f") == 0);
	(void)close(f.fd);
	t_sh("test new = $(cat d/f)");
	end();
}

/* In pieces of any size, with holes before, between and after. */
static void zeros_become_holes_and_the_content_is_the_same(void)
{
	static const size_t pieces[] = { 1 << 20, 100000, 4096, 4097, 511 };
	static char data[1 << 20];

	memset(data, 0, sizeof data);
	memset(data + 300000, 'x', 5000);
	memset(data + 600000, 'y', 1);
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		static char back[sizeof data + 1];
		struct newfile f;
		struct stat st;
		int fd;

		begin();
		CHECK(newfile_open(&f, dir, "f", false) == 0);
		for (size_t at = 0, n; at < sizeof data; at += n) {
			n = sizeof data - at < pieces[i] ? sizeof data - at : pieces[i];
			CHECK(newfile_write(&f, (struct str){ data + at, n }) == 0);
		}
		CHECK(newfile_end(&f) == 0 && newfile_commit(&f, dir, "f") == 0);
		CHECK(fstat(f.fd, &st) == 0 && st.st_size == sizeof data);
		(void)close(f.fd);
		fd = openat(dir, "f", O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0 && read(fd, back, sizeof back) == sizeof data);
		CHECK(memcmp(back, data, sizeof data) == 0);
		(void)close(fd);
		CHECK(st.st_blocks * 512 < 200000);
		end();
	}
}

T_MAIN(T(a_file_has_no_name_before_it_is_complete), T(a_named_one_is_removed_when_it_is_dropped),
       T(an_existing_name_is_reported_and_can_be_retried),
       T(zeros_become_holes_and_the_content_is_the_same))
