/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named places at which a test lets the process die as if it were killed. Only in programs made for
 * that (tests/crash): there the file `failpoint` in CAY_STATE names one, and the first process that
 * comes to it is gone, with the file. Everywhere else it is nothing.
 */
#pragma once

#ifdef CAY_FAILPOINTS
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void failpoint(const char *name)
{
	const char *state = getenv("CAY_STATE");
	char path[4096], want[64] = "";
	int fd;

	(void)snprintf(path, sizeof path, "%s/failpoint", state ? state : "");
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
