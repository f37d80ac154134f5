/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ops/background.h"
#include "ops/create/creation.h"
#include "ops/pool/demand.h"
#include "ops/pool/pool_key.h"
#include "store/snapshots.h"

enum { GONE_MS = 20000, READY_MS = 120000, LOOK_MS = 5 };

/* In a fixed order, so that the same options give the same text. */
static int describe_options(const struct create_plan *p, char *out, size_t size)
{
	const struct limits_spec *l = &p->spec->limits;
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = { { "memory", l->memory },
			{ "pids", l->pids },
			{ "files", l->files },
			{ "disk", l->disk } };
	auto_done(buf_done) struct buf b = BUF_INIT(size);
	int r = 0;

	for (int i = 0; i < p->nmounts && r == 0; i++)
		r = buf_printf(&b, " --%s %s:%s", p->mounts[i].ro ? "ro" : "dir", p->mounts[i].path,
			       p->mounts[i].dest);
	if (r == 0 && p->spec->net.policy.n) /* whatever the policy: the claim brings one */
		r = buf_add_c(&b, " --net open");
	if (r == 0 && p->profile == PROFILE_LOCKED)
		r = buf_add_c(&b, " --profile locked");
	if (r == 0 && p->spec->nested)
		r = buf_add_c(&b, " --nested");
	if (r == 0 && p->trace == TRACE_CALLS)
		r = buf_add_c(&b, " --trace calls");
	for (size_t i = 0; i < ARRAY_LEN(numbers) && r == 0; i++)
		if (numbers[i].value)
			r = buf_printf(&b, " --%s %llu", numbers[i].name,
				       (unsigned long long)numbers[i].value);
	if (r == 0 && l->cpu_milli)
		r = buf_printf(&b, " --cpus %g", (double)l->cpu_milli / 1000);
	if (r == 0 && l->best_effort)
		r = buf_add_c(&b, " --best-effort");
	if (r < 0)
		return r;
	out[0] = '\0';
	if (b.len && !str_copy(out, size, (struct str){ b.data + 1, b.len - 1 }))
		return -E2BIG;
	return 0;
}

/* Like a fork of the snapshot, with the options of its sandbox. */
static int like_snapshot(struct cay *c, struct pool_row *row, struct buf *recipe, struct err *e)
{
	struct snapshot_row snap = { 0 };
	int r = catalog_find_snapshot(c->catalog, row->template_, &snap, e);

	if (r == 0 && recipe)
		r = catalog_recipe(c->catalog, snap.sandbox, recipe, e);
	(void)str_copy(row->snapshot, sizeof row->snapshot, str_of(snap.id));
	snapshot_row_done(&snap);
	return r;
}

/* Checks everything before a row is written. */
static int describe(struct cay *c, const struct create_spec *spec, struct pool_row *row,
		    struct err *e)
{
	auto_done(creation_done) struct creation n = { CREATION_INIT };
	auto_done(buf_done) struct buf own = BUF_INIT(LIMIT_FRAME_BODY);
	bool snap = strncmp(row->template_, "snap:", 5) == 0, plain = snap && !row->options[0];

	if (snap && like_snapshot(c, row, plain ? &own : NULL, e) < 0)
		return -1;
	creation_init(&n, c);
	if (!plain && creation_plan(&n, spec, e) < 0)
		return -1;
	if (pool_key_keep(plain ? buf_str(&own) : buf_str(&n.recipe), snap, &row->recipe) < 0)
		return err_sys(e, ENOMEM, "describe a pool");
	return 0;
}

struct sum {
	const struct pool_row *but;
	uint64_t wanted;
};

static int add_wanted(void *ctx, const struct pool_row *row)
{
	struct sum *s = ctx;

	if (strcmp(row->template_, s->but->template_) != 0 ||
	    strcmp(row->options, s->but->options) != 0)
		s->wanted += row->wanted;
	return 0;
}

/* Each ready sandbox takes a uid range, and other sandboxes need ranges too. */
static int check_sum(struct cay *c, const struct pool_row *row, struct err *e)
{
	struct sum sum = { .but = row, .wanted = row->wanted };

	if (catalog_each_pool(c->catalog, add_wanted, &sum, e) < 0)
		return -1;
	if (sum.wanted <= READY_MOST)
		return 0;
	return err_set(e, ERR_LIMIT, "%llu ready sandboxes in all pools; at most %d",
		       (unsigned long long)sum.wanted, READY_MOST);
}

static bool is_gone(const struct state *s, const char *key)
{
	auto_close int fd = ready_open_key(s, key);

	return fd < 0;
}

