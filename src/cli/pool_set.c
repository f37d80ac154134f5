/* SPDX-License-Identifier: Apache-2.0 */
/* cay pool set: how many sandboxes of a kind are to be ready. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/keeper.h"
#include "cli/newborn.h"
#include "cli/pool_kind.h"
#include "store/snapshots.h"

enum { GONE_MS = 20000, READY_MS = 120000, LOOK_MS = 5 };

static struct sandbox_opts o;
static bool wait_for_them;
static struct opt opts[] = {
	{ "dir", 'd', OPT_LIST, "PATH[:DEST]", "As of cay create", &o.dirs },
	{ "profile", 0, OPT_TEXT, "dev|locked", "As of cay create", &o.profile },
	{ "trace", 0, OPT_TEXT, "full|calls", "As of cay create", &o.trace },
	{ "memory", 'm', OPT_SIZE, "SIZE", "As of cay create", &o.limits.memory },
	{ "cpus", 0, OPT_NUMBER, "N", "As of cay create", &o.limits.cpu_milli },
	{ "pids", 0, OPT_COUNT, "N", "As of cay create", &o.limits.pids },
	{ "files", 0, OPT_COUNT, "N", "As of cay create", &o.limits.files },
	{ "disk", 0, OPT_SIZE, "SIZE", "As of cay create", &o.limits.disk },
	{ "ro", 0, OPT_LIST, "PATH[:DEST]", "As of cay create", &o.ros },
	{ "net", 0, OPT_TEXT, "none", "As of cay create; no other is possible", &o.net.net },
	{ "allow", 0, OPT_LIST, "HOST", "Not possible: see below", &o.net.allow },
	{ "deny", 0, OPT_LIST, "HOST", "Not possible: see below", &o.net.deny },
	LIMIT_OPTS_EFFORT(o.limits),
	{ "wait", 0, OPT_FLAG, NULL, "Return when they are ready", &wait_for_them },
	{ 0 },
};

/* In this order whatever theirs was, so that the same options are the same text. */
static int options_text(const struct sandbox_plan *p, char *out, size_t size)
{
	const struct limit_opts *l = &o.limits;
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = { { "memory", l->memory },
			{ "pids", l->pids },
			{ "files", l->files },
			{ "disk", l->disk } };
	FILE *f = fmemopen(out, size, "w");

	if (!f)
		return -errno;
	for (int i = 0; i < p->nmounts; i++)
		fprintf(f, " --%s %s:%s", p->mounts[i].ro ? "ro" : "dir", p->mounts[i].path,
			p->mounts[i].dest);
	fputs(p->profile == PROFILE_LOCKED ? " --profile locked" : "", f);
	fputs(p->trace == TRACE_CALLS ? " --trace calls" : "", f);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (numbers[i].value)
			fprintf(f, " --%s %llu", numbers[i].name,
				(unsigned long long)numbers[i].value);
	if (l->cpu_milli)
		fprintf(f, " --cpus %g", (double)l->cpu_milli / 1000);
	fputs(l->best_effort ? " --best-effort" : "", f);
	if (fflush(f) != 0 || ferror(f)) {
		(void)fclose(f);
		return -E2BIG;
	}
	(void)fclose(f);
	memmove(out, out + (out[0] == ' '), strlen(out) + (out[0] != ' '));
	return 0;
}

static int parse_count(const char *text, uint32_t *ret, struct err *e)
{
	size_t n = strspn(text, "0123456789");
	unsigned long v = n && n < 8 && !text[n] ? strtoul(text, NULL, 10) : WARM_MOST + 1;

	if (v > WARM_MOST)
		return err_set(e, ERR_INVALID, "'%.100s': how many, from 0 to %d", text, WARM_MOST);
	*ret = (uint32_t)v;
	return 0;
}

/* As a fork of it would be, with the options that its sandbox had. */
static int like_snapshot(struct cli_store *s, struct pool_row *row, struct buf *recipe,
			 struct err *e)
{
	struct snapshot_row snap = { 0 };
	int r = catalog_find_snapshot(s->catalog, row->template_, &snap, e);

