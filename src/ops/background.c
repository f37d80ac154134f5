/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/background.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "store/ready.h"

enum { WORDS = 4 };

static void spawn(const char *program, char **argv, char **envp)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	sigset_t none; /* the child blocks no signals, whatever we block now */
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

void record_env(const struct cay_config *c, struct record_env *env, char **envp)
{
	const struct {
		const char *name, *value;
	} rows[RECORD_ENV] = { { "CAY_KEEP_ENDED", c->keep_ended },
			       { "CAY_KEEP_DAYS", c->keep_days },
			       { "CAY_TRACE_MAX", c->trace_max } };
	int n = 0;

	for (int i = 0; i < RECORD_ENV; i++)
		if (rows[i].value && snprintf(env->text[i], RECORD_ENV_TEXT, "%s=%s", rows[i].name,
					      rows[i].value) < RECORD_ENV_TEXT)
			envp[n++] = env->text[i];
	envp[n] = NULL;
}

void background_start(struct cay *c, const char *const *words)
{
	char state[LIMIT_PATH + 16];
	char *argv[WORDS + 2] = { "cay" }, *envp[RECORD_ENV + 2] = { state };
	struct record_env env;
	struct err ignored = { 0 };

	if (cay_programs(c, &ignored) < 0)
		return;
	for (int i = 0; i < WORDS && words[i]; i++)
		argv[i + 1] = (char *)words[i];
	(void)snprintf(state, sizeof state, "CAY_STATE=%s", c->state.dir);
	record_env(&c->config, &env, envp + 1);
	spawn(c->programs.cay, argv, envp);
}

void background_flatten(struct cay *c)
{
	static const char *const words[] = { "tidy", NULL };

	background_start(c, words);
}

void background_keeper(struct cay *c)
{
	static const char *const words[] = { "pool", "keep", NULL };

	if (ready_exists(&c->state) && ready_keeper(&c->state) == 0)
		background_start(c, words);
}

void background_keeper_wake(struct cay *c)
{
	background_keeper(c);
	ready_wake_keeper(&c->state);
}
