/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The change from one generation of the sandbox's file systems to the next (driver.h). A snapshot
 * seals the uppers as a layer and continues with new uppers above it. A rollback drops the uppers
 * and continues above other layers.
 *
 *   1 The driver makes the next generation. Uppers that changed, or that will lie above other
 *     layers, are made new in `next`.
 *   2 The warden moves the replaced uppers to layers/SEAL, or to a directory for removal. The
 *     mounts over them hold the inodes, not the names.
 *   3 Init enters; it refuses while any other process exists.
 *   4 The warden moves the content of `next` to `upper`.
 *   5 Everything that init could have kept of the last generation is made read-only.
 *
 * In storage, `upper` and `next` are subvolumes, which move as a whole (generation_volume.c).
 *
 * A failure before step 3 is done is undone. The link `top` is removed before anything moves. After
 * step 3 it is made again with the name of the topmost layer. From it ops/lost.c learns how far a
 * warden came that died on the way.
 *
 * Calls requested meanwhile reach init after the order to enter, so they run in the next
 * generation. A child does the slow work that no client waits for: sealing, which takes time in
 * proportion to the kernel's cached inodes (0.17 s for 50,000), removing files, and releasing the
 * last mounts.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "sys/files/voltree.h"
#include "warden/call/call.h"
#include "warden/client/lease.h"
#include "warden/features.h"
#include "warden/generation/generation.h"

enum {
	RETRY_MS = 1,
	GRACE_MS = 50,	   /* for processes that are just ending */
	FORCED_MS = 10000, /* for processes that were told to end */
	SPARE_MS = 1000,   /* for the spare child to report ready */
};

static int bad(struct err *e)
{
	return err_set(e, ERR_INVALID, "bad request to switch");
}

static int take(struct generation_switch *t, struct field f, struct err *e)
{
	uint64_t v = 0;

	switch (f.tag) {
	case TAG_LAYER:
		if (t->nlayers == CELL_LAYERS - 1)
			return err_set(e, ERR_LIMIT, "more than %d layers", CELL_LAYERS - 1);
		return str_copy(t->layers[t->nlayers++], LAYER_ID, f.value) ? 0 : bad(e);
	case TAG_SEAL:
		return str_copy(t->seal, LAYER_ID, f.value) ? 0 : bad(e);
	case TAG_SNAPSHOT:
		return str_copy(t->snapshot, sizeof t->snapshot, f.value) ? 0 : bad(e);
	case TAG_NAME:
		return str_copy(t->name, sizeof t->name, f.value) ? 0 : bad(e);
	case TAG_FORCE:
		if (field_u64(f, &v) < 0)
			return bad(e);
		t->force = v != 0;
		return 0;
	case TAG_CALLS:
		if (field_u64(f, &v) < 0 || v != 0)
			return bad(e);
		t->alone = true;
		return 0;
	default:
		return 0;
	}
}

static int parse(struct generation_switch *t, struct str body, struct err *e)
{
	struct field f;
	int r;

	while ((r = field_next(&body, &f)) > 0)
		if (take(t, f, e) < 0)
			return -1;
	return r < 0 ? bad(e) : 0;
}

static int set_layers(struct warden *w, const char (*ids)[LAYER_ID], int n, const char *top,
		      struct err *e)
{
	int at = 0;

	w->spec.nlayers = 0;
	if (top && layers_take(w, at++, str_of(top), e) < 0)
		return -1;
	for (int i = 0; i < n; i++)
		if (layers_take(w, at++, str_of(ids[i]), e) < 0)
			return -1;
	return 0;
}

static void switch_free(struct generation_switch **t)
{
	struct warden *w;

	if (!*t)
		return;
	w = (*t)->w;
	loop_timer_stop(&(*t)->w->loop, &(*t)->retry);
	if ((*t)->other)
		(*t)->w->driver->drop((*t)->w->cell, (*t)->other);
	free(*t);
	*t = NULL;
	lease_next(w);
}

/* Go back to the old state. The driver's next attempt first removes what this one made. */
void generation_done(struct warden *w)
{
	switch_free(&w->gen_switch);
}

