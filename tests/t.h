/* SPDX-License-Identifier: Apache-2.0 */
/* Test harness: TAP on stdout, one process per test, 40 s limit each (times CAY_TEST_SLOW). */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct t_case {
	const char *name;
	void (*fn)(void);
};

#define CHECK(cond)	((cond) ? (void)0 : t_fail(__FILE__, __LINE__, #cond))
#define CHECK_STR(a, b) t_same(__FILE__, __LINE__, (a), (b))

static inline __attribute__((noreturn, unused)) void t_fail(const char *f, int l, const char *what)
{
	printf("# %s:%d: %s\n", f, l, what);
	fflush(stdout);
#ifdef T_ABORT /* a fuzzer keeps the input of a process that dies so */
	abort();
#endif
	_exit(1);
}

static inline __attribute__((noreturn, unused)) void t_fail_str(const char *f, int l, const char *a,
								const char *b)
{
	printf("# %s:%d: got '%s', want '%s'\n", f, l, a, b);
	fflush(stdout);
	_exit(1);
}

static inline __attribute__((unused)) void t_same(const char *f, int l, const char *a,
						  const char *b)
{
	if (!a || !b || strcmp(a, b) != 0)
		t_fail_str(f, l, a ? a : "(NULL)", b ? b : "(NULL)");
}

enum { T_SKIPPED = 77 };

/* For a test that this machine cannot run: TAP says so, loudly. */
static inline __attribute__((noreturn, unused)) void t_skip(const char *why)
{
	printf("# skipped: %s\n", why);
	exit(T_SKIPPED);
}

static inline unsigned t_limit_s(void)
{
	const char *slower = getenv("CAY_TEST_SLOW");
	unsigned long times = slower ? strtoul(slower, NULL, 10) : 1;

	return 40 * (unsigned)(times > 0 && times < 1000 ? times : 1);
}

static pid_t t_me;

/* A directory of this test, in memory where possible; what a test leaves of them is removed. */
static inline __attribute__((unused)) void t_scratch(char *out, size_t size)
{
	(void)snprintf(out, size, "%s/cay-t-%d-XXXXXX",
		       access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp", (int)t_me);
	CHECK(mkdtemp(out));
}

static inline void t_sweep(pid_t pid)
{
	char cmd[160];

	(void)snprintf(cmd, sizeof cmd, "rm -rf /dev/shm/cay-t-%d-?????? /tmp/cay-t-%d-??????",
		       (int)pid, (int)pid);
	if (system(cmd) != 0)
		printf("# a scratch directory of process %d is left\n", (int)pid);
}

static inline int t_run(const struct t_case *cases, size_t n)
{
	int failed = 0;

	printf("1..%zu\n", n);
	for (size_t i = 0; i < n; i++) {
		int st = 0;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			t_me = getpid();
			alarm(t_limit_s());
			cases[i].fn();
			exit(0);
		}
		if (pid < 0 || waitpid(pid, &st, 0) < 0)
			st = 1;
		if (WIFEXITED(st) && WEXITSTATUS(st) == T_SKIPPED) {
			printf("ok %zu - %s # SKIP for the reason above\n", i + 1, cases[i].name);
			continue;
		}
		if (st != 0)
			t_sweep(pid);
		failed += st != 0;
		printf("%sok %zu - %s\n", st ? "not " : "", i + 1, cases[i].name);
	}
	return failed != 0;
}

#define T_MAIN(...) \
	int main(void) \
	{ \
		static const struct t_case c[] = { __VA_ARGS__ }; \
		return t_run(c, sizeof c / sizeof c[0]); \
	}
/* clang-format off */
#define T(fn) { #fn, fn }
/* clang-format on */
