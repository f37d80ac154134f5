/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/process/close_but.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "t.h"

enum { FIRST = 10, LAST = 29 };

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* In a child, because the test itself needs the descriptors that are closed here. */
static int left_after(int *keep, int n)
{
	int left = 0;

	for (int fd = FIRST; fd <= LAST; fd++)
		if (dup2(STDIN_FILENO, fd) < 0)
			return -1;
	if (close_but(keep, n) < 0)
		return -1;
	for (int fd = STDERR_FILENO + 1; fd < 4 * LAST; fd++)
		left += is_open(fd);
	for (int i = 0; i < n; i++)
		if (keep[i] >= FIRST && !is_open(keep[i]))
			return -1;
	return is_open(STDIN_FILENO) && is_open(STDERR_FILENO) ? left : -1;
}

static int left_in_child(int *keep, int n)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(left_after(keep, n) & 0xff);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void close_but_can_close_everything(void)
{
	CHECK(left_in_child(NULL, 0) == 0);
}

static void kept_descriptors_may_be_unsorted_and_repeated(void)
{
	int keep[] = { 29, -1, 12, 10, 12, 11, 20, -1, 1 };

	CHECK(left_in_child(keep, (int)ARRAY_LEN(keep)) == 5);
}

static void close_but_can_keep_everything(void)
{
	int keep[LAST - FIRST + 1];

	for (int i = 0; i <= LAST - FIRST; i++)
		keep[i] = LAST - i;
	CHECK(left_in_child(keep, LAST - FIRST + 1) == LAST - FIRST + 1);
}

T_MAIN(T(close_but_can_close_everything), T(kept_descriptors_may_be_unsorted_and_repeated),
       T(close_but_can_keep_everything))
