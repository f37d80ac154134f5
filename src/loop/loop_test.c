/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>

#include "base/clock.h"
#include "t.h"

enum { END_MS = 400 }; /* long after everything else */

static struct loop l;
static char order[32];

static void note(char c)
{
	size_t n = strlen(order);

	CHECK(n + 1 < sizeof order);
	order[n] = c;
}

struct timer {
	struct loop_timer t;
	char name;
	struct timer *other;
};

static void on_note(struct loop_timer *t)
{
	note(container_of(t, struct timer, t)->name);
}

static void on_note_and_stop(struct loop_timer *t)
{
	on_note(t);
	loop_stop(&l);
}

static void on_note_and_free_other(struct loop_timer *t)
{
	struct timer *me = container_of(t, struct timer, t);

	on_note(t);
	loop_timer_stop(&l, &me->other->t);
	free(me->other);
}

static void timers_run_by_time_then_by_order_of_setting(void)
{
	struct timer a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' };
	struct timer d = { .name = 'd' }, end = { .name = '.' };
	bool in_order = false;

	CHECK(loop_init(&l) == 0);
	/* A slow machine may pause between two of these: set all again until their times are in
	 * order. */
	for (int round = 0; round == 0 || (!in_order && round < 1000); round++) {
		loop_timer_set(&l, &end.t, 30 * NS_PER_MS, on_note_and_stop);
		loop_timer_set(&l, &c.t, 20 * NS_PER_MS, on_note);
		loop_timer_set(&l, &a.t, 5 * NS_PER_MS, on_note);
		loop_timer_set(&l, &b.t, 10 * NS_PER_MS, on_note);
		in_order =
			a.t.at_ns < b.t.at_ns && b.t.at_ns < c.t.at_ns && c.t.at_ns < end.t.at_ns;
	}
	loop_timer_set(&l, &d.t, UINT64_MAX, on_note);
	CHECK(loop_run(&l) == 0);
	CHECK_STR(order, "abc.");
	d.t.at_ns = end.t.at_ns = 0;
	loop_done(&l);
}

static void a_timer_is_never_early(void)
{
	struct timer end = { .name = '.' };
	uint64_t start = clock_mono_ns();

	CHECK(loop_init(&l) == 0);
	loop_timer_set(&l, &end.t, 12345678, on_note_and_stop);
	CHECK(loop_run(&l) == 0);
	CHECK(clock_mono_ns() - start >= 12345678);
	loop_done(&l);
}

static void setting_a_running_timer_moves_it(void)
{
	struct timer a = { .name = 'a' }, b = { .name = 'b' }, end = { .name = '.' };

	CHECK(loop_init(&l) == 0);
	loop_timer_set(&l, &a.t, 1 * NS_PER_MS, on_note);
	loop_timer_set(&l, &b.t, 5 * NS_PER_MS, on_note);
	loop_timer_set(&l, &a.t, 10 * NS_PER_MS, on_note);
	loop_timer_set(&l, &end.t, 20 * NS_PER_MS, on_note_and_stop);
	CHECK(loop_run(&l) == 0);
	CHECK_STR(order, "ba.");
	loop_done(&l);
}

static void a_stopped_timer_does_not_run(void)
{
	struct timer a = { .name = 'a' }, b = { .name = 'b' }, end = { .name = '.' };

	CHECK(loop_init(&l) == 0);
	loop_timer_stop(&l, &b.t);
	loop_timer_set(&l, &a.t, 1 * NS_PER_MS, on_note);
	loop_timer_set(&l, &end.t, END_MS * NS_PER_MS, on_note_and_stop);
	loop_timer_stop(&l, &a.t);
	loop_timer_stop(&l, &a.t);
	CHECK(loop_run(&l) == 0);
	CHECK_STR(order, ".");
	loop_done(&l);
}

static void a_timer_may_free_another_that_is_due(void)
{
	struct timer a = { .name = 'a' }, end = { .name = '.' };
	struct timer *b = calloc(1, sizeof *b);

	CHECK(loop_init(&l) == 0);
	b->name = 'b';
	a.other = b;
	loop_timer_set(&l, &a.t, 0, on_note_and_free_other);
	loop_timer_set(&l, &b->t, 0, on_note);
	loop_timer_set(&l, &end.t, 1 * NS_PER_MS, on_note_and_stop);
	CHECK(loop_run(&l) == 0);
	CHECK_STR(order, "a.");
	loop_done(&l);
}

