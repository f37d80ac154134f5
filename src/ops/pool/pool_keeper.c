/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/pool_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "link/wait.h"
#include "ops/create/creation.h"
#include "ops/layers_free.h"
#include "ops/pool/demand.h"
#include "ops/pool/pool_key.h"
#include "ops/pool/ready_key.h"
#include "ops/reconcile.h"
#include "store/snapshots.h"

enum {
	LOOK_MS = 30000, /* templates change without notice */
	BLIND_MS = 1000,
	QUIET_MS = 20,	  /* a burst of claims is over after this time without one */
	BURST_MS = 500,	  /* do not wait longer for the end of a burst */
	REST_MS = 50,	  /* longest pause after making one */
	GONE_MS = 5000,	  /* wait for an ending warden */
	BACKOFF_MS = 100, /* after a failure; doubles each time */
};

struct keeper {
	struct cay *c;
	int lock_fd, inotify_fd;
	char (*keys)[READY_KEY]; /* kinds wanted in this round */
	size_t nkeys;
	struct demand demand;
	int rows;
	bool worked, failed; /* this round made or removed a sandbox; this round had a failure */
	uint64_t took_ns;    /* time to make the last sandbox */
	int backoff_ms;	     /* 0: the last round succeeded */
};

static void save(struct keeper *k, const struct pool_row *row)
{
	struct err ignored = { 0 };

	(void)catalog_note_pool(k->c->catalog, row, &ignored);
}

static void note(struct keeper *k, struct pool_row *row, const char *problem)
{
	(void)snprintf(row->problem, sizeof row->problem, "%.*s", (int)sizeof row->problem - 1,
		       problem);
	save(k, row);
}

/*
 * Clean up the files, lock and layer holds of a dead sandbox. If it had an owner, it becomes lost.
 */
static void settle(struct keeper *k, const char *id)
{
	struct err ignored = { 0 };

	if (reconcile_one(k->c->catalog, &k->c->state, id, &ignored) == 0)
		layers_free_soon(k->c->catalog, &k->c->state);
}

/* End a sandbox and wait until its warden is gone. CONFLICT if it has been claimed. */
static int end_unclaimed(struct keeper *k, const char *id, struct err *e)
{
	auto_done(link_free) struct link *l = NULL;
	struct cay *c = k->c;

	if (link_connect(&c->wait, &c->state, id, &l, e) < 0 ||
	    link_destroy(l, &c->wait, true, e) < 0)
		return -1;
	for (int i = 0; i < GONE_MS && state_is_alive(&c->state, id); i++)
		if (wait_pause(&c->wait, NS_PER_MS) < 0)
			return -1;
	return 0;
}

/* Remove a sandbox of an unwanted kind, unless it has just been claimed. */
static void discard(struct keeper *k, int key_fd, const char *id)
{
	struct err e = { 0 };

	k->worked = true;
	if (end_unclaimed(k, id, &e) < 0 && state_is_alive(&k->c->state, id))
		return;
	(void)unlinkat(key_fd, id, 0);
	settle(k, id);
}

/* List the sandboxes that can be claimed; remove dead ones from the list. */
static int list_alive(struct keeper *k, int key_fd, char (**ret)[ID_SIZE], size_t *ret_n)
{
	size_t n = 0, alive = 0;
	int r = ready_list(key_fd, ret, &n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		char id[ID_SIZE];

		memcpy(id, (*ret)[i], sizeof id);
		if (state_is_alive(&k->c->state, id)) {
			memcpy((*ret)[alive++], id, sizeof id);
			continue;
		}
		(void)unlinkat(key_fd, id, 0);
		settle(k, id);
	}
	*ret_n = alive;
	return r;
}

static int make_one(struct keeper *k, const struct pool_key *kind, struct err *e)
{
	auto_done(creation_done) struct creation n = { CREATION_INIT };
	char dir[sizeof k->c->state.dir + READY_KEY + 8];
	uint64_t start = clock_mono_ns();
	int r;

	(void)snprintf(dir, sizeof dir, "%s/ready/%s", k->c->state.dir, kind->key);
	creation_init(&n, k->c);
	r = creation_ready(&n, buf_str(&kind->recipe), kind->top, dir, e);
	k->took_ns = clock_mono_ns() - start;
	return r;
}