void switch_fail(struct warden *w, const struct err *why)
{
	struct generation_switch *t = w->gen_switch;
	struct err ignored;
	int r;

	if (t->other)
		w->driver->stay(w->cell, t->other);
	(void)set_layers(w, t->was, t->nwas, NULL, &ignored);
	(void)voltree_remove(w->disk_fd, "next");
	r = switch_move_back(w, t);
	/* No answer: it would close the journal, which is needed to find the files again. */
	if (r < 0)
		warden_fail(w, "undo a switch", -r);
	else if (t->client)
		(void)client_error(t->client, t->chan, why, STAGE_SETUP);
	if (t->client)
		conn_hold(&t->client->conn, false);
	switch_free(&w->gen_switch);
	spare_make(w);
}

static void trace_switch(struct generation_switch *t, enum switch_result result, uint64_t freeze_us)
{
	struct warden *w = t->w;

	t->took_us = (clock_mono_ns() - t->start_ns) / NS_PER_US;
	(void)trace_begin(&w->trace, t->seal[0] ? "sandbox.snapshot" : "sandbox.rollback", 0,
			  w->created_event);
	trace_text(&w->trace, "snapshot", str_of(t->snapshot));
	if (t->name[0])
		trace_text(&w->trace, "name", str_of(t->name));
	trace_num(&w->trace, "duration_us", (int64_t)t->took_us);
	if (result == SWITCH_COPIED)
		trace_num(&w->trace, "freeze_us", (int64_t)freeze_us);
	warden_trace_end(w);
}

static void say_done(struct generation_switch *t, enum switch_result result, uint64_t freeze_us)
{
	if (!t->client)
		return;
	(void)CONN_SAY(&t->client->conn, MSG_C_SWITCHED, t->chan, { TAG_SEALED, result, NULL },
		       { TAG_DURATION_US, t->took_us, NULL }, { TAG_FREEZE_US, freeze_us, NULL });
	conn_hold(&t->client->conn, false);
}

void switch_answer(struct generation_switch *t, enum switch_result result, uint64_t freeze_us)
{
	trace_switch(t, result, freeze_us);
	say_done(t, result, freeze_us);
}

static int look_again(struct warden *w, const struct generation_switch *t, struct err *e)
{
	int r;

	walk_retire(w, t->generation);
	if (layers_move(w, t->moved, e) < 0)
		return -1;
	r = w->watch ? watch_move(w->watch, warden_root(w)) : 0;
	if (r < 0)
		return err_sys(e, -r, "watch processes");
	return walk_open(w, e);
}

/* The client gets its answer first; then the layer is made read-only. */
static void generation_seal(struct warden *w)
{
	struct generation_switch *t = w->unsealed;

	if (!t)
		return;
	switch_drop_last(w, t);
	switch_free(&w->unsealed);
	generation_ahead(w);
}

static void on_seal(struct loop_timer *timer)
{
	generation_seal(container_of(timer, struct generation_switch, retry)->w);
}

static void commit(struct warden *w)
{
	struct generation_switch *t = w->gen_switch;
	enum switch_result result = t->seal[0] ? SWITCH_SEALED : SWITCH_UNCHANGED;
	struct err e = { 0 };
	int r = switch_rename_next(w);

	if (r < 0) {
		warden_fail(w, "take over the next generation", -r);
		return;
	}
	if (look_again(w, t, &e) < 0) {
		warden_fail(w, e.msg, e.sys);
		return;
	}
	w->unsealed = TAKE_PTR(w->gen_switch);
	w->switched = true;
	trace_switch(t, result, 0);
	say_done(t, result, 0);
	walk_switched(w);
	loop_timer_set(&w->loop, &t->retry, 0, on_seal);
}

/* True if the kernel shows no other process: everything inside descends from init. The spare child
 * does not count, because it changes nothing. */
static bool switch_is_alone(struct warden *w)
{
	long pid = 0;
	int n = w->driver->others(w->cell, &pid);

	/* If the kernel cannot tell, init decides. */
	if (n < 0)
		return n == -ENOENT;
	return n == 0 || (n == 1 && spare_is(w, pid));
}

