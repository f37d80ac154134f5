/* SPDX-License-Identifier: Apache-2.0 */
/* Which operations produce which events. */
#include <sys/xattr.h>

#include "warden/changes/changes_fixture.h"
#include "warden/changes/changes_tree.h"

static void begin(void)
{
	fx_overlay(true);
	FX_WALK("");
}

static void what_is_there_at_first_is_not_reported(void)
{
	fx_enter(true);
	fx_put("upper/old", "x");
	fx_start("/", false);
	FX_WALK("");
	fx_done();
}

static void a_new_file_is_created_once(void)
{
	begin();
	fx_put("new", "abc");
	FX_WALK("create /new file");
	CHECK(fx.last_size == 3);
	CHECK(fx.last_mode == 0644);
	CHECK(fx.last_parent == 101);
	FX_WALK("");
	fx_done();
}

static void a_new_directory_and_all_in_it_is_created(void)
{
	begin();
	CHECK(mkdir("d", 0700) == 0 && mkdir("d/e", 0755) == 0);
	fx_put("d/e/f", "");
	FX_WALK("create /d dir\ncreate /d/e dir\ncreate /d/e/f file");
	CHECK(fx.last_size == 0);
	FX_WALK("");
	fx_done();
}

static void a_file_in_a_lower_directory_says_nothing_of_the_directory(void)
{
	begin();
	fx_put("dir/sub/new", "x");
	FX_WALK("create /dir/sub/new file");
	fx_put("dir/new", "x");
	FX_WALK("create /dir/new file");
	fx_done();
}

static void writing_to_a_lower_file_is_a_change(void)
{
	begin();
	fx_put("dir/sub/three", "more");
	FX_WALK("change /dir/sub/three file");
	fx_put("dir/sub/three", "and more");
	FX_WALK("change /dir/sub/three file");
	CHECK(truncate("dir/sub/three", 1) == 0);
	FX_WALK("change /dir/sub/three file");
	CHECK(fx.last_size == 1);
	CHECK(truncate("conf", 0) == 0);
	FX_WALK("change /conf file");
	fx_done();
}

static void touch_is_a_change(void)
{
	begin();
	CHECK(utimensat(AT_FDCWD, "conf", NULL, 0) == 0);
	FX_WALK("change /conf file");
	fx_done();
}

static void opening_for_writing_is_no_change(void)
{
	int fd;

	begin();
	fd = open("dir/one", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && close(fd) == 0);
	CHECK(access("../upper/dir/one", F_OK) == 0);
	FX_WALK("");
	fx_put("dir/one", "x");
	FX_WALK("change /dir/one file");
	fx_done();
}

static void opening_a_lower_pipe_for_writing_is_no_change(void)
{
	int fd;

	begin();
	fd = open("pipe", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && close(fd) == 0);
	FX_WALK("");
	CHECK(chown("pipe", 0, 0) == 0);
	FX_WALK("change /pipe other touched");
	fx_done();
}

static void an_upper_file_rewritten_with_its_mtime_put_back_is_touched(void)
{
	struct stat a, b;

	begin();
	fx_put("new", "good");
	fx_put("conf", "more");
	fx_walk();
	CHECK(stat("new", &a) == 0);
	fx_rewrite("new", "evil");
	fx_rewrite("conf", "evil");
	CHECK(stat("new", &b) == 0 && a.st_size == b.st_size);
	CHECK(memcmp(&a.st_mtim, &b.st_mtim, sizeof a.st_mtim) == 0);
	FX_WALK("change /conf file touched\nchange /new file touched");
	FX_WALK("");
	fx_done();
}

static void a_lower_file_rewritten_with_its_mtime_put_back_is_a_change(void)
{
	struct stat a, b;

	begin();
	CHECK(stat("conf", &a) == 0);
	fx_rewrite("conf", "evil");
	fx_rewrite("dir/one", "2");
	CHECK(stat("conf", &b) == 0 && a.st_size == b.st_size);
	CHECK(memcmp(&a.st_mtim, &b.st_mtim, sizeof a.st_mtim) == 0);
	FX_WALK("change /conf file\nchange /dir/one file");
	fx_rewrite("conf", "conf");
	FX_WALK("change /conf file touched");
	fx_done();
}

