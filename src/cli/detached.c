/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/detached.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"

enum { WORDS = 4 };

static void spawn(const char *program, char **argv, char **envp)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	sigset_t none; /* are blocked, whatever we have blocked just now */
	pid_t pid;

	if (posix_spawn_file_actions_init(&fa) != 0)
		return;
	for (int i = 0; i < 3; i++)
		(void)posix_spawn_file_actions_addopen(&fa, i, "/dev/null", i ? O_WRONLY : O_RDONLY,
						       0);
	(void)sigemptyset(&none);
	if (posix_spawnattr_init(&at) == 0) {
		(void)posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
		(void)posix_spawnattr_setsigmask(&at, &none);
		(void)posix_spawn(&pid, program, &fa, &at, argv, envp);
		(void)posix_spawnattr_destroy(&at);
	}
	(void)posix_spawn_file_actions_destroy(&fa);
}

void detached_start(const char *state_dir, const char *const *words)
{
	char program[LIMIT_PATH], state[LIMIT_PATH + 16], keep[64];
	char *argv[WORDS + 2] = { "cay" }, *envp[] = { state, NULL, NULL };
	const char *ended = getenv("CAY_KEEP_ENDED");
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);

	if (n < 0)
		return;
	program[n] = '\0';
	for (int i = 0; i < WORDS && words[i]; i++)
		argv[i + 1] = (char *)words[i];
	(void)snprintf(state, sizeof state, "CAY_STATE=%s", state_dir);
	if (ended && snprintf(keep, sizeof keep, "CAY_KEEP_ENDED=%s", ended) < (int)sizeof keep)
		envp[1] = keep;
	spawn(program, argv, envp);
}