	if (r == 0 && recipe)
		r = catalog_recipe(s->catalog, snap.sandbox, recipe, e);
	(void)str_copy(row->snapshot, sizeof row->snapshot, str_of(snap.id));
	snapshot_row_done(&snap);
	return r;
}

/* Everything that can be wrong with it is known before there is a row. */
static int describe(struct cli_store *s, struct pool_row *row, struct err *e)
{
	auto_done(newborn_done) struct newborn n = { NEWBORN_INIT };
	auto_done(buf_done) struct buf own = BUF_INIT(LIMIT_FRAME_BODY);
	bool snap = strncmp(row->template_, "snap:", 5) == 0, plain = snap && !row->options[0];
	struct sandbox_opts of_it = o;

	of_it.template_ = row->template_;
	if (snap && like_snapshot(s, row, plain ? &own : NULL, e) < 0)
		return -1;
	if (!plain && newborn_plan(&n, &of_it, false, e) < 0)
		return -1;
	if (pool_kind_keep(plain ? buf_str(&own) : buf_str(&n.recipe), snap, &row->recipe) < 0)
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

/* Each has a range of uids, and others need some too. */
static int check_sum(struct cli_store *s, const struct pool_row *row, struct err *e)
{
	struct sum sum = { .but = row, .wanted = row->wanted };

	if (catalog_each_pool(s->catalog, add_wanted, &sum, e) < 0)
		return -1;
	if (sum.wanted <= WARM_MOST)
		return 0;
	return err_set(e, ERR_LIMIT, "%llu ready sandboxes in all pools; at most %d",
		       (unsigned long long)sum.wanted, WARM_MOST);
}

static bool is_gone(const struct state *s, const char *key)
{
	auto_close int fd = warm_open_kind(s, key);

	return fd < 0;
}

static size_t count_ready(const struct state *s, const char *key)
{
	auto_close int fd = warm_open_kind(s, key);
	auto_free char(*ids)[ID_SIZE] = NULL;
	size_t n = 0;

	return fd >= 0 && warm_list(fd, &ids, &n) == 0 ? n : 0;
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

/* The keeper tells nobody when it is done: look again now and then. */
static int look_again(const struct state *s, uint64_t end_ns, const char *what, struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * (long)NS_PER_MS };

	if (clock_mono_ns() > end_ns) {
		(void)err_set(e, ERR_TIMEOUT, "they do not %s", what);
		return err_hint(e, "see why: cay pool ls");
	}
	(void)nanosleep(&pause, NULL);
	keeper_tend(s);
	return 0;
}

static int await_ready(struct cli_store *s, const struct pool_row *row, const char *key,
		       struct err *e)
{
	uint64_t end = clock_mono_ns() + READY_MS * NS_PER_MS;
	struct trouble t = { .of = row };

	while (count_ready(&s->state, key) < row->wanted) {
		if (look_again(&s->state, end, "become ready", e) < 0 ||
		    catalog_each_pool(s->catalog, find_trouble, &t, e) < 0)
			return -1;
		if (t.text[0])
			return err_set(e, ERR_FAILED, "none can be made ready: %s", t.text);
	}
	return 0;
}

static int await_end(const struct state *s, const char *key, struct err *e)
{
	uint64_t end = clock_mono_ns() + GONE_MS * NS_PER_MS;

	while (!is_gone(s, key))
		if (look_again(s, end, "end", e) < 0)
			return -1;
	return 0;
}

struct keys {
	const char *template_, *options;
	char (*items)[WARM_KEY];
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
	memcpy(k->items[k->n++], row->key, WARM_KEY);
	return 0;
}

/* Without options: all pools of the template. */
static int end_pools(struct cli_store *s, const struct pool_row *row, struct err *e)
{
	struct keys keys = { row->template_, row->options[0] ? row->options : NULL, NULL, 0 };
	int n = 0, r = catalog_each_pool(s->catalog, add_key, &keys, e);

	if (r == 0)
		r = catalog_del_pools(s->catalog, keys.template_, keys.options, &n, e);
	if (r == 0 && n == 0) {
		r = err_set(e, ERR_NOT_FOUND, "no pool of '%.200s'%s%.200s", row->template_,
			    row->options[0] ? " with " : "", row->options);
		(void)err_hint(e, "list them with: cay pool ls");
	}
	if (r == 0)
		keeper_call(&s->state);
	for (size_t i = 0; i < keys.n && r == 0; i++)
		r = await_end(&s->state, keys.items[i], e);
	free(keys.items);
	return r;
}

static int set_pool(struct cli_store *s, struct pool_row *row, struct err *e)
{
	auto_done(pool_kind_done) struct pool_kind kind = POOL_KIND_INIT;
	int fd, r;

	if (check_sum(s, row, e) < 0 || describe(s, row, e) < 0 ||
	    pool_kind_find(s, row, &kind, e) < 0)
		return -1;
	/* From now on others see that there is something to keep, whatever becomes of us. */
	fd = warm_make_kind(&s->state, kind.key);
	if (fd < 0)
		return err_sys(e, -fd, "make %s/warm", s->state.dir);
	(void)close(fd);
	r = catalog_put_pool(s->catalog, row, e);
	keeper_call(&s->state); /* it removes what nobody wants, too */
	return r == 0 && wait_for_them ? await_ready(s, row, kind.key, e) : r;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(sandbox_plan_done) struct sandbox_plan plan = { 0 };
	auto_done(pool_row_done) struct pool_row row = POOL_ROW_INIT;

	if (cmd_need_args(ctx, 2, 2, "a TEMPLATE and how many", e) < 0 ||
	    parse_count(ctx->args[1], &row.wanted, e) < 0)
		return -1;
	if (!str_copy(row.template_, sizeof row.template_, str_of(ctx->args[0])) ||
	    !row.template_[0])
		return err_set(e, ERR_INVALID, "template '%.200s': 1 to 255 characters",
			       ctx->args[0]);
	if ((o.net.net && strcmp(o.net.net, "none") != 0) || o.net.allow.n || o.net.deny.n)
		return pool_kind_refuse(e);
	o.net.net = NULL;
	if (cli_store_open(&s, e) < 0 || sandbox_opts_resolve(&o, &s.state, &plan, e) < 0)
		return -1;
	if (options_text(&plan, row.options, sizeof row.options) < 0)
		return err_set(e, ERR_INVALID, "these options are too long for a pool");
	return row.wanted ? set_pool(&s, &row, e) : end_pools(&s, &row, e);
}

const struct cmd cmd_pool_set = {
	.name = "pool set",
	.synopsis = "[options] TEMPLATE N",
	.summary = "Keep N sandboxes ready, so that making one takes no time",
	.details =
		"TEMPLATE is as of cay create: host, dir:PATH, or snap:SNAPSHOT; a snapshot without "
		"options is kept as cay fork would make it. From then on cay run, create, fork and "
		"explore take a ready one where there is one of exactly the kind that they would "
		"make; name, host name, labels, environment, user, directory and times are given to "
		"it then, and it looks like a new one. A process in the background makes "
		"others in its place. What is ready is used only from the same control group, with "
		"the same limits, rights and namespaces as it was made with, and is made anew when "
		"the template, the host's packages or cay itself change. Ready sandboxes are not "
		"listed by cay ls; each takes about half a MiB of memory. 0 ends it and removes "
		"them; without options, all pools of the template. A sandbox with a network cannot be "
		"ready: its gateway begins with the policy of whoever asks, and all that it does goes "
		"into a trace, which one that is nobody's does not have. The storage for sandboxes' files "
		"is another thing: cay setup pool.",
	.examples = "cay pool set host 10\n"
		    "cay pool set snap:before-upgrade 100 --wait\n"
		    "cay pool set host 4 --profile locked --memory 2G\n"
		    "cay pool set host 0",
	.run = run,
	.opts = opts,
	.complete = "host|dir:|snap:",
};