static void a_rewrite_does_not_hide_behind_chmod(void)
{
	begin();
	fx_rewrite("conf", "evil");
	CHECK(chmod("conf", 0600) == 0);
	FX_WALK("change /conf file");
	fx_done();
}

static void a_rewrite_does_not_hide_in_a_directory_that_moves(void)
{
	begin();
	CHECK(mkdir("d", 0755) == 0);
	fx_put("d/f", "good");
	fx_put("d/g", "good");
	fx_walk();
	fx_rewrite("d/f", "evil");
	CHECK(rename("d", "e") == 0);
	FX_WALK("rename /d -> /e dir\nchange /e/f file touched");
	fx_done();
}

static void a_rename_does_not_touch(void)
{
	begin();
	fx_put("a", "x");
	fx_walk();
	fx_wait_past(clock_real_ns());
	CHECK(rename("a", "b") == 0);
	FX_WALK("rename /a -> /b file");
	fx_wait_past(clock_real_ns());
	CHECK(rename("b", "a") == 0 && rename("a", "b") == 0);
	FX_WALK("change /b file touched");
	fx_done();
}

static void a_lower_link_is_compared_by_where_it_points(void)
{
	fx_enter(true);
	CHECK(symlink("good", "lower/a") == 0 && symlink("good", "lower/b") == 0);
	fx_age("lower/a", 1);
	fx_age("lower/b", 1);
	fx_mount(true);
	CHECK(unlink("a") == 0 && symlink("evil", "a") == 0);
	CHECK(unlink("b") == 0 && symlink("good", "b") == 0);
	fx_age("a", 1);
	fx_age("b", 1);
	FX_WALK("change /a symlink");
	fx_done();
}

static void an_owner_or_an_xattr_touches_an_upper_file(void)
{
	begin();
	fx_put("a", "x");
	fx_put("b", "x");
	fx_walk();
	fx_wait_past(clock_real_ns());
	CHECK(chown("a", 0, 0) == 0);
	CHECK(setxattr("../upper/b", "user.x", "y", 1, 0) == 0);
	FX_WALK("change /a file touched\nchange /b file touched");
	fx_done();
}

static void make_sparse(const char *path, off_t size)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && ftruncate(fd, size) == 0);
}

