/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one generation of the sandbox's file systems to the next (driver.h): a snapshot seals the
 * uppers as a layer and goes on with fresh ones above it; a rollback drops them and goes on
 * above other layers.
 *
 *   1 move those uppers away that were changed, or will lie above other layers: to layers/SEAL,
 *     or to a heap to be removed
 *   2 the driver makes the next generation, with uppers in `next` in their place
 *   3 init enters it; it refuses while there is any other process
 *   4 what is in `next` goes to `upper`
 *
 * Whatever fails before the third is done is undone. A warden that dies on the way leaves enough
 * for store/reconcile.c to tell how far it came: with `next` there, step 1 is complete.
 *
 * Calls that are asked for meanwhile are told to init after the order to enter, so they run in
 * the next generation. What takes time and nobody waits for is left to a child: removing files,
 * and letting go of the last generation's mounts.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "sys/raw.h"
#include "sys/rmtree.h"
#include "warden/call.h"
#include "warden/limits.h"

enum {
	SWEEP_NICE = 10,
	RETRY_MS = 1,
	GRACE_MS = 50,	   /* for processes that are just ending */
	FORCED_MS = 10000, /* for those that were told to */
};

struct turn {
	struct warden *w;
	struct client *client; /* NULL: gone */
	uint32_t chan;
	char seal[LAYER_ID]; /* empty: the uppers are dropped */
	char layers[CELL_LAYERS][LAYER_ID];
	int nlayers;
	bool force, sealed;
	char snapshot[64], name[64];
	/* How far it came. */
	bool same[CELL_MOUNTS]; /* neither the upper nor what lies below changes */
	bool moved[CELL_MOUNTS];
	char was[CELL_LAYERS][LAYER_ID]; /* layers of the last generation */
	int nwas;
	struct cell_next last; /* descriptors of the last generation */
	struct loop_timer retry;
	uint64_t start_ns, until_ns;
	unsigned generation; /* the last one */
	bool ordered;	     /* init has been told to enter */
};

static int bad(struct err *e)
{
	return err_set(e, ERR_INVALID, "bad request to switch");
}

static int take(struct turn *t, struct field f, struct err *e)
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
	default:
		return 0;
	}
}

static int parse(struct turn *t, struct str body, struct err *e)
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

static bool has_layer(const char (*ids)[LAYER_ID], int n, const char *id)
{
	for (int i = 0; i < n; i++)
		if (strcmp(ids[i], id) == 0)
			return true;
	return false;
}