/* What happens to each mount; in storage every upper is new. */
static struct cell_change change_of(const struct warden *w, const struct generation_switch *t)
{
	struct cell_change c = { 0 };

	for (int i = 0; i < w->spec.nmounts; i++) {
		c.same[i] = t->same[i] && !w->spec.storage;
		c.below[i] = w->uppers[i] >= 0 && t->seal[0] && !t->same[i];
	}
	return c;
}

static int switch_make_next(struct warden *w, struct generation_switch *t, struct err *e)
{
	struct cell_change change;

	spare_drop(w); /* the spare ends while the next generation is made */
	if (!t->looked)
		(void)switch_find_same(w, t);
	change = change_of(w, t);
	if (set_layers(w, t->layers, t->nlayers, NULL, e) < 0 ||
	    w->driver->renew(w->cell, &w->spec, &change, &t->other, e) < 0)
		return -1;
	failpoint("switch.renewed");
	t->made = true;
	return 0;
}

static int leave_last(struct warden *w, struct err *e)
{
	struct generation_switch *t = w->gen_switch;
	int r = switch_move_away(w, t);

	failpoint("switch.moved");
	if (r < 0)
		return err_sys(e, -r, "move the files of '%s'", w->spec.id);
	if (set_layers(w, t->layers, t->nlayers, t->seal[0] ? t->seal : NULL, e) < 0)
		return -1;
	r = switch_remember_fresh(w);
	if (r < 0)
		return err_sys(e, -r, "look at the new uppers");
	t->ordered = w->driver->enter(w->cell, t->other, e) == 0;
	return t->ordered ? 0 : -1;
}

static int refuse_busy(const struct warden *w, struct err *e)
{
	char calls[128] = "";
	size_t at = 0;
	int n = 0;

	for (const struct call *c = w->calls; c && at < sizeof calls - 16; c = c->next, n++)
		at += (size_t)snprintf(calls + at, sizeof calls - at, "%s%u", n ? ", " : "", c->id);
	if (n)
		(void)err_set(e, ERR_CONFLICT, "%s running: %s", n > 1 ? "calls are" : "a call is",
			      calls);
	else
		(void)err_set(e, ERR_CONFLICT, "processes that calls have left are running");
	return err_hint(e, "see cay ps %s; end them with --force", w->spec.id);
}

static void proceed(struct warden *w);

static void on_retry(struct loop_timer *timer)
{
	proceed(container_of(timer, struct generation_switch, retry)->w);
}

/* Wait longer for the spare child (call_spare.c): it may still be ending, or its pid unknown. */
static bool may_wait(const struct warden *w, const struct generation_switch *t)
{
	uint64_t now = clock_mono_ns();
	uint64_t more = t->ordered ? FORCED_MS : SPARE_MS;

	/* A copy must not contain a half-moved directory. */
	if (w->watch && watch_is_renaming(w->watch))
		return true;
	return now < t->until_ns || (spare_is_moving(w) && now < t->start_ns + more * NS_PER_MS);
}

static void try_later(struct warden *w)
{
	struct err e = { 0 };

	w->gen_switch->looked = false;
	if (may_wait(w, w->gen_switch)) {
		loop_timer_set(&w->loop, &w->gen_switch->retry, RETRY_MS * NS_PER_MS, on_retry);
		return;
	}
	/* Nothing has moved if init never got the order. */
	if (!w->gen_switch->seal[0] || w->gen_switch->ordered || switch_copy(w, &e) < 0) {
		if (e.kind == ERR_NONE)
			(void)refuse_busy(w, &e);
		switch_fail(w, &e);
	}
}

/* True if there is nothing to do, and no process that could be changing files now. */
static bool is_unchanged(struct warden *w)
{
	struct generation_switch *t = w->gen_switch;

	t->looked = switch_is_alone(w);
	if (!t->looked || !switch_find_same(w, t))
		return false;
	switch_answer(t, SWITCH_UNCHANGED, 0);
	generation_done(w);
	return true;
}

