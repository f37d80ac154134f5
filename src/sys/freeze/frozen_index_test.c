/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/freeze/frozen_index.h"

#include <errno.h>
#include <fcntl.h>

#include "base/io.h"
#include "t.h"

static int here;

static void go_to_new_dir(void)
{
	char name[] = "/tmp/frozen-index-XXXXXX";

	CHECK(mkdtemp(name) && chdir(name) == 0);
	here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void an_index_that_was_written_reads_back_the_same(void)
{
	auto_done(frozen_index_done) struct frozen_index a = FROZEN_INDEX_INIT;
	auto_done(frozen_index_done) struct frozen_index b = FROZEN_INDEX_INIT;
	struct frozen_key k = {
		.dev = 1, .ino = 2, .size = 3, .mtime_ns = 4, .ctime_ns = 5, .nlink = 1
	};
	char path[32];

	go_to_new_dir();
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(path, sizeof path, "dir/%d", i);
		k.ino = (uint64_t)i;
		CHECK(frozen_index_add(&a, path, &k) == 0);
	}
	CHECK(frozen_index_write(&a, here, "x") == 0);
	CHECK(frozen_index_read(&b, here, "x") == 0 && b.n == 1000);
	k.ino = 777;
	CHECK(frozen_index_has(&b, "dir/777", &k));
	CHECK(!frozen_index_has(&b, "dir/778", &k) && !frozen_index_has(&b, "dir/1000", &k));
	k.ctime_ns = 6;
	CHECK(!frozen_index_has(&b, "dir/777", &k));
}

static void what_has_no_names_is_never_trusted(void)
{
	auto_done(frozen_index_done) struct frozen_index a = FROZEN_INDEX_INIT;
	auto_done(frozen_index_done) struct frozen_index b = FROZEN_INDEX_INIT;
	struct frozen_key k = { .ino = 2 };

	go_to_new_dir();
	CHECK(frozen_index_add(&a, "f", &k) == 0 && frozen_index_write(&a, here, "x") == 0);
	CHECK(frozen_index_read(&b, here, "x") == 0);
	CHECK(frozen_index_find(&b, "f", &k) && !frozen_index_has(&b, "f", &k));
}

static void a_damaged_index_is_refused(void)
{
	auto_done(frozen_index_done) struct frozen_index a = FROZEN_INDEX_INIT;
	struct frozen_key k = { .ino = 2 };
	char bytes[512];
	ssize_t n;
	int fd;

	go_to_new_dir();
	CHECK(frozen_index_add(&a, "some/path", &k) == 0 && frozen_index_write(&a, here, "x") == 0);
	fd = open("x", O_RDONLY | O_CLOEXEC);
	n = read(fd, bytes, sizeof bytes);
	CHECK(n > 0 && close(fd) == 0);
	for (ssize_t cut = 0; cut < n; cut++) {
		auto_done(frozen_index_done) struct frozen_index b = FROZEN_INDEX_INIT;

		if (cut == 8) /* an index of nothing */
			continue;
		fd = open("cut", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		CHECK(io_write_all(fd, bytes, (size_t)cut) == 0 && close(fd) == 0);
		CHECK(frozen_index_read(&b, here, "cut") == -EBADMSG);
	}
}

T_MAIN(T(an_index_that_was_written_reads_back_the_same), T(what_has_no_names_is_never_trusted),
       T(a_damaged_index_is_refused))
