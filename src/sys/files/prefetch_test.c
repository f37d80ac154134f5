/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>

#include "sys/files/prefetch.h"
#include "sys/files/rmtree.h"
#include "t.h"

static char dir[32];
static int fd;

static void begin(void)
{
	(void)snprintf(dir, sizeof dir, "/tmp/prefetch-XXXXXX");
	CHECK(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && mkdirat(fd, "usr", 0755) == 0 && mkdirat(fd, "usr/bin", 0755) == 0);
}

static void end(void)
{
	CHECK(rmtree_at(AT_FDCWD, dir) == 0);
}

/* The number that the next descriptor gets. */
static int next(void)
{
	int n = dup(fd);

	CHECK(n >= 0 && close(n) == 0);
	return n;
}

/* Opening a pipe without a writer would block. */
static void paths_of_the_template_are_looked_up_but_not_opened(void)
{
	char outside[64];
	struct stat before, after;
	int n;

	begin();
	n = next();
	(void)snprintf(outside, sizeof outside, "%s/usr/bin/fifo", dir);
	CHECK(mkfifoat(fd, "usr/bin/fifo", 0644) == 0);
	CHECK(symlinkat("loop", fd, "usr/bin/loop") == 0);
	CHECK(symlinkat("../../../../../../../etc/passwd", fd, "usr/bin/up") == 0);
	CHECK(stat(outside, &before) == 0);
	prefetch_program(fd, STR("fifo"));
	prefetch_program(fd, STR("/usr/bin/fifo"));
	prefetch_program(fd, STR("loop"));
	prefetch_program(fd, STR("up"));
	prefetch_usual(fd);
	CHECK(stat(outside, &after) == 0 && before.st_atim.tv_nsec == after.st_atim.tv_nsec);
	CHECK(next() == n);
	end();
}

static void invalid_names_are_skipped(void)
{
	static char text[1 << 16];

	memset(text, 'x', sizeof text - 1);
	begin();
	prefetch_program(fd, STR(""));
	prefetch_program(fd, STR("../x"));
	prefetch_program(fd, str_of(text));
	text[0] = '/';
	prefetch_program(fd, str_of(text));
	end();
}

T_MAIN(T(paths_of_the_template_are_looked_up_but_not_opened), T(invalid_names_are_skipped))
