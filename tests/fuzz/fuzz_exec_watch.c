/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch of execs against a kernel that does everything it may, in any order: tasks exec, are
 * held, succeed, fail, are killed in between, get each other's numbers, have a debugger; threads
 * replace their leaders; descriptors and memory run out. The kernel, the loop and the trace are
 * fakes (exec_watch_fakes.h). Each byte pair of the input is one step.
 *
 * Claims: every exec is answered once; of one process one task is held; every program that runs
 * has its event, and no other has a certain one; in the end nobody waits and nobody is stopped.
 */
#include "exec_watch_fakes.h"

/* --- steps of the kernel --- */

static void drop(struct task *t)
{
	t->owes = false;
	t->state = t->held ? DEAD : FREE;
}

static void kill_process(int leader)
{
	for (int i = 0; i < TASKS; i++)
		if (is_of(&k.tasks[i], leader))
			drop(&k.tasks[i]);
}

static void spawn(unsigned at, unsigned how)
{
	struct task *t = &k.tasks[at % TASKS];
	int leader = (int)(how / 8 % TASKS);
	bool thread = how & 1 && k.tasks[leader].state == RUNS && k.tasks[leader].leader == leader;

	if (t->state != FREE)
		return;
	/* A process has its number until all its threads are gone. */
	for (int i = 0; i < TASKS; i++)
		if (is_of(&k.tasks[i], (int)(at % TASKS)))
			return;
	*t = (struct task){ .state = RUNS,
			    .leader = thread ? leader : (int)(at % TASKS),
			    .call = thread ? k.tasks[leader].call : (int)(how / 2 % CALLS),
			    .debugged = (how & 6) == 6,
			    .generation = t->generation + 1 };
	if (k.hung_up[t->call])
		t->state = FREE;
}

static void begin_exec(struct task *t)
{
	if (t->state != RUNS)
		return;
	t->id = ++k.next_id;
	t->state = k.hung_up[t->call] ? RUNS : ASKS;
}

/* The kernel gives the thread the number of its leader, and ends all others. */
static struct task *become_leader(struct task *t)
{
	struct task old = *t, *leader = &k.tasks[t->leader];

	for (int i = 0; i < TASKS; i++)
		if (is_of(&k.tasks[i], old.leader) && &k.tasks[i] != t && &k.tasks[i] != leader)
			drop(&k.tasks[i]);
	if (t == leader)
		return t;
	old.generation = leader->generation;
	*leader = old;
	t->held = false;
	t->state = FREE;
	return leader;
}

static void end_exec(struct task *t, bool success)
{
	if (t->state != GOES)
		return;
	if (!success) {
		t->state = t->held ? FAILED : RUNS;
		return;
	}
	t = become_leader(t);
	t->state = t->held ? EXECED : RUNS;
	t->owes = t->held && k.calls[t->call] && !k.hung_up[t->call];
}

/* --- steps of the loop --- */

static void on_idle(void *ctx)
{
	struct watch_call **c = ctx;

	if (!(k.now & 1))
		return;
	watch_call_free(*c);
	*c = NULL;
}

static void forget_debts(int call)
{
	for (int i = 0; i < TASKS; i++)
		if (k.tasks[i].call == call)
			k.tasks[i].owes = false;
}

static void free_call(int i)
{
	if (!k.calls[i])
		return;
	forget_debts(i);
	watch_call_free(k.calls[i]);
	k.calls[i] = NULL;
	/* The kernel fails what waits at a closed listener. */
	for (int j = 0; j < TASKS; j++)
		if (k.tasks[j].call == i &&
		    (k.tasks[j].state == ASKS || k.tasks[j].state == RECEIVED))
			k.tasks[j].state = k.tasks[j].held ? FAILED : RUNS;
	k.hung_up[i] = true;
}

static void new_call(int i)
{
	for (int j = 0; j < TASKS; j++)
		if (k.tasks[j].state != FREE && k.tasks[j].call == i)
			return;
	if (k.calls[i])
		free_call(i);
	if (watch_call_new(k.watch, (uint32_t)i + 1, 1, FD_LISTENER + i, on_idle, &k.calls[i],
			   &k.calls[i]) == 0)
		k.hung_up[i] = false;
}