/* Whether a layer that only one of the two stacks has says anything about mount i. */
static bool differ(const struct warden *w, const char (*a)[LAYER_ID], int na,
		   const char (*b)[LAYER_ID], int nb, int i)
{
	char path[LIMIT_PATH];

	for (int j = 0; j < na; j++) {
		if (has_layer(b, nb, a[j]))
			continue;
		(void)snprintf(path, sizeof path, "%s/layers/%s/%d", w->spec.state, a[j], i);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

/* True where no mount changes. */
static bool find_same(const struct warden *w, struct turn *t)
{
	bool all = true;

	for (int i = 0; i < w->spec.nmounts; i++) {
		if (w->uppers[i] < 0)
			continue;
		t->same[i] = !layers_touched(w, i) &&
			     !differ(w, w->layers, w->spec.nlayers, t->layers, t->nlayers, i) &&
			     !differ(w, t->layers, t->nlayers, w->layers, w->spec.nlayers, i);
		all &= t->same[i];
	}
	return all;
}

/* Where an upper goes: into the layer, or on the heap. */
static void place_of(const struct warden *w, const struct turn *t, int i, char *out, size_t size)
{
	if (t->seal[0])
		(void)snprintf(out, size, "%s/layers/%s/%d", w->spec.state, t->seal, i);
	else
		(void)snprintf(out, size, "%s/old/%u/%d", w->spec.dir, t->generation, i);
}

static int make_place(const struct warden *w, const struct turn *t)
{
	char path[LIMIT_PATH];

	if (!t->seal[0]) {
		int r = io_mkdir(w->dir_fd, "old", 0700);

		(void)snprintf(path, sizeof path, "old/%u", t->generation);
		return r < 0 ? r : io_mkdir(w->dir_fd, path, 0700);
	}
	(void)snprintf(path, sizeof path, "%s/layers/%s", w->spec.state, t->seal);
	return mkdir(path, 0700) < 0 ? -errno : 0;
}

static int move_away(struct warden *w, struct turn *t)
{
	char name[24], to[LIMIT_PATH];
	int r = make_place(w, t);

	for (int i = 0; i < w->spec.nmounts && r == 0; i++) {
		if (w->uppers[i] < 0 || t->same[i])
			continue;
		(void)snprintf(name, sizeof name, "upper/%d", i);
		place_of(w, t, i, to, sizeof to);
		if (renameat(w->dir_fd, name, AT_FDCWD, to) < 0)
			r = -errno;
		else
			t->moved[i] = true;
	}
	return r;
}

static void move_back(struct warden *w, struct turn *t)
{
	char name[24], from[LIMIT_PATH];

	for (int i = 0; i < w->spec.nmounts; i++) {
		if (!t->moved[i])
			continue;
		(void)snprintf(name, sizeof name, "upper/%d", i);
		place_of(w, t, i, from, sizeof from);
		if (renameat(AT_FDCWD, from, w->dir_fd, name) < 0) {
			warden_fail(w, "undo a switch", errno);
			return;
		}
		t->moved[i] = false;
	}
	if (t->seal[0]) {
		(void)snprintf(from, sizeof from, "%s/layers/%s", w->spec.state, t->seal);
		(void)rmdir(from);
	}
}

static void reap(pid_t *pid, int flags)
{
	pid_t r;

	do
		r = waitpid(*pid, NULL, flags);
	while (r < 0 && errno == EINTR);
	if (r != 0)
		*pid = 0;
}

/* One that is done, or the first once it is. */
static pid_t *free_slot(struct warden *w)
{
	for (size_t i = 0; i < ARRAY_LEN(w->sweepers); i++) {
		if (w->sweepers[i])
			reap(&w->sweepers[i], WNOHANG);
		if (!w->sweepers[i])
			return &w->sweepers[i];
	}
	reap(&w->sweepers[0], 0);
	return &w->sweepers[0];
}

/*
 * At low priority and with nothing of ours but what it removes. What is closed here is closed
 * there last: the kernel takes a whole file system apart then.
 */
static void sweep(struct warden *w, const char *heap)
{
	pid_t *slot = free_slot(w), pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)setpriority(PRIO_PROCESS, 0, SWEEP_NICE);
		(void)close(w->lock_fd);
		(void)close(w->lock_fd + 1); /* of the uid range, inherited as well */
		(void)rmtree_at(w->dir_fd, heap);
		_exit(0);
	}
	*slot = pid > 0 ? pid : 0;
}

/* With the work directories of what is not used any more, on a heap of its own. */
static void drop_last(struct warden *w, struct turn *t)
{
	char from[48], to[64], heap[32];

	(void)snprintf(heap, sizeof heap, "old/%u", t->generation);
	if (io_mkdir(w->dir_fd, "old", 0700) == 0)
		(void)io_mkdir(w->dir_fd, heap, 0700);
	for (int i = 0; i < w->spec.nmounts; i++) {
		if (!t->moved[i])
			continue;
		(void)snprintf(from, sizeof from, "work/%d.%u", i, w->made_in[i]);
		(void)snprintf(to, sizeof to, "%s/work-%d", heap, i);
		(void)renameat(w->dir_fd, from, w->dir_fd, to);
		w->made_in[i] = w->cell.keep.generation;
	}
	sweep(w, heap);
	cell_next_done(&t->last);
}

static void turn_free(struct warden *w)
{
	if (!w->turn)
		return;
	loop_timer_stop(&w->loop, &w->turn->retry);
	cell_next_done(&w->turn->last);
	free(w->turn);
	w->turn = NULL;
}