static void proceed(struct warden *w)
{
	struct generation_switch *t = w->gen_switch;
	struct err e = { 0 };

	if (!t->looked && !t->made && !t->force && is_unchanged(w))
		return;
	if (!t->looked && !switch_is_alone(w)) {
		try_later(w);
	} else if (!t->ordered) {
		if ((!t->made && switch_make_next(w, t, &e) < 0) || leave_last(w, &e) < 0)
			switch_fail(w, &e);
	} else if (w->driver->enter(w->cell, t->other, &e) < 0) {
		warden_fail(w, "tell init to enter", e.sys);
	}
}

void generation_entered(struct warden *w, int err)
{
	struct err e = { 0 };

	if (!w->gen_switch || !w->gen_switch->ordered || w->state != SANDBOX_RUNNING)
		return;
	if (err == EBUSY) {
		try_later(w);
	} else if (err) {
		(void)err_sys(&e, err, "enter the next generation");
		switch_fail(w, &e);
	} else {
		commit(w);
	}
}

static bool has_calls(const struct warden *w)
{
	for (const struct call *c = w->calls; c; c = c->next)
		if (!c->answered)
			return true;
	return false;
}

static void end_all(struct warden *w)
{
	for (struct call *c = w->calls; c; c = c->next)
		if (!c->exited)
			call_kill(c, "rollback");
	(void)CONN_SAY(&w->init, MSG_SIGNAL, 0, { TAG_SIGNAL, SIGKILL, NULL });
}

static int begin(struct warden *w, struct generation_switch *t, struct err *e)
{
	bool paused = w->state == SANDBOX_PAUSED, calls = paused || has_calls(w);

	if (paused && !t->seal[0]) {
		err_set(e, ERR_CONFLICT, "the sandbox is paused");
		return err_hint(e, "let it go on first: cay resume %s", w->spec.id);
	}
	if ((calls && !t->force && !t->seal[0]) || (t->alone && w->running))
		return refuse_busy(w, e);
	if (t->force && !t->seal[0] && !switch_is_alone(w))
		end_all(w);
	t->start_ns = clock_mono_ns();
	t->until_ns = t->start_ns + (t->force ? FORCED_MS : GRACE_MS) * NS_PER_MS;
	t->generation = w->cell->generation;
	t->nwas = w->spec.nlayers;
	memcpy(t->was, w->layers, sizeof t->was);
	w->gen_switch = t;
	if (is_unchanged(w))
		return 0;
	if (calls && t->seal[0]) {
		if (switch_copy(w, e) == 0)
			return 0;
		w->gen_switch = NULL;
		return -1;
	}
	proceed(w);
	return 0;
}

int generation_switch(struct client *c, uint32_t chan, struct str body, struct err *e)
{
	struct warden *w = c->w;
	auto_free struct generation_switch *t = calloc(1, sizeof *t);

	if (!t)
		return err_sys(e, ENOMEM, "switch");
	if (w->state != SANDBOX_RUNNING && w->state != SANDBOX_PAUSED)
		return err_set(e, ERR_CONFLICT, "the sandbox is %s", sandbox_state_name(w->state));
	if (features_need(w, HAS_RENEW, e) < 0)
		return -1;
	if (w->gen_switch)
		return err_set(e, ERR_CONFLICT, "another snapshot or rollback is under way");
	generation_seal(w);
	*t = (struct generation_switch){ .w = w, .client = c, .chan = chan };
	if (parse(t, body, e) < 0 || begin(w, t, e) < 0)
		return -1;
	(void)TAKE_PTR(t);
	/* The next request of a client of version 2 must wait for the end of the switch. */
	if (w->gen_switch && c->version < 3)
		conn_hold(&c->conn, true);
	return 0;
}

void generation_forget(struct warden *w, const struct client *c)
{
	if (w->gen_switch && w->gen_switch->client == c)
		w->gen_switch->client = NULL;
	if (w->unsealed && w->unsealed->client == c)
		w->unsealed->client = NULL;
}

void generation_end(struct warden *w)
{
	if (w->gen_switch && w->gen_switch->copy_pid)
		switch_copy_end(w);
	switch_free(&w->gen_switch);
	switch_free(&w->unsealed);
	loop_timer_stop(&w->loop, &w->ahead_timer);
	switch_end_sweepers(w);
}
