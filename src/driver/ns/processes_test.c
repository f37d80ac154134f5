/* SPDX-License-Identifier: Apache-2.0 */
/* Tests whether init is alone, as the kernel shows it. The test's child stands for init. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/ns/ns.h"
#include "t.h"

static int told[2];

static void tell(void)
{
	CHECK(write(told[1], "x", 1) == 1);
}

static void be_alone(void)
{
	tell();
}

static void fork_one(void)
{
	if (fork() == 0)
		(void)pause();
	tell();
}

static void *fork_in_thread(void *unused)
{
	fork_one();
	(void)pause();
	return unused;
}

static void fork_from_a_thread(void)
{
	pthread_t t;

	CHECK(pthread_create(&t, NULL, fork_in_thread, NULL) == 0);
}

/* The number of processes beside an init that did this. */
static int others_of(void (*act)(void))
{
	struct cell c = { 0 };
	long pid = 0;
	char byte;
	int n;

	CHECK(pipe(told) == 0);
	c.pid = fork();
	if (c.pid == 0) {
		(void)setpgid(0, 0);
		act();
		for (;;)
			(void)pause();
	}
	CHECK(read(told[0], &byte, 1) == 1);
	n = ns_others(&c, &pid);
	CHECK(kill(-c.pid, SIGKILL) == 0 && waitpid(c.pid, NULL, 0) == c.pid);
	CHECK(n != 1 || pid > 0);
	(void)close(told[0]);
	(void)close(told[1]);
	return n;
}

static void an_init_without_children_is_alone(void)
{
	CHECK(others_of(be_alone) == 0);
}

static void a_child_is_named(void)
{
	CHECK(others_of(fork_one) == 1);
}

static void a_child_of_another_thread_is_seen(void)
{
	CHECK(others_of(fork_from_a_thread) == 2);
}

T_MAIN(T(an_init_without_children_is_alone), T(a_child_is_named),
       T(a_child_of_another_thread_is_seen))
