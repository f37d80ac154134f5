/* SPDX-License-Identifier: Apache-2.0 */
#include "init/list.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "t.h"
#include "wire/file_entry.h"

static char out_text[1 << 16], where[4096];

/* Run as init's child would; stdout is collected. Returns the exit status and the text's size. */
static int list(const char *path, const char *depth, size_t *ret_n)
{
	int saved = dup(1), errors = dup(2), fd = memfd_create("out", MFD_CLOEXEC), status;
	ssize_t n;

	fflush(stdout);
	CHECK(fd >= 0 && dup2(fd, 1) == 1 && dup2(fd, 2) == 2);
	status = list_run(path, depth);
	CHECK(dup2(saved, 1) == 1 && dup2(errors, 2) == 2);
	n = pread(fd, out_text, sizeof out_text, 0);
	CHECK(n >= 0);
	*ret_n = (size_t)n;
	close(fd);
	close(saved);
	close(errors);
	return status;
}

static void make_tree(void)
{
	t_scratch(where, sizeof where);
	CHECK(chdir(where) == 0);
	CHECK(mkdir("d", 0750) == 0 && mkdir("d/sub", 0755) == 0);
	close(open("d/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0640));
	CHECK(chmod("d/f", 02755) == 0);
	close(open("d/sub/g", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	CHECK(symlink("f", "d/to-f") == 0 && symlink("nowhere", "d/to-nothing") == 0);
}

static int count(const char *path, const char *depth)
{
	struct file_entry e;
	struct str rest = { out_text, 0 };
	int n = 0;

	CHECK(list(path, depth, &rest.n) == 0);
	while (file_entry_next(&rest, &e) == 1)
		n++;
	CHECK(rest.n == 0);
	return n;
}

static const char *in(const char *name)
{
	static char path[8192];

	(void)snprintf(path, sizeof path, "%s/%s", where, name);
	return path;
}

static void a_depth_bounds_a_list(void)
{
	make_tree();
	CHECK(count(in("d"), "0") == 1);
	CHECK(count(in("d"), "1") == 4);
	CHECK(count(in("d/"), "2") == 5);
}

static struct file_entry one(const char *path)
{
	struct file_entry e;
	struct str rest = { out_text, 0 };

	CHECK(list(path, "0", &rest.n) == 0 && file_entry_next(&rest, &e) == 1 && rest.n == 0);
	return e;
}

static void an_entry_is_as_the_file(void)
{
	struct file_entry e;

	make_tree();
	e = one(in("d/f"));
	CHECK(e.type == 'f' && e.target == 'f' && e.mode == 02755 && e.size == 0);
	CHECK(str_is(e.permissions, "-rwxr-sr-x") && str_is(e.path, in("d/f")));
	CHECK(e.mtime_ns > 1000000000ull * 1000000000ull);
	e = one(in("d"));
	CHECK(e.type == 'd' && str_is(e.permissions, "drwxr-x---"));
}

static void a_link_tells_where_it_leads(void)
{
	struct file_entry e;

	make_tree();
	e = one(in("d/to-f"));
	CHECK(e.type == 'l' && e.target == 'f' && e.mode == 02755 && str_is(e.link, in("d/f")));
	e = one(in("d/to-nothing"));
	CHECK(e.type == 'l' && e.target == 'N' && str_is(e.link, "nowhere"));
}

static void failures_have_their_status(void)
{
	size_t n;

	make_tree();
	CHECK(list(in("missing"), "0", &n) == LIST_MISSING && n > 0);
	CHECK(list(in("missing"), "1", &n) == LIST_MISSING);
	CHECK(list(in("d/f"), "1", &n) == LIST_WRONG_TYPE);
}

T_MAIN(T(a_depth_bounds_a_list), T(an_entry_is_as_the_file), T(a_link_tells_where_it_leads),
       T(failures_have_their_status))