static size_t count_ready(const struct state *s, const char *key)
{
	auto_close int fd = ready_open_key(s, key);
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0;

	return fd >= 0 && ready_list(fd, &ids, &n) == 0 ? n : 0;
}

struct trouble {
	const struct pool_row *of;
	char text[sizeof((struct pool_row *)0)->problem];
};

static int find_trouble(void *ctx, const struct pool_row *row)
{
	struct trouble *t = ctx;

	if (strcmp(row->template_, t->of->template_) != 0 ||
	    strcmp(row->options, t->of->options) != 0)
		return 0;
	(void)str_copy(t->text, sizeof t->text, str_of(row->problem));
	return 1;
}

/* The keeper gives no signal when it is done: poll. */
static int look_again(struct cay *c, uint64_t end_ns, const char *what, struct err *e)
{
	if (clock_mono_ns() > end_ns || wait_pause(&c->wait, LOOK_MS * NS_PER_MS) < 0) {
		(void)err_set(e, ERR_TIMEOUT, "they do not %s", what);
		return err_code(e, "pool.slow", NULL);
	}
	background_keeper(c);
	return 0;
}

static int await_ready(struct cay *c, const struct pool_row *row, const char *key, struct err *e)
{
	uint64_t end = clock_mono_ns() + READY_MS * NS_PER_MS;
	struct trouble t = { .of = row };

	while (count_ready(&c->state, key) < row->wanted) {
		if (look_again(c, end, "become ready", e) < 0 ||
		    catalog_each_pool(c->catalog, find_trouble, &t, e) < 0)
			return -1;
		if (t.text[0])
			return err_set(e, ERR_FAILED, "none can be made ready: %s", t.text);
	}
	return 0;
}

static int await_end(struct cay *c, const char *key, struct err *e)
{
	uint64_t end = clock_mono_ns() + GONE_MS * NS_PER_MS;

	while (!is_gone(&c->state, key))
		if (look_again(c, end, "end", e) < 0)
			return -1;
	return 0;
}

struct keys {
	const char *template_, *options;
	char (*items)[READY_KEY];
	size_t n;
};

static int add_key(void *ctx, const struct pool_row *row)
{
	struct keys *k = ctx;
	void *more;

	if (!row->key[0] || strcmp(row->template_, k->template_) != 0 ||
	    (k->options && strcmp(row->options, k->options) != 0))
		return 0;
	more = reallocarray(k->items, k->n + 1, sizeof *k->items);
	if (!more)
		return 1;
	k->items = more;
	memcpy(k->items[k->n++], row->key, READY_KEY);
	return 0;
}

/* Without options: all pools of the template. */
static int end_pools(struct cay *c, const struct pool_row *row, struct err *e)
{
	struct keys keys = { row->template_, row->options[0] ? row->options : NULL, NULL, 0 };
	int n = 0, r = catalog_each_pool(c->catalog, add_key, &keys, e);

	if (r == 0)
		r = catalog_del_pools(c->catalog, keys.template_, keys.options, &n, e);
	if (r == 0 && n == 0) {
		r = err_set(e, ERR_NOT_FOUND, "no pool of '%.200s'%s%.200s", row->template_,
			    row->options[0] ? " with " : "", row->options);
		(void)err_code(e, "pool.not_found", NULL);
	}
	if (r == 0)
		background_keeper_wake(c);
	for (size_t i = 0; i < keys.n && r == 0; i++)
		r = await_end(c, keys.items[i], e);
	free(keys.items);
	return r;
}

static int set_pool(struct cay *c, const struct pool_spec *spec, struct pool_row *row,
		    struct err *e)
{
	auto_done(pool_key_done) struct pool_key kind = POOL_KEY_INIT;
	int fd, r;

	if (check_sum(c, row, e) < 0 || describe(c, &spec->of, row, e) < 0 ||
	    pool_key_find(c, row, &kind, e) < 0)
		return -1;
	/* From now on other processes see the kind, even if this process dies. */
	fd = ready_make_key(&c->state, kind.key);
	if (fd < 0)
		return err_sys(e, -fd, "make %s/ready", c->state.dir);
	(void)close(fd);
	r = catalog_put_pool(c->catalog, row, e);
	background_keeper_wake(c); /* the keeper also removes unwanted sandboxes */
	return r == 0 && spec->wait ? await_ready(c, row, kind.key, e) : r;
}

static int check_spec(struct cay *c, const struct pool_spec *spec, struct pool_row *row,
		      struct err *e)
{
	auto_done(create_plan_done) struct create_plan plan = { 0 };
	const char *template_ = spec->of.template_ ? spec->of.template_ : "";