/* Make one sandbox or remove one, or do nothing if the number is right. */
static int approach(struct keeper *k, uint32_t wanted, const struct pool_key *kind, struct err *e)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	auto_close int fd = ready_make_key(&k->c->state, kind->key);
	char path[sizeof k->c->state.dir + READY_KEY + 8];
	size_t n = 0;
	int r = fd < 0 ? fd : list_alive(k, fd, &ids, &n);

	if (r < 0)
		return err_sys(e, -r, "look after %s/ready", k->c->state.dir);
	(void)snprintf(path, sizeof path, "%s/ready/%s", k->c->state.dir, kind->key);
	(void)inotify_add_watch(k->inotify_fd, path, IN_DELETE);
	if (n > wanted)
		discard(k, fd, ids[n - 1]);
	if (n >= wanted)
		return 0;
	k->worked = true;
	return make_one(k, kind, e);
}

/* Claims of the pool's previous kind still count. */
static void change_kind(struct keeper *k, struct pool_row *row, const struct pool_key *kind)
{
	if (row->key[0])
		row->claimed += ready_claims(&k->c->state, row->key);
	(void)str_copy(row->key, sizeof row->key, str_of(kind->key));
	save(k, row);
}

static bool is_wanted(const struct keeper *k, const char *key)
{
	for (size_t i = 0; i < k->nkeys; i++)
		if (strcmp(k->keys[i], key) == 0)
			return true;
	return false;
}

static bool want(struct keeper *k, const char *key)
{
	void *keys = reallocarray(k->keys, k->nkeys + 1, sizeof *k->keys);

	if (!keys)
		return false;
	k->keys = keys;
	memcpy(k->keys[k->nkeys++], key, READY_KEY);
	return true;
}