static void on_again(struct loop_timer *t)
{
	on_note(t);
	if (strlen(order) == 3)
		loop_stop(&l);
	else
		loop_timer_set(&l, t, 0, on_again);
}

static void a_timer_may_set_itself(void)
{
	struct timer a = { .name = 'a' };

	CHECK(loop_init(&l) == 0);
	loop_timer_set(&l, &a.t, 0, on_again);
	CHECK(loop_run(&l) == 0);
	CHECK_STR(order, "aaa");
	loop_done(&l);
}

/* Two pipes that are readable from the start, so both are in one batch. */
struct source {
	struct loop_io io;
	int fds[2];
	char name;
	struct source *other;
};

static struct source *source_new(char name)
{
	struct source *s = calloc(1, sizeof *s);

	CHECK(s && pipe2(s->fds, O_CLOEXEC | O_NONBLOCK) == 0);
	CHECK(write(s->fds[1], "x", 1) == 1);
	s->name = name;
	return s;
}

static void source_free(struct source *s)
{
	loop_del(&l, &s->io);
	fd_close(&s->fds[0]);
	fd_close(&s->fds[1]);
	free(s);
}

static void on_readable_free_both(struct loop_io *io, uint32_t events)
{
	struct source *s = container_of(io, struct source, io);

	CHECK(events & EPOLLIN);
	note(s->name);
	source_free(s->other);
	source_free(s);
}

static void a_source_may_free_itself_and_others_of_the_batch(void)
{
	struct source *a = source_new('x'), *b = source_new('x');
	struct timer end = { .name = '.' };

	CHECK(loop_init(&l) == 0);
	a->other = b;
	b->other = a;
	CHECK(loop_add(&l, &a->io, a->fds[0], EPOLLIN, on_readable_free_both) == 0);
	CHECK(loop_add(&l, &b->io, b->fds[0], EPOLLIN, on_readable_free_both) == 0);
	loop_timer_set(&l, &end.t, END_MS * NS_PER_MS, on_note_and_stop);
	CHECK(loop_run(&l) == 0);
	CHECK_STR(order, "x.");
	loop_done(&l);
}

static void on_readable_note(struct loop_io *io, uint32_t events)
{
	struct source *s = container_of(io, struct source, io);
	char c;

	CHECK(events & EPOLLIN && read(s->fds[0], &c, 1) == 1);
	note(s->name);
}

static void on_readable_swap(struct loop_io *io, uint32_t events)
{
	struct source *s = container_of(io, struct source, io);

	on_readable_note(io, events);
	loop_del(&l, &s->other->io);
	CHECK(loop_add(&l, &s->other->io, s->other->fds[0], EPOLLIN, on_readable_note) == 0);
}

static void a_source_taken_out_and_put_back_still_gets_its_event(void)
{
	struct source *a = source_new('a'), *b = source_new('b');
	struct timer end = { .name = '.' };

	CHECK(loop_init(&l) == 0);
	a->other = b;
	CHECK(loop_add(&l, &a->io, a->fds[0], EPOLLIN, on_readable_swap) == 0);
	CHECK(loop_add(&l, &b->io, b->fds[0], EPOLLIN, on_readable_note) == 0);
	loop_timer_set(&l, &end.t, END_MS * NS_PER_MS, on_note_and_stop);
	CHECK(loop_run(&l) == 0);
	CHECK_STR(order, "ab.");
	source_free(a);
	source_free(b);
	loop_done(&l);
}

static void a_first_source_runs_first(void)
{
	struct source *s[4] = { source_new('c'), source_new('a'), source_new('d'),
				source_new('b') };
	struct timer end = { .name = '.' };

	CHECK(loop_init(&l) == 0);
	for (int i = 0; i < 4; i++) {
		CHECK(loop_add(&l, &s[i]->io, s[i]->fds[0], EPOLLIN, on_readable_note) == 0);
		s[i]->io.first = i % 2;
	}
	loop_timer_set(&l, &end.t, END_MS * NS_PER_MS, on_note_and_stop);
	CHECK(loop_run(&l) == 0);
	CHECK(strncmp(order, "ab", 2) == 0 && strlen(order) == 5);
	for (int i = 0; i < 4; i++)
		source_free(s[i]);
	loop_done(&l);
}