static void hang_up(int i)
{
	for (int j = 0; j < TASKS; j++)
		if (k.tasks[j].state != FREE && k.tasks[j].call == i)
			return;
	for (int j = 0; j < k.nsources; j++)
		if (k.sources[j]->fd == FD_LISTENER + i) {
			k.hung_up[i] = true;
			k.sources[j]->fn(k.sources[j], EPOLLHUP);
			return;
		}
}

static void dispatch(int fd)
{
	for (int i = 0; i < k.nsources; i++)
		if (k.sources[i]->fd == fd) {
			k.sources[i]->fn(k.sources[i], EPOLLIN);
			return;
		}
}

/* Ready are the listener at which a task asks, held tasks that stopped, and ended processes. */
static void dispatch_nth(unsigned n)
{
	struct loop_io *io = k.nsources ? k.sources[n % (unsigned)k.nsources] : NULL;

	if (!io || (io->fd >= FD_PROCESS && io->fd < FD_CHILD && !proc_is_gone(io->fd)))
		return;
	io->fn(io, EPOLLIN);
}

static void step(unsigned op, unsigned arg)
{
	struct task *t = &k.tasks[arg % TASKS];
	struct watch_call *c = k.calls[arg % CALLS];

	switch (op % 16) {
	case 0:
	case 1:
		spawn(arg, op / 16 + arg);
		break;
	case 2:
	case 3:
		begin_exec(t);
		break;
	case 4:
	case 5:
		end_exec(t, op & 1);
		break;
	case 6:
		kill_process(t->leader);
		break;
	case 7:
	case 8:
		dispatch(FD_LISTENER + (int)(arg % CALLS));
		break;
	case 9:
		dispatch(FD_CHILD);
		break;
	case 10:
		dispatch_nth(arg);
		break;
	case 11:
		run_timers((uint64_t)arg * NS_PER_MS + (op & 16 ? 1 : 0));
		break;
	case 12:
		k.fail_next = true;
		break;
	case 13:
		if (op & 16)
			watch_reaped(k.watch, FIRST + (int)(arg % TASKS), (int)arg << 8);
		else
			(void)watch_call_of(k.watch, FIRST + (int)(arg % TASKS));
		break;
	case 14:
		if (c && op & 16)
			watch_call_collect(c);
		else if (op & 32)
			hang_up((int)(arg % CALLS));
		break;
	default:
		if (op & 16)
			free_call((int)(arg % CALLS));
		else
			new_call((int)(arg % CALLS));
	}
}

/* --- the end --- */

static void settle(void)
{
	k.fail_next = false;
	for (int round = 0; round < 4 * TASKS; round++) {
		for (int i = 0; i < CALLS; i++)
			dispatch(FD_LISTENER + i);
		for (int i = 0; i < TASKS; i++)
			end_exec(&k.tasks[i], false);
		dispatch(FD_CHILD);
	}
	for (int i = 0; i < TASKS; i++) {
		const struct task *t = &k.tasks[i];

		FUZZ_CHECK(t->state == FREE || t->state == RUNS);
		FUZZ_CHECK(!t->held && !t->owes);
	}
	FUZZ_CHECK(k.watch->npending == 0 && !k.watch->pending);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct loop loop;
	static struct trace trace;

	memset(&k, 0, sizeof k);
	k.now = NS_PER_S;
	FUZZ_CHECK(watch_new(&loop, &trace, FD_NONE, &k.watch) == 0);
	for (int i = 0; i < CALLS; i++)
		new_call(i);
	for (size_t i = 0; i + 1 < size; i += 2)
		step(data[i], data[i + 1]);
	settle();
	for (int i = 0; i < TASKS; i++)
		kill_process(i);
	run_timers(NS_PER_S);
	for (int i = 0; i < CALLS; i++)
		free_call(i);
	FUZZ_CHECK(k.watch->table.count == 0);
	watch_free(k.watch);
	FUZZ_CHECK(k.nsources == 0);
	return 0;
}
