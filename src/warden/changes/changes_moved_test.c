/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes_moved.h"

#include "warden/changes/changes_fixture.h"

static void begin(void)
{
	fx_overlay(true);
}

static void a_directory_of_the_lower_that_moves_is_one_event(void)
{
	begin();
	fx_move_dir("dir", "new");
	FX_WALK("rename /dir -> /new dir");
	FX_WALK("");
	CHECK(rename("new", "newer") == 0);
	FX_WALK("rename /new -> /newer dir");
	fx_done();
}

static void what_is_changed_in_it_is_an_event_of_its_own(void)
{
	begin();
	fx_move_dir("dir", "new");
	fx_put("new/one", "other");
	fx_put("new/more", "x");
	CHECK(unlink("new/sub/three") == 0);
	FX_WALK("rename /dir -> /new dir\ncreate /new/more file\nchange /new/one file\n"
		"delete /dir/sub/three file");
	fx_done();
}

static void what_leaves_it_is_followed(void)
{
	begin();
	fx_move_dir("dir", "new");
	CHECK(rename("new/one", "elsewhere") == 0);
	FX_WALK("rename /dir/one -> /elsewhere file\nrename /dir -> /new dir");
	fx_done();
}

static void what_the_upper_had_of_it_moves_along(void)
{
	begin();
	fx_put("dir/sub/mine", "x");
	fx_put("dir/two", "changed");
	fx_walk();
	fx_move_dir("dir", "new");
	/* The rename of each file changes its ctime, which may hide a change. */
	FX_WALK("rename /dir -> /new dir\nchange /new/sub/mine file touched\n"
		"change /new/two file touched");
	fx_done();
}

static void content_behind_size_and_mtime_is_found(void)
{
	begin();
	fx_move_dir("dir", "new");
	fx_rewrite("new/two", "xx");
	CHECK(chmod("new/one", 0600) == 0);
	FX_WALK("rename /dir -> /new dir\nchange /new/one file mode\nchange /new/two file");
	fx_done();
}

static void a_copy_of_a_removed_directory_is_no_rename(void)
{
	begin();
	CHECK(mkdir("new", 0755) == 0);
	fx_put("new/one", "not the same");
	fx_put("new/two", "nor this");
	CHECK(unlink("dir/sub/three") == 0 && rmdir("dir/sub") == 0);
	CHECK(unlink("dir/one") == 0 && unlink("dir/two") == 0 && rmdir("dir") == 0);
	FX_WALK("delete /dir dir\ncreate /new dir\ncreate /new/one file\ncreate /new/two file");
	fx_done();
}

static void an_empty_directory_is_known_by_its_own_times(void)
{
	fx_enter(true);
	CHECK(mkdir("lower/e", 0750) == 0 && mkdir("lower/f", 0750) == 0);
	fx_age("lower/e", 5);
	fx_age("lower/f", 6);
	fx_mount(true);
	fx_move_dir("e", "g");
	CHECK(rmdir("f") == 0 && mkdir("h", 0750) == 0);
	FX_WALK("delete /f dir\nrename /e -> /g dir\ncreate /h dir");
	fx_done();
}

T_MAIN(T(a_directory_of_the_lower_that_moves_is_one_event),
       T(what_is_changed_in_it_is_an_event_of_its_own), T(what_leaves_it_is_followed),
       T(what_the_upper_had_of_it_moves_along), T(content_behind_size_and_mtime_is_found),
       T(a_copy_of_a_removed_directory_is_no_rename),
       T(an_empty_directory_is_known_by_its_own_times))