/* The first event of the batch is already in place and must stay there. */
static void several_first_sources_run_before_the_others(void)
{
	struct source *s[4] = { source_new('a'), source_new('x'), source_new('b'),
				source_new('c') };
	struct timer end = { .name = '.' };

	CHECK(loop_init(&l) == 0);
	for (int i = 0; i < 4; i++) {
		CHECK(loop_add(&l, &s[i]->io, s[i]->fds[0], EPOLLIN, on_readable_note) == 0);
		s[i]->io.first = s[i]->name != 'x';
	}
	loop_timer_set(&l, &end.t, END_MS * NS_PER_MS, on_note_and_stop);
	CHECK(loop_run(&l) == 0);
	CHECK_STR(order, "abcx.");
	for (int i = 0; i < 4; i++)
		source_free(s[i]);
	loop_done(&l);
}

static void mod_changes_what_is_waited_for(void)
{
	struct source *a = source_new('a');
	struct timer end = { .name = '.' };

	CHECK(loop_init(&l) == 0);
	CHECK(loop_add(&l, &a->io, a->fds[0], EPOLLIN, on_readable_note) == 0);
	CHECK(loop_mod(&l, &a->io, 0) == 0);
	loop_timer_set(&l, &end.t, 2 * NS_PER_MS, on_note_and_stop);
	CHECK(loop_run(&l) == 0);
	CHECK(loop_mod(&l, &a->io, EPOLLIN) == 0);
	loop_timer_set(&l, &end.t, 2 * NS_PER_MS, on_note_and_stop);
	CHECK(loop_run(&l) == 0);
	CHECK_STR(order, ".a.");
	source_free(a);
	loop_done(&l);
}

static void on_idle_note(struct loop *lp)
{
	CHECK(!lp->chores);
	note('i');
	loop_stop(lp);
}

static void on_readable_once(struct loop_io *io, uint32_t events)
{
	char c;

	CHECK(events & EPOLLIN && read(io->fd, &c, 1) == 1);
	note('a');
	l.chores = true;
}

static void chores_wait_until_nothing_is_ready(void)
{
	struct source *a = source_new('a');
	struct timer late = { .name = '.' };

	CHECK(loop_init(&l) == 0);
	l.idle = on_idle_note;
	CHECK(loop_add(&l, &a->io, a->fds[0], EPOLLIN, on_readable_once) == 0);
	loop_timer_set(&l, &late.t, 1000 * NS_PER_MS, on_note_and_stop);
	CHECK(loop_run(&l) == 0);
	CHECK_STR(order, "ai");
	loop_timer_stop(&l, &late.t);
	source_free(a);
	loop_done(&l);
}

static void on_readable_leave(struct loop_io *io, uint32_t events)
{
	CHECK(io->fd >= 0 && events & EPOLLIN);
	note('a');
}

static void chores_run_even_if_a_source_is_always_ready(void)
{
	struct source *a = source_new('a');

	CHECK(loop_init(&l) == 0);
	l.idle = on_idle_note;
	l.chores = true;
	CHECK(loop_add(&l, &a->io, a->fds[0], EPOLLIN, on_readable_leave) == 0);
	CHECK(loop_run(&l) == 0);
	CHECK_STR(order, "aaaaaaaai");
	source_free(a);
	loop_done(&l);
}

static void a_refused_source_is_reported_and_safe_to_remove(void)
{
	struct loop_io io = { 0 };
	auto_close int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	CHECK(loop_init(&l) == 0);
	loop_del(&l, &io);
	CHECK(loop_add(&l, &io, fd, EPOLLIN, on_readable_note) == -EPERM);
	loop_del(&l, &io);
	CHECK(loop_add(&l, &io, FD_NONE, EPOLLIN, on_readable_note) == -EBADF);
	loop_del(&l, &io);
	loop_done(&l);
}

T_MAIN(T(timers_run_by_time_then_by_order_of_setting), T(a_timer_is_never_early),
       T(setting_a_running_timer_moves_it), T(a_stopped_timer_does_not_run),
       T(a_timer_may_free_another_that_is_due), T(a_timer_may_set_itself),
       T(a_source_may_free_itself_and_others_of_the_batch),
       T(a_source_taken_out_and_put_back_still_gets_its_event), T(mod_changes_what_is_waited_for),
       T(a_first_source_runs_first), T(several_first_sources_run_before_the_others),
       T(chores_wait_until_nothing_is_ready), T(chores_run_even_if_a_source_is_always_ready),
       T(a_refused_source_is_reported_and_safe_to_remove))