	if (spec->wanted > READY_MOST)
		return err_set(e, ERR_INVALID, "%u: how many, from 0 to %d", spec->wanted,
			       READY_MOST);
	if (!str_copy(row->template_, sizeof row->template_, str_of(template_)) || !template_[0])
		return err_set(e, ERR_INVALID, "template '%.200s': 1 to 255 characters", template_);
	if (create_check(c, &spec->of, &plan, e) < 0)
		return -1;
	if (describe_options(&plan, row->options, sizeof row->options) < 0)
		return err_set(e, ERR_INVALID, "these options are too long for a pool");
	row->wanted = spec->wanted;
	return 0;
}

int op_pool_set(struct cay *c, const struct pool_spec *spec, struct err *e)
{
	auto_done(pool_row_done) struct pool_row row = POOL_ROW_INIT;

	if (cay_catalog(c, e) < 0 || check_spec(c, spec, &row, e) < 0)
		return -1;
	return row.wanted ? set_pool(c, spec, &row, e) : end_pools(c, &row, e);
}

/* Counts living sandboxes only: a dead one stays listed until a process removes it. */
static size_t count_alive(const struct state *s, const char *key)
{
	auto_close int fd = ready_open_key(s, key);
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0, alive = 0;

	if (fd < 0 || ready_list(fd, &ids, &n) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		alive += state_is_alive(s, ids[i]);
	return alive;
}

/* Why this caller cannot claim the ready sandboxes, or NULL. */
static const char *not_for_us(struct cay *c, const struct pool_row *row)
{
	auto_done(pool_key_done) struct pool_key kind = POOL_KEY_INIT;
	struct err ignored = { 0 };

	if (!row->key[0] || pool_key_find(c, row, &kind, &ignored) < 0 ||
	    strcmp(kind.key, row->key) == 0)
		return NULL;
	return "not for you: made with lower limits, other rights or namespaces, or of what has "
	       "changed since";
}

struct listing {
	struct cay *c;
	int (*fn)(void *ctx, const struct pool_item *item);
	void *ctx;
};

static int give_row(void *ctx, const struct pool_row *row)
{
	const struct listing *l = ctx;
	const struct state *s = &l->c->state;
	const struct pool_item item = {
		.row = row,
		.ready = row->key[0] ? count_alive(s, row->key) : 0,
		.claimed = row->claimed + (row->key[0] ? ready_claims(s, row->key) : 0),
		.problem = row->problem[0] ? row->problem : not_for_us(l->c, row),
	};

	return l->fn(l->ctx, &item);
}

struct key_search {
	const char *key;
	bool found;
};

static int find_key(void *ctx, const struct pool_row *row)
{
	struct key_search *k = ctx;

	k->found |= strcmp(row->key, k->key) == 0;
	return 0;
}

/* A kind that only a server wants (ops/pool/demand.h). */
static int give_demand(const struct listing *l, const char *key, struct err *e)
{
	auto_done(demand_record_done) struct demand_record record = DEMAND_RECORD_INIT;
	auto_done(pool_row_done) struct pool_row row = POOL_ROW_INIT;
	struct key_search search = { .key = key };

	if (demand_read(&l->c->state, key, &record) < 0)
		return 0;
	if (catalog_each_pool(l->c->catalog, find_key, &search, e) < 0)
		return -1;
	if (search.found)
		return 0;
	(void)str_copy(row.template_, sizeof row.template_, str_of(record.template_));
	(void)str_copy(row.options, sizeof row.options, STR("by demand"));
	(void)str_copy(row.key, sizeof row.key, str_of(key));
	row.wanted = ready_wanted(&l->c->state, key);
	return l->fn(l->ctx, &(struct pool_item){ .row = &row,
						  .ready = count_alive(&l->c->state, key),
						  .claimed = ready_claims(&l->c->state, key) });
}

int op_pool_list(struct cay *c, int (*fn)(void *ctx, const struct pool_item *item), void *ctx,
		 long *ret_keeper, struct err *e)
{
	auto_free char(*keys)[READY_KEY] = NULL;
	struct listing l = { c, fn, ctx };
	size_t n = 0;
	int r;

	if (cay_catalog(c, e) < 0)
		return -1;
	*ret_keeper = ready_keeper(&c->state);
	background_keeper(c);
	r = catalog_each_pool(c->catalog, give_row, &l, e);
	if (ready_keys(&c->state, &keys, &n) < 0)
		n = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = give_demand(&l, keys[i], e);
	return r;
}
