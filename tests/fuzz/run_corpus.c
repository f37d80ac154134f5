/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one fuzzer over the files of a directory: TAP, one process per file, so that a crash
 * names its input. Each file is given whole and cut at a few places.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "fuzz.h"

enum { LIMIT_INPUT = 4 << 20, CUTS = 16 };

static int run_file(int dirfd, const char *name)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_INPUT);
	int r = io_read_file(dirfd, name, &b);

	if (r < 0) {
		printf("# %s: %s\n", name, strerror(-r));
		return 1;
	}
	for (size_t i = 0; i <= CUTS; i++)
		(void)LLVMFuzzerTestOneInput((const uint8_t *)(b.data ? b.data : ""),
					     b.len * i / CUTS);
	return 0;
}

/* Wait status of a process that runs the file. */
static int run_apart(int dirfd, const char *name)
{
	int st = 1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)alarm(10);
		exit(run_file(dirfd, name));
	}
	if (pid < 0 || waitpid(pid, &st, 0) < 0)
		return 1;
	return st;
}

int main(int argc, char **argv)
{
	static DIR *dir; /* reachable at the children's exit: no leak */
	struct dirent *entry;
	int n = 0, failed = 0;

	dir = argc == 2 ? opendir(argv[1]) : NULL;
	if (!dir) {
		(void)fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(dir))) {
		int st;

		if (entry->d_name[0] == '.')
			continue;
		st = run_apart(dirfd(dir), entry->d_name);
		failed += st != 0;
		printf("%sok %d - %s\n", st ? "not " : "", ++n, entry->d_name);
	}
	(void)closedir(dir);
	printf("1..%d\n", n);
	return failed || n == 0;
}
