/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one fuzzer over the files of a directory: TAP, one process per file, so that a crash
 * names its input. Each file is given whole and cut at a few places. With COUNT and SEED it also
 * runs so many inputs that are made from the seed, and says which one broke something.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "fuzz.h"

enum { LIMIT_INPUT = 4 << 20, CUTS = 16, RANDOM_MOST = 600, BATCH = 50 };

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

/* One input of the seed: as long as it likes, of bytes as they come. */
static void run_random(uint64_t seed)
{
	uint8_t in[RANDOM_MOST];
	uint64_t x = seed * 0x9e3779b97f4a7c15 + 1;
	size_t n;

	for (size_t i = 0; i < sizeof in; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		in[i] = (uint8_t)(x >> 32);
	}
	n = (size_t)(x % sizeof in);
	(void)LLVMFuzzerTestOneInput(in, n);
}

struct job {
	int dirfd;
	const char *name; /* of a file; or NULL: the inputs of the seeds from first on */
	uint64_t first, end;
	uint64_t *at; /* shared with the parent */
};

static int run_job(const struct job *j)
{
	if (j->name)
		return run_file(j->dirfd, j->name);
	for (*j->at = j->first; *j->at < j->end; ++*j->at)
		run_random(*j->at);
	return 0;
}

/* Wait status of a process that does it. */
static int run_apart(const struct job *j)
{
	int st = 1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)alarm(60);
		exit(run_job(j));
	}
	if (pid < 0 || waitpid(pid, &st, 0) < 0)
		return 1;
	return st;
}

static bool run_seeds(int count, uint64_t seed, int *n)
{
	uint64_t *at =
		mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool failed = at == MAP_FAILED;

	for (int i = 0; i < count && !failed; i += BATCH) {
		struct job j = { .first = seed + (uint64_t)i, .at = at };

		int st;

		j.end = j.first + (uint64_t)(count - i < BATCH ? count - i : BATCH);
		st = run_apart(&j);
		printf("%sok %d - seeds from %llu\n", st ? "not " : "", ++*n,
		       (unsigned long long)j.first);
		if (st)
			printf("# seed %llu broke something\n", (unsigned long long)*at);
		failed |= st != 0;
	}
	return failed;
}

int main(int argc, char **argv)
{
	static DIR *dir; /* reachable at the children's exit: no leak */
	struct dirent *entry;
	int n = 0;
	bool failed = false;

	dir = argc == 2 || argc == 4 ? opendir(argv[1]) : NULL;
	if (!dir) {
		(void)fprintf(stderr, "usage: %s CORPUS-DIRECTORY [COUNT SEED]\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(dir))) {
		int st;

		if (entry->d_name[0] == '.')
			continue;
		st = run_apart(&(struct job){ .dirfd = dirfd(dir), .name = entry->d_name });
		failed |= st != 0;
		printf("%sok %d - %s\n", st ? "not " : "", ++n, entry->d_name);
	}
	(void)closedir(dir);
	if (argc == 4)
		failed |=
			run_seeds((int)strtol(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), &n);
	printf("1..%d\n", n);
	return failed || n == 0;
}