/* Back to what was; the driver's next attempt begins with removing what this one made. */
static void undo(struct warden *w, const struct err *why)
{
	struct turn *t = w->turn;
	struct cell_next failed = { w->cell.mount_ns, w->cell.root_fd, w->cell.devpts_fd };
	struct err ignored;

	if (t->last.root_fd >= 0) {
		w->cell.mount_ns = t->last.mount_ns;
		w->cell.root_fd = t->last.root_fd;
		w->cell.devpts_fd = t->last.devpts_fd;
		t->last = failed;
	}
	(void)set_layers(w, t->was, t->nwas, NULL, &ignored);
	(void)rmtree_at(w->dir_fd, "next");
	move_back(w, t);
	if (t->client)
		(void)client_error(t->client, t->chan, why, STAGE_SETUP);
	turn_free(w);
}

static void answer(struct warden *w, uint64_t freeze_us)
{
	struct turn *t = w->turn;
	uint64_t us = (clock_mono_ns() - t->start_ns) / NS_PER_US;

	(void)trace_begin(&w->trace, t->seal[0] ? "sandbox.snapshot" : "sandbox.rollback", 0,
			  w->created_event);
	trace_text(&w->trace, "snapshot", str_of(t->snapshot));
	if (t->name[0])
		trace_text(&w->trace, "name", str_of(t->name));
	trace_num(&w->trace, "duration_us", (int64_t)us);
	if (freeze_us)
		trace_num(&w->trace, "freeze_us", (int64_t)freeze_us);
	warden_trace_end(w);
	if (t->client)
		(void)CONN_SAY(&t->client->conn, MSG_C_SWITCHED, t->chan,
			       { TAG_SEALED, t->sealed, NULL }, { TAG_DURATION_US, us, NULL },
			       { TAG_FREEZE_US, freeze_us, NULL });
}

