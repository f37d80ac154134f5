/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walls yes|no CMD [ARG]...: run a command with or without the two walls of a sandbox's commands,
 * the list of system calls and Landlock. Nothing else of a sandbox is there, so the difference is
 * the cost of the walls. No installed program can leave them out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/filter/landlock.h"
#include "sys/filter/seccomp_command.h"
#include "sys/filter/seccomp_filter.h"

static int put_up(void)
{
	static struct seccomp_program program;
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = root < 0 ? -errno
			 : landlock_enter(
				   &(struct landlock){ .root_fd = root, .queues_fd = FD_NONE });

	if (r >= 0)
		r = seccomp_program_build(&program, false);
	if (r == 0)
		r = seccomp_program_install(&program);
	return r < 0 ? r : seccomp_command_install(false, SECCOMP_LISTEN_NONE, false);
}

int main(int argc, char **argv)
{
	int r = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: walls yes|no CMD [ARG]...\n");
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 1;
	if (strcmp(argv[1], "yes") == 0)
		r = put_up();
	if (r < 0) {
		fprintf(stderr, "walls: %s\n", strerror(-r));
		return 1;
	}
	(void)execvp(argv[2], argv + 2);
	return 127;
}