static uint32_t higher(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static int tend_row(void *ctx, const struct pool_row *given)
{
	auto_done(pool_key_done) struct pool_key kind = POOL_KEY_INIT;
	struct keeper *k = ctx;
	struct pool_row row = *given;
	struct err e = { 0 };

	k->rows++;
	if (pool_key_find(k->c, &row, &kind, &e) < 0) {
		note(k, &row, e.msg);
		return 0;
	}
	if (!want(k, kind.key))
		return 1;
	if (strcmp(row.key, kind.key) != 0)
		change_kind(k, &row, &kind);
	if (approach(k, higher(row.wanted, demand_wanted(&k->demand, kind.key)), &kind, &e) < 0) {
		k->failed = true;
		note(k, &row, e.msg);
	} else if (row.problem[0]) {
		note(k, &row, "");
	}
	return 0;
}

/*
 * What a server wants by demand. A record of another key than its recipe has now is out of date; it
 * is retired. So is one that cannot be made.
 */
static void tend_demand(struct keeper *k, struct demand_kind *wanted)
{
	auto_done(demand_record_done) struct demand_record record = DEMAND_RECORD_INIT;
	auto_done(pool_key_done) struct pool_key kind = POOL_KEY_INIT;
	struct err e = { 0 };

	if (!wanted->wanted || is_wanted(k, wanted->key) ||
	    demand_read(&k->c->state, wanted->key, &record) < 0 ||
	    ready_key(&k->c->state, k->c->programs.warden, &k->c->config, buf_str(&record.recipe),
		      record.top, kind.key) <= 0 ||
	    strcmp(kind.key, wanted->key) != 0)
		return;
	(void)str_copy(kind.top, sizeof kind.top, str_of(record.top));
	if (buf_add_str(&kind.recipe, buf_str(&record.recipe)) < 0)
		return;
	if (wanted->told != wanted->wanted)
		ready_note_wanted(&k->c->state, wanted->key, wanted->wanted);
	wanted->told = wanted->wanted;
	if (approach(k, wanted->wanted, &kind, &e) == 0)
		(void)want(k, kind.key);
	else
		k->failed = true;
}

static void retire_kind(struct keeper *k, const char *key)
{
	auto_free char(*ids)[ID_SIZE] = NULL;
	auto_close int fd = ready_open_key(&k->c->state, key);
	size_t n = 0;

	if (fd < 0 || list_alive(k, fd, &ids, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		discard(k, fd, ids[i]);
	ready_drop_key(&k->c->state, key);
}

static int look(struct keeper *k, struct err *e)
{
	auto_free char(*kinds)[READY_KEY] = NULL;
	size_t n = 0;

	k->rows = 0;
	k->nkeys = 0;
	k->worked = k->failed = false;
	if (ready_keys(&k->c->state, &kinds, &n) < 0)
		n = 0;
	demand_look(&k->demand, &k->c->state, kinds, n);
	k->rows += k->demand.on;
	if (catalog_each_pool(k->c->catalog, tend_row, k, e) < 0)
		return -1;
	for (size_t i = 0; i < k->demand.n; i++)
		tend_demand(k, &k->demand.kinds[i]);
	/* Kinds that came up meanwhile are looked at in the next round. */
	for (size_t i = 0; i < n; i++)
		if (!is_wanted(k, kinds[i]))
			retire_kind(k, kinds[i]);
	return 0;
}

/* Wait for a claim or a wakeup; true if one came. */
static bool wait_ms(struct keeper *k, int ms)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct pollfd p = { .fd = k->inotify_fd, .events = POLLIN };
	/* Without inotify we have to poll. */
	bool came = poll(&p, 1, k->inotify_fd < 0 && ms > BLIND_MS ? BLIND_MS : ms) > 0;

	while (came && read(k->inotify_fd, events, sizeof events) > 0)
		;
	return came;
}

static void wait_for_quiet(struct keeper *k)
{
	uint64_t end = clock_mono_ns() + BURST_MS * NS_PER_MS;

	while (wait_ms(k, QUIET_MS) && clock_mono_ns() < end)
		;
}

static void rest(struct keeper *k)
{
	uint64_t took_ms = k->took_ns / NS_PER_MS;

	if (k->failed) {
		k->backoff_ms = k->backoff_ms ? k->backoff_ms * 2 : BACKOFF_MS;
		if (k->backoff_ms > LOOK_MS)
			k->backoff_ms = LOOK_MS;
		(void)wait_ms(k, k->backoff_ms);
		return;
	}
	k->backoff_ms = 0;
	if (wait_ms(k, k->worked ? (int)(took_ms < REST_MS ? took_ms : REST_MS) : LOOK_MS))
		wait_for_quiet(k);
}

/* True if a newer program replaced ours: its kinds have other keys. */
static bool is_replaced(const struct keeper *k)
{
	struct stat ours, theirs;

	return stat("/proc/self/exe", &ours) == 0 && stat(k->c->programs.cay, &theirs) == 0 &&
	       (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino);
}

static int take_post(struct keeper *k)
{
	k->lock_fd = ready_lock(&k->c->state);
	if (k->lock_fd < 0)
		return k->lock_fd;
	k->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (k->inotify_fd >= 0) {
		char path[sizeof k->c->state.dir + 8];

		(void)snprintf(path, sizeof path, "%s/ready", k->c->state.dir);
		/* IN_CLOSE_WRITE: the server that wants pools has ended. */
		(void)inotify_add_watch(k->inotify_fd, path, IN_ATTRIB | IN_CLOSE_WRITE);
	}
	return 0;
}

static void leave_post(struct keeper *k)
{
	fd_close(&k->inotify_fd);
	fd_close(&k->lock_fd);
}

static int count_row(void *ctx, const struct pool_row *row)
{
	struct keeper *k = ctx;

	(void)row;
	k->rows++;
	return 0;
}

/*
 * A process that adds a row while we hold the lock relies on us. So check the rows once more after
 * releasing the lock: a process that adds a row later starts its own keeper.
 */
static int keep(struct keeper *k, bool *ret_replaced, struct err *e)
{
	for (;;) {
		if (k->lock_fd < 0 && take_post(k) < 0)
			return 0;
		if (look(k, e) < 0)
			return -1;
		*ret_replaced = is_replaced(k);
		if (*ret_replaced)
			return 0;
		if (k->rows) {
			rest(k);
			continue;
		}
		ready_drop(&k->c->state);
		leave_post(k);
		if (catalog_each_pool(k->c->catalog, count_row, k, e) < 0 ||
		    (!k->rows && !ready_demand_exists(&k->c->state)))
			return 0;
	}
}

int op_pool_keep(struct cay *c, bool *ret_replaced, struct err *e)
{
	struct keeper k = { .c = c, .lock_fd = FD_NONE, .inotify_fd = FD_NONE };
	int r;

	*ret_replaced = false;
	if (cay_catalog(c, e) < 0 || cay_programs(c, e) < 0)
		return -1;
	r = keep(&k, ret_replaced, e);
	leave_post(&k);
	free(k.keys);
	demand_done(&k.demand);
	return r;
}