static int rename_next(struct warden *w)
{
	for (int i = 0; i < w->spec.nmounts; i++) {
		char from[24], to[24];

		(void)snprintf(from, sizeof from, "next/%d", i);
		(void)snprintf(to, sizeof to, "upper/%d", i);
		if (w->turn->moved[i] && renameat(w->dir_fd, from, w->dir_fd, to) < 0)
			return -errno;
	}
	return unlinkat(w->dir_fd, "next", AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int look_again(struct warden *w, struct err *e)
{
	int r;

	walk_retire(w);
	layers_close(w);
	if (layers_open(w, e) < 0)
		return -1;
	r = w->watch ? watch_move(w->watch, w->cell.root_fd) : 0;
	if (r < 0)
		return err_sys(e, -r, "watch processes");
	return walk_open(w, e);
}

static void commit(struct warden *w)
{
	struct turn *t = w->turn;
	struct err e = { 0 };
	int r = rename_next(w);

	if (r < 0) {
		warden_fail(w, "take over the next generation", -r);
		return;
	}
	if (look_again(w, &e) < 0) {
		warden_fail(w, e.msg, e.sys);
		return;
	}
	answer(w, 0);
	drop_last(w, t);
	turn_free(w);
}

static int order_enter(struct warden *w)
{
	int fds[2] = { fcntl(w->cell.mount_ns, F_DUPFD_CLOEXEC, 3),
		       fcntl(w->cell.root_fd, F_DUPFD_CLOEXEC, 3) };
	size_t at = 0;
	int r = fds[0] < 0 || fds[1] < 0 ? -errno : conn_begin(&w->init, MSG_ENTER, 0, &at);

	if (r == 0)
		return conn_end(&w->init, at, fds, 2);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	return r;
}

/* The kernel's word for it: everything inside descends from init. */
static bool is_alone(const struct warden *w)
{
	char path[64], c;
	auto_close int fd = FD_NONE;

	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)w->cell.pid,
		       (int)w->cell.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* A kernel without that file leaves it to init to say so. */
	return fd < 0 ? errno == ENOENT : read(fd, &c, 1) <= 0;
}

static int remember_fresh(struct warden *w)
{
	for (int i = 0; i < w->spec.nmounts; i++) {
		char name[24];

		(void)snprintf(name, sizeof name, "next/%d", i);
		if (w->turn->moved[i] && fstatat(w->dir_fd, name, &w->fresh[i], 0) < 0)
			return -errno;
	}
	return 0;
}

static int make_next(struct warden *w, struct err *e)
{
	struct turn *t = w->turn;
	struct cell_next next;
	int r;

	(void)find_same(w, t);
	r = move_away(w, t);
	if (r < 0)
		return err_sys(e, -r, "move the files of '%s'", w->spec.id);
	t->sealed = t->seal[0] != '\0';
	if (set_layers(w, t->layers, t->nlayers, t->sealed ? t->seal : NULL, e) < 0 ||
	    ns_driver.renew(&w->cell, &w->spec, t->same, &next, e) < 0)
		return -1;
	t->last = (struct cell_next){ w->cell.mount_ns, w->cell.root_fd, w->cell.devpts_fd };
	w->cell.mount_ns = next.mount_ns;
	w->cell.root_fd = next.root_fd;
	w->cell.devpts_fd = next.devpts_fd;
	r = remember_fresh(w);
	if (r == 0)
		r = order_enter(w);
	t->ordered = r == 0;
	return r < 0 ? err_sys(e, -r, "tell init to enter") : 0;
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
	proceed(container_of(timer, struct turn, retry)->w);
}

static void try_later(struct warden *w)
{
	struct err e = { 0 };

	if (clock_mono_ns() < w->turn->until_ns) {
		loop_timer_set(&w->loop, &w->turn->retry, RETRY_MS * NS_PER_MS, on_retry);
		return;
	}
	(void)refuse_busy(w, &e);
	undo(w, &e);
}

static void proceed(struct warden *w)
{
	struct turn *t = w->turn;
	struct err e = { 0 };
	int r;

	if (!is_alone(w)) {
		try_later(w);
	} else if (!t->ordered) {
		if (make_next(w, &e) < 0)
			undo(w, &e);
	} else {
		r = order_enter(w);
		if (r < 0)
			warden_fail(w, "tell init to enter", -r);
	}
}

void generation_entered(struct warden *w, int err)
{
	struct err e = { 0 };

	if (!w->turn || !w->turn->ordered || w->state != SANDBOX_RUNNING)
		return;
	if (err == EBUSY) {
		try_later(w);
	} else if (err) {
		(void)err_sys(&e, err, "enter the next generation");
		undo(w, &e);
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

static int begin(struct warden *w, struct turn *t, struct err *e)
{
	bool calls = has_calls(w);

	if (calls && !t->force)
		return refuse_busy(w, e);
	if (t->force && !is_alone(w))
		end_all(w);
	t->start_ns = clock_mono_ns();
	t->until_ns = t->start_ns + (t->force ? FORCED_MS : GRACE_MS) * NS_PER_MS;
	t->generation = w->cell.keep.generation;
	t->nwas = w->spec.nlayers;
	memcpy(t->was, w->layers, sizeof t->was);
	w->turn = t;
	/* Nothing to be done, and nobody who could be changing something just now. */
	if (is_alone(w) && find_same(w, t)) {
		answer(w, 0);
		turn_free(w);
		return 0;
	}
	proceed(w);
	return 0;
}

int generation_switch(struct client *c, uint32_t chan, struct str body, struct err *e)
{
	struct warden *w = c->w;
	auto_free struct turn *t = calloc(1, sizeof *t);

	if (!t)
		return err_sys(e, ENOMEM, "switch");
	if (w->state != SANDBOX_RUNNING)
		return err_set(e, ERR_UNAVAILABLE, "the sandbox is not running");
	if (w->turn)
		return err_set(e, ERR_CONFLICT, "another snapshot or rollback is under way");
	*t = (struct turn){
		.w = w, .client = c, .chan = chan, .last = { FD_NONE, FD_NONE, FD_NONE }
	};
	if (parse(t, body, e) < 0 || begin(w, t, e) < 0)
		return -1;
	(void)TAKE_PTR(t);
	return 0;
}

void generation_forget(struct warden *w, const struct client *c)
{
	if (w->turn && w->turn->client == c)
		w->turn->client = NULL;
}

void generation_end(struct warden *w)
{
	turn_free(w);
	/* The files go with all others of the sandbox. */
	for (size_t i = 0; i < ARRAY_LEN(w->sweepers); i++) {
		if (!w->sweepers[i])
			continue;
		(void)kill(w->sweepers[i], SIGKILL);
		reap(&w->sweepers[i], 0);
	}
}
