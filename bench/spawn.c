/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs commands in turns and prints how long each took from spawn to wait.
 *
 *   spawn ROUNDS SECONDS [@EVERY] [K=V]... CMD [ARG]... [::: [@EVERY] [K=V]... CMD [ARG]...]...
 *
 * Stops at the end of a round once the time is over. Every round starts with another command, so
 * that no command always follows the same one. @EVERY runs a command only in every so many rounds.
 * %N in an argument becomes a new number. Prints a line "ROUND COMMAND NANOSECONDS CPU-MICROSECONDS
 * STATUS" for each run. The commands share our stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { MOST = 16, WORDS = 128, TEXT = 512 };

struct command {
	int every;
	char **env, **argv; /* K=V and words, as given; both end at `end` or at the other */
	int nenv, argc;
};

static void die(const char *what)
{
	fprintf(stderr, "spawn: %s: %s\n", what, strerror(errno));
	exit(1);
}

static bool is_setting(const char *word)
{
	const char *eq = strchr(word, '=');

	return eq && !memchr(word, '/', (size_t)(eq - word));
}

/* Parse one command up to ::: or the end. Returns the number of words. */
static int parse(struct command *c, char **words)
{
	int n = 0;

	*c = (struct command){ .every = 1 };
	if (words[n] && words[n][0] == '@')
		c->every = (int)strtol(words[n++] + 1, NULL, 10);
	c->env = words + n;
	while (words[n] && is_setting(words[n]))
		c->nenv++, n++;
	c->argv = words + n;
	while (words[n] && strcmp(words[n], ":::") != 0)
		c->argc++, n++;
	if (c->argc == 0 || c->argc >= WORDS || c->every < 1) {
		errno = EINVAL;
		die("command");
	}
	return n;
}

/* The argument with %N replaced; `room` holds the result if there was a %N. */
static char *with_number(char *word, char room[TEXT], int number)
{
	const char *at = strstr(word, "%N");

	if (!at)
		return word;
	(void)snprintf(room, TEXT, "%.*s%d-%d%s", (int)(at - word), word, (int)getpid(), number,
		       at + 2);
	return room;
}

static void print_run(int round, int which, uint64_t ns, const struct rusage *ru, int status)
{
	long us = (ru->ru_utime.tv_sec + ru->ru_stime.tv_sec) * 1000000 + ru->ru_utime.tv_usec +
		  ru->ru_stime.tv_usec;

	printf("%d %d %llu %ld %d\n", round, which, (unsigned long long)ns, us,
	       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	(void)fflush(stdout);
}

static void run(const struct command *c, int round, int which,
		const posix_spawn_file_actions_t *quiet)
{
	static char room[WORDS][TEXT];
	static int number;
	char *argv[WORDS + 1] = { NULL };
	struct rusage ru;
	uint64_t start;
	pid_t pid;
	int r, status;

	number++;
	for (int i = 0; i < c->argc; i++)
		argv[i] = with_number(c->argv[i], room[i], number);
	for (int i = 0; i < c->nenv; i++)
		if (putenv(c->env[i]) != 0)
			die("environment");
	start = clock_mono_ns();
	r = posix_spawnp(&pid, argv[0], quiet, NULL, argv, environ);
	if (r != 0) {
		errno = r;
		die(argv[0]);
	}
	while (wait4(pid, &status, 0, &ru) < 0)
		if (errno != EINTR)
			die("wait");
	print_run(round, which, clock_mono_ns() - start, &ru, status);
}

int main(int argc, char **argv)
{
	static struct command commands[MOST];
	posix_spawn_file_actions_t quiet;
	int n = 0, rounds = argc > 3 ? (int)strtol(argv[1], NULL, 10) : 0,
	    seconds = argc > 3 ? (int)strtol(argv[2], NULL, 10) : 0;
	uint64_t end_ns = clock_mono_ns() + (uint64_t)seconds * NS_PER_S;

	if (rounds < 1 || seconds < 1) {
		fprintf(stderr, "usage: spawn ROUNDS SECONDS [@EVERY] [K=V]... CMD... [::: ...]\n");
		return 2;
	}
	for (char **at = argv + 3; *at && n < MOST; at += *at != NULL)
		at += parse(&commands[n++], at);
	if (posix_spawn_file_actions_init(&quiet) != 0 ||
	    posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0) != 0 ||
	    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0) != 0)
		die("prepare");
	for (int round = 0; round < rounds && clock_mono_ns() < end_ns; round++)
		for (int i = 0; i < n; i++) {
			int which = (i + round) % n;

			if (round % commands[which].every == 0)
				run(&commands[which], round, which, &quiet);
		}
	return 0;
}
