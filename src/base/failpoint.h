/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named places where a test kills the process. Only the programs that tests/crash builds have them;
 * everywhere else failpoint() does nothing.
 *
 * The file `failpoint` in CAY_STATE names one failpoint. The first process that reaches it removes
 * the file and dies by SIGKILL. If the file `failpoints` exists, each process appends the name of
 * every failpoint that it reaches.
 *
 * tests/check/durable.txt: every function that makes a durable step has a failpoint, or a reason
 * why not.
 */
#pragma once

#ifdef CAY_FAILPOINTS
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void failpoint_note(const char *state, const char *name)
{
	char path[4096], line[80];
	int fd, n = snprintf(line, sizeof line, "%s\n", name);

	(void)snprintf(path, sizeof path, "%s/failpoints", state);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, line, (size_t)n);
	(void)close(fd);
}

static inline void failpoint(const char *name)
{
	const char *state = getenv("CAY_STATE") ? getenv("CAY_STATE") : "";
	char path[4096], want[64] = "";
	int fd;

	failpoint_note(state, name);
	(void)snprintf(path, sizeof path, "%s/failpoint", state);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, want, sizeof want - 1) > 0 && strcmp(want, name) == 0 && unlink(path) == 0)
		(void)kill(getpid(), SIGKILL);
	(void)close(fd);
}
#else
static inline void failpoint(const char *name)
{
	(void)name;
}
#endif