static void open_for_writing(const char *path)
{
	auto_close int fd = open(path, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
}

static void a_copy_that_is_too_large_to_compare_is_touched(void)
{
	fx_enter(true);
	make_sparse("lower/large", CHANGES_COMPARE_FILE);
	make_sparse("lower/larger", CHANGES_COMPARE_FILE + 1);
	fx_mount(true);
	open_for_writing("large");
	open_for_writing("larger");
	FX_WALK("change /larger file touched");
	FX_WALK("");
	fx_done();
}

static void the_last_byte_of_a_copy_is_compared(void)
{
	int fd;

	fx_enter(true);
	make_sparse("lower/large", CHANGES_COMPARE_FILE);
	fx_age("lower/large", 1);
	fx_mount(true);
	fd = open("large", O_WRONLY | O_CLOEXEC);
	CHECK(pwrite(fd, "x", 1, CHANGES_COMPARE_FILE - 1) == 1 && close(fd) == 0);
	fx_age("large", 1);
	FX_WALK("change /large file");
	fx_done();
}

static void a_walk_compares_only_so_much(void)
{
	enum { FIT = CHANGES_COMPARE_WALK / CHANGES_COMPARE_FILE };
	char name[32];

	fx_enter(true);
	for (int i = 0; i <= FIT; i++) {
		(void)snprintf(name, sizeof name, "lower/%03d", i);
		make_sparse(name, CHANGES_COMPARE_FILE);
	}
	fx_mount(true);
	for (int i = 0; i <= FIT; i++) {
		(void)snprintf(name, sizeof name, "%03d", i);
		open_for_writing(name);
	}
	FX_WALK("change /064 file touched");
	open_for_writing("000");
	FX_WALK("");
	fx_done();
}

static void chmod_is_a_change_of_mode(void)
{
	begin();
	CHECK(chmod("conf", 0600) == 0);
	CHECK(chmod("dir", 0700) == 0);
	FX_WALK("change /conf file mode\nchange /dir dir mode");
	CHECK(fx.last_mode == 0700);
	CHECK(chmod("conf", 0644) == 0 && chmod("dir", 0755) == 0);
	FX_WALK("change /conf file mode\nchange /dir dir mode");
	fx_done();
}

static void unlinking_a_lower_file_is_a_delete(void)
{
	begin();
	CHECK(unlink("conf") == 0 && unlink("dir/one") == 0 && unlink("link") == 0);
	FX_WALK("delete /conf file\ndelete /dir/one file\ndelete /link symlink");
	FX_WALK("");
	fx_put("conf", "again");
	FX_WALK("create /conf file");
	fx_done();
}

static void unlinking_a_changed_lower_file_is_a_delete(void)
{
	begin();
	fx_put("conf", "x");
	fx_walk();
	CHECK(unlink("conf") == 0);
	FX_WALK("delete /conf file");
	fx_done();
}

static void unlinking_an_upper_file_is_a_delete(void)
{
	begin();
	fx_put("new", "x");
	fx_put("passing", "x");
	CHECK(unlink("passing") == 0);
	FX_WALK("create /new file");
	CHECK(unlink("new") == 0);
	FX_WALK("delete /new file");
	FX_WALK("");
	fx_done();
}

static void an_upper_file_is_renamed(void)
{
	begin();
	fx_put("new", "x");
	fx_walk();
	CHECK(rename("new", "dir/newer") == 0);
	FX_WALK("rename /new -> /dir/newer file");
	CHECK(rename("dir/newer", "a") == 0);
	fx_put("a", "more");
	FX_WALK("rename /dir/newer -> /a file\nchange /a file");
	fx_done();
}

static void a_lower_file_is_renamed(void)
{
	begin();
	CHECK(rename("conf", "dir/conf2") == 0);
	CHECK(rename("link", "l") == 0);
	FX_WALK("rename /conf -> /dir/conf2 file\nrename /link -> /l symlink");
	FX_WALK("");
	fx_done();
}

static void a_rename_onto_a_file_replaces_it(void)
{
	begin();
	fx_put("f", "old");
	fx_walk();
	fx_put("f.tmp", "new");
	CHECK(rename("f.tmp", "f") == 0);
	FX_WALK("change /f file");
	fx_put("g", "x");
	fx_walk();
	CHECK(rename("g", "f") == 0);
	FX_WALK("rename /g -> /f file");
	fx_put("t", "new");
	CHECK(rename("t", "conf") == 0);
	FX_WALK("change /conf file");
	CHECK(rename("other", "empty") == 0);
	FX_WALK("rename /other -> /empty file");
	fx_done();
}

static void a_name_that_moves_on_is_followed_and_made_anew(void)
{
	begin();
	fx_put("log", "1");
	fx_walk();
	CHECK(rename("log", "log.1") == 0);
	fx_put("log", "fresh");
	FX_WALK("create /log file\nrename /log -> /log.1 file");
	fx_done();
}

static void a_moved_directory_is_one_rename(void)
{
	begin();
	CHECK(mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0);
	fx_put("a/b/c", "x");
	fx_put("a/d", "x");
	fx_put("a/gone", "x");
	CHECK(link("a/d", "a/hard") == 0);
	fx_walk();
	CHECK(rename("a", "dir/z") == 0);
	fx_put("dir/z/b/c", "more");
	fx_put("dir/z/e", "new");
	CHECK(unlink("dir/z/gone") == 0);
	FX_WALK("delete /a/gone file\nrename /a -> /dir/z dir\nchange /dir/z/b/c file\n"
		"create /dir/z/e file");
	FX_WALK("");
	fx_done();
}

static void removing_a_lower_directory_is_one_delete(void)
{
	begin();
	CHECK(unlink("dir/one") == 0 && unlink("dir/two") == 0);
	CHECK(unlink("dir/sub/three") == 0 && rmdir("dir/sub") == 0 && rmdir("dir") == 0);
	FX_WALK("delete /dir dir");
	CHECK(mkdir("dir", 0755) == 0);
	fx_put("dir/one", "x");
	FX_WALK("create /dir dir\ncreate /dir/one file");
	fx_done();
}

static void making_a_lower_directory_anew_is_delete_and_create(void)
{
	begin();
	CHECK(unlink("dir/sub/three") == 0 && rmdir("dir/sub") == 0);
	CHECK(mkdir("dir/sub", 0755) == 0);
	fx_put("dir/sub/three", "x");
	FX_WALK("delete /dir/sub dir\ncreate /dir/sub dir\ncreate /dir/sub/three file");
	fx_done();
}

static void removing_an_upper_tree_deletes_all_of_it(void)
{
	begin();
	CHECK(mkdir("a", 0755) == 0 && mkdir("a/b", 0755) == 0);
	fx_put("a/b/c", "x");
	fx_walk();
	CHECK(unlink("a/b/c") == 0 && rmdir("a/b") == 0 && rmdir("a") == 0);
	FX_WALK("delete /a dir\ndelete /a/b dir\ndelete /a/b/c file");
	fx_done();
}

static void a_file_that_becomes_a_directory_is_delete_and_create(void)
{
	begin();
	CHECK(unlink("conf") == 0 && mkdir("conf", 0755) == 0);
	fx_put("conf/x", "x");
	fx_put("up", "x");
	FX_WALK("delete /conf file\ncreate /conf dir\ncreate /conf/x file\ncreate /up file");
	CHECK(unlink("up") == 0 && mkdir("up", 0755) == 0);
	CHECK(unlink("conf/x") == 0 && rmdir("conf") == 0);
	fx_put("conf", "x");
	FX_WALK("delete /conf dir\ncreate /conf file\ndelete /conf/x file\n"
		"delete /up file\ncreate /up dir");
	fx_done();
}

static void links_are_created_and_touch_what_they_link(void)
{
	begin();
	CHECK(symlink("/etc/passwd", "sym") == 0);
	fx_put("a", "x");
	fx_walk();
	fx_wait_past(clock_real_ns());
	CHECK(link("a", "hard") == 0);
	FX_WALK("change /a file touched\ncreate /hard file");
	fx_wait_past(clock_real_ns());
	CHECK(unlink("a") == 0);
	FX_WALK("delete /a file\nchange /hard file touched");
	CHECK(mkfifo("fifo", 0600) == 0);
	FX_WALK("create /fifo other");
	fx_done();
}

static void links_are_not_followed(void)
{
	fx_enter(true);
	CHECK(mkdir("secret", 0755) == 0 && mkdir("secret/c", 0755) == 0);
	fx_put("secret/c/file", "x");
	CHECK(mkdir("lower/a", 0755) == 0 && symlink("../secret", "lower/b") == 0);
	fx_age("lower/b", 1);
	CHECK(mkdir("upper/b", 0755) == 0 && mkdir("upper/b/c", 0755) == 0);
	fx_start("/", true);
	CHECK(symlink("../secret", "upper/a") == 0);
	fx_put("upper/b/c/file", "yy");
	FX_WALK("delete /a dir\ncreate /a symlink\ncreate /b/c/file file");
	fx_done();
}

static void names_of_any_bytes_are_kept_apart(void)
{
	begin();
	fx_put("a\nb", "x");
	fx_put("a\xff", "x");
	fx_put("aaaaaaaab", "x");
	fx_put("aaaaaaaa", "x");
	CHECK(mkdir("a", 0755) == 0);
	fx_put("a/b", "x");
	FX_WALK("create /a dir\ncreate /a/b file\ncreate /a\nb file\ncreate /aaaaaaaa file\n"
		"create /aaaaaaaab file\ncreate /a\xff file");
	CHECK(unlink("aaaaaaaa") == 0);
	fx_put("a-", "x");
	FX_WALK("create /a- file\ndelete /aaaaaaaa file");
	fx_done();
}

static void whiteouts_by_xattr_are_deletes(void)
{
	fx_enter(true);
	fx_lower();
	CHECK(mkdir("upper/dir", 0755) == 0);
	CHECK(setxattr("upper/dir", "user.overlay.opaque", "x", 1, 0) == 0);
	fx_start("/", true);
	fx_put("upper/dir/one", "");
	fx_put("upper/dir/two", "");
	CHECK(setxattr("upper/dir/one", "user.overlay.whiteout", "y", 1, 0) == 0);
	FX_WALK("delete /dir/one file\nchange /dir/two file");
	fx_done();
}

static void mounts_of_the_host_are_understood(void)
{
	if (geteuid() != 0)
		return;
	fx_overlay(false);
	FX_WALK("");
	CHECK(unlink("dir/sub/three") == 0 && rmdir("dir/sub") == 0);
	CHECK(mkdir("dir/sub", 0755) == 0 && unlink("conf") == 0);
	fx_put("dir/sub/three", "x");
	FX_WALK("delete /conf file\ndelete /dir/sub dir\ncreate /dir/sub dir\n"
		"create /dir/sub/three file");
	fx_done();
}

/* A sandbox can write such marks. */
static void marks_of_the_other_kind_of_mount_mean_nothing(void)
{
	if (geteuid() != 0)
		return;
	fx_overlay(false);
	FX_WALK("");
	CHECK(mkdir("new", 0755) == 0);
	if (setxattr("new", "user.overlay.opaque", "x", 1, 0) < 0)
		t_skip("before Linux 6.6 a tmpfs has no extended attributes for users");
	fx_put("new/one", "");
	CHECK(setxattr("new/one", "user.overlay.whiteout", "y", 1, 0) == 0);
	fx_put("dir/three", "3");
	CHECK(setxattr("dir", "user.overlay.opaque", "y", 1, 0) == 0);
	FX_WALK("create /dir/three file\ncreate /new dir\ncreate /new/one file");
	fx_done();
}

static void a_directory_of_a_deeper_layer_is_not_created(void)
{
	fx_enter(true);
	fx_lower();
	CHECK(mkdir("top", 0755) == 0);
	CHECK(mount("overlay", "in", "overlay", 0,
		    "lowerdir=top:lower,upperdir=upper,workdir=work,userxattr") == 0);
	CHECK(rename("lower", "deep") == 0 && rename("top", "lower") == 0);
	fx_start("/", true);
	fx_put("in/dir/new", "x");
	FX_WALK("create /dir/new file");
	fx_done();
}

static void each_upper_has_its_own_place(void)
{
	fx_enter(true);
	fx_start("/", false);
	CHECK(rename("upper", "first") == 0 && mkdir("upper", 0755) == 0);
	fx_start("/project/dir", false);
	fx_put("first/a", "x");
	fx_put("upper/a", "x");
	FX_WALK("create /a file\ncreate /project/dir/a file");
	CHECK(rename("first/a", "upper/b") == 0);
	FX_WALK("delete /a file\ncreate /project/dir/b file");
	fx_done();
}

T_MAIN(T(what_is_there_at_first_is_not_reported), T(a_new_file_is_created_once),
       T(a_new_directory_and_all_in_it_is_created),
       T(a_file_in_a_lower_directory_says_nothing_of_the_directory),
       T(writing_to_a_lower_file_is_a_change), T(touch_is_a_change),
       T(opening_for_writing_is_no_change), T(opening_a_lower_pipe_for_writing_is_no_change),
       T(an_upper_file_rewritten_with_its_mtime_put_back_is_touched),
       T(a_lower_file_rewritten_with_its_mtime_put_back_is_a_change),
       T(a_rewrite_does_not_hide_behind_chmod),
       T(a_rewrite_does_not_hide_in_a_directory_that_moves), T(a_rename_does_not_touch),
       T(a_lower_link_is_compared_by_where_it_points),
       T(an_owner_or_an_xattr_touches_an_upper_file),
       T(a_copy_that_is_too_large_to_compare_is_touched), T(the_last_byte_of_a_copy_is_compared),
       T(a_walk_compares_only_so_much), T(chmod_is_a_change_of_mode),
       T(unlinking_a_lower_file_is_a_delete), T(unlinking_a_changed_lower_file_is_a_delete),
       T(unlinking_an_upper_file_is_a_delete), T(an_upper_file_is_renamed),
       T(a_lower_file_is_renamed), T(a_rename_onto_a_file_replaces_it),
       T(a_name_that_moves_on_is_followed_and_made_anew), T(a_moved_directory_is_one_rename),
       T(removing_a_lower_directory_is_one_delete),
       T(making_a_lower_directory_anew_is_delete_and_create),
       T(removing_an_upper_tree_deletes_all_of_it),
       T(a_file_that_becomes_a_directory_is_delete_and_create),
       T(links_are_created_and_touch_what_they_link), T(links_are_not_followed),
       T(names_of_any_bytes_are_kept_apart), T(whiteouts_by_xattr_are_deletes),
       T(mounts_of_the_host_are_understood), T(marks_of_the_other_kind_of_mount_mean_nothing),
       T(a_directory_of_a_deeper_layer_is_not_created), T(each_upper_has_its_own_place))
