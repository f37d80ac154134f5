/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "sys/files/rmtree.h"
#include "t.h"
#include "warden/limit/disk_usage.h"

static char dir[32];
static int fd;

static void begin(void)
{
	(void)snprintf(dir, sizeof dir, "/tmp/disk-usage-XXXXXX");
	CHECK(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
}

static void end(void)
{
	CHECK(rmtree_at(AT_FDCWD, dir) == 0);
}

static void put(const char *name, size_t kib)
{
	static const char block[1024] = "x";
	int f = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	CHECK(f >= 0);
	while (kib--)
		CHECK(write(f, block, sizeof block) == (ssize_t)sizeof block);
	CHECK(fsync(f) == 0 && close(f) == 0); /* file systems allocate blocks late */
}

static uint64_t kib(void)
{
	return disk_usage(fd, UINT64_MAX - 1) / 1024;
}

static void an_empty_file_takes_one_block(void)
{
	begin();
	CHECK(kib() == 0);
	put("a", 0);
	put("b", 0);
	CHECK(kib() == 8);
	end();
}

static void what_is_below_counts_and_links_are_not_followed(void)
{
	uint64_t flat;

	begin();
	CHECK(mkdirat(fd, "d", 0755) == 0);
	put("d/a", 256);
	flat = kib();
	CHECK(flat >= 256 && flat < 300);
	CHECK(symlinkat("/usr", fd, "usr") == 0 && symlinkat("..", fd, "d/up") == 0);
	CHECK(kib() == flat + 8);
	end();
}

static void a_file_with_two_names_counts_once(void)
{
	uint64_t one;

	begin();
	put("a", 256);
	one = kib();
	CHECK(linkat(fd, "a", fd, "b", 0) == 0);
	CHECK(kib() == one);
	end();
}

static void a_hole_takes_nothing(void)
{
	int f;

	begin();
	put("a", 4);
	f = openat(fd, "a", O_WRONLY | O_CLOEXEC);
	CHECK(f >= 0 && ftruncate(f, 1 << 30) == 0 && close(f) == 0);
	CHECK(kib() < 64);
	end();
}

static void counting_ends_above_the_limit(void)
{
	begin();
	put("a", 0);
	put("b", 0);
	put("c", 0);
	CHECK(disk_usage(fd, 4096) == 8192);
	end();
}

static void what_is_too_deep_to_count_is_too_much(void)
{
	int at;

	begin();
	at = dup(fd);
	for (int i = 0; i <= LIMIT_TREE_DEPTH; i++) {
		int next;

		CHECK(mkdirat(at, "d", 0755) == 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(next >= 0 && close(at) == 0);
		at = next;
	}
	CHECK(disk_usage(fd, UINT64_MAX - 1) == UINT64_MAX);
	end();
}

T_MAIN(T(an_empty_file_takes_one_block), T(what_is_below_counts_and_links_are_not_followed),
       T(a_file_with_two_names_counts_once), T(a_hole_takes_nothing),
       T(counting_ends_above_the_limit), T(what_is_too_deep_to_count_is_too_much))
