/* SPDX-License-Identifier: Apache-2.0 */
#include "store/key_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

enum { DIGITS = 19 }; /* of KEY_LIMIT_NONE */

static const struct {
	const char *name;
	uint64_t value;
} limits[KEY_LIMITS] = {
	[KEY_SANDBOXES] = { "sandboxes", 256 },
	[KEY_MEMORY] = { "memory", KEY_LIMIT_NONE },
	[KEY_CPU_MILLI] = { "cpus", KEY_LIMIT_NONE },
	[KEY_SNAPSHOTS] = { "snapshots", 256 },
	[KEY_RATE] = { "rate", 1200 },
	[KEY_CALLS] = { "calls", 1024 },
	[KEY_BOX_MEMORY] = { "sandbox-memory", 2ull << 30 },
	[KEY_BOX_CPU_MILLI] = { "sandbox-cpus", 2000 },
	[KEY_BOX_PIDS] = { "sandbox-pids", 2048 },
	[KEY_BOX_DISK] = { "sandbox-disk", 10ull << 30 },
};

static const struct {
	const char *name;
	unsigned bits;
} scopes[] = {
	{ "all", SCOPE_ALL },		{ "run", SCOPE_ALL }, { "read", SCOPE_READ },
	{ "create", SCOPE_CREATE },	{ "use", SCOPE_USE }, { "network", SCOPE_NETWORK },
	{ "snapshot", SCOPE_SNAPSHOT },
};

const char *key_limit_name(enum key_limit which)
{
	return limits[which].name;
}

void key_limits_default(struct key_limits *ret)
{
	*ret = (struct key_limits){ .scope = SCOPE_ALL };
	for (int i = 0; i < KEY_LIMITS; i++)
		ret->of[i] = limits[i].value;
}

void key_limits_merge(struct key_limits *l, const struct key_limits *over)
{
	for (int i = 0; i < KEY_LIMITS; i++)
		if (over->of[i])
			l->of[i] = over->of[i];
	if (over->scope)
		l->scope = over->scope;
}

/* The text up to `end`, which is left out of both. */
static struct str cut(struct str *rest, char end)
{
	const char *at = rest->n ? memchr(rest->p, end, rest->n) : NULL;
	struct str one = { rest->p, at ? (size_t)(at - rest->p) : rest->n };

	*rest = at ? (struct str){ at + 1, rest->n - one.n - 1 } : STR_NONE;
	return one;
}

int key_scope_read(struct str text, unsigned *ret)
{
	unsigned bits = 0;

	if (text.n && text.p[text.n - 1] == ',')
		return -EINVAL;
	do {
		struct str one = cut(&text, ',');
		size_t i = 0;

		while (i < ARRAY_LEN(scopes) && !str_is(one, scopes[i].name))
			i++;
		if (i == ARRAY_LEN(scopes))
			return -EINVAL;
		bits |= scopes[i].bits;
	} while (text.n);
	*ret = bits;
	return 0;
}

int key_scope_put(unsigned scope, struct buf *out)
{
	const char *comma = "";
	int r = 0;

	if (scope == SCOPE_ALL)
		return buf_add_c(out, "all");
	for (size_t i = 2; i < ARRAY_LEN(scopes) && r == 0; i++) {
		if (!(scope & scopes[i].bits))
			continue;
		r = buf_printf(out, "%s%s", comma, scopes[i].name);
		comma = ",";
	}
	return r;
}

int key_limits_put(const struct key_limits *l, struct buf *out)
{
	const char *blank = "";
	int r = 0;

	for (int i = 0; i < KEY_LIMITS && r == 0; i++) {
		if (!l->of[i])
			continue;
		r = buf_printf(out, "%s%s=%" PRIu64, blank, limits[i].name, l->of[i]);
		blank = " ";
	}
	if (r < 0 || !l->scope)
		return r;
	r = buf_printf(out, "%sscope=", blank);
	return r < 0 ? r : key_scope_put(l->scope, out);
}

/* 1 to KEY_LIMIT_NONE, in the one form that key_limits_put() writes. */
static int read_number(struct str text, uint64_t *ret)
{
	uint64_t n = 0;

	if (!text.n || text.n > DIGITS || text.p[0] == '0')
		return -EBADMSG;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return -EBADMSG;
		n = n * 10 + (uint64_t)(text.p[i] - '0');
	}
	if (n > KEY_LIMIT_NONE)
		return -EBADMSG;
	*ret = n;
	return 0;
}

static int read_one(struct str name, struct str value, struct key_limits *l)
{
	if (str_is(name, "scope"))
		return l->scope || key_scope_read(value, &l->scope) < 0 ? -EBADMSG : 0;
	for (int i = 0; i < KEY_LIMITS; i++)
		if (str_is(name, limits[i].name))
			return l->of[i] ? -EBADMSG : read_number(value, &l->of[i]);
	return -EBADMSG;
}

int key_limits_read(struct str text, struct key_limits *ret)
{
	struct key_limits l = { 0 };

	while (text.n) {
		struct str value = cut(&text, ' '), name = cut(&value, '=');

		if (read_one(name, value, &l) < 0)
			return -EBADMSG;
	}
	*ret = l;
	return 0;
}

/* ---- arithmetic ---- */

static const char *show(enum key_limit which, uint64_t value, char out[NUMBER_TEXT])
{
	if (value == 0 || value >= KEY_LIMIT_NONE)
		return "no limit";
	if (which == KEY_MEMORY || which == KEY_BOX_MEMORY || which == KEY_BOX_DISK)
		return number_size(value, out);
	if (which == KEY_CPU_MILLI || which == KEY_BOX_CPU_MILLI)
		(void)snprintf(out, NUMBER_TEXT, "%g", (double)value / 1000);
	else
		(void)snprintf(out, NUMBER_TEXT, "%" PRIu64, value);
	return out;
}

static int quota_code(struct err *e, enum key_limit which)
{
	static const char *const codes[KEY_LIMITS] = {
		[KEY_SANDBOXES] = "quota.sandboxes",
		[KEY_MEMORY] = "quota.memory",
		[KEY_CPU_MILLI] = "quota.cpus",
		[KEY_BOX_MEMORY] = "quota.sandbox_memory",
		[KEY_BOX_CPU_MILLI] = "quota.sandbox_cpus",
		[KEY_BOX_PIDS] = "quota.sandbox_pids",
		[KEY_BOX_DISK] = "quota.sandbox_disk",
	};

	return err_code(e, codes[which], NULL);
}

/* One sandbox may not ask for more; `asked` 0 asks for everything. */
static int check_box(const struct key_limits *l, enum key_limit which, uint64_t asked,
		     struct err *e)
{
	char have[NUMBER_TEXT], want[NUMBER_TEXT];

	if (l->of[which] == KEY_LIMIT_NONE || (asked && asked <= l->of[which]))
		return 0;
	(void)err_set(e, ERR_NOT_ALLOWED, "%s: %s is more than the key allows: %s",
		      limits[which].name, show(which, asked, want),
		      show(which, l->of[which], have));
	return quota_code(e, which);
}

static int check_sum(const struct key_limits *l, enum key_limit which, uint64_t now, uint64_t more,
		     struct err *e)
{
	char most[NUMBER_TEXT], used[NUMBER_TEXT];
	uint64_t sum;

	if (l->of[which] == KEY_LIMIT_NONE)
		return 0;
	if (more && !__builtin_add_overflow(now, more, &sum) && sum <= l->of[which])
		return 0;
	(void)err_set(e, ERR_LIMIT, "the key's quota is reached: %s, in use %s, allowed %s",
		      limits[which].name, now ? show(which, now, used) : "0",
		      show(which, l->of[which], most));
	return quota_code(e, which);
}

int key_limits_admit(const struct key_limits *l, const struct key_use *now,
		     const struct key_use *more, struct err *e)
{
	if (check_box(l, KEY_BOX_MEMORY, more->memory, e) < 0 ||
	    check_box(l, KEY_BOX_CPU_MILLI, more->cpu_milli, e) < 0 ||
	    check_box(l, KEY_BOX_PIDS, more->pids, e) < 0 ||
	    check_box(l, KEY_BOX_DISK, more->disk, e) < 0)
		return -1;
	if (check_sum(l, KEY_SANDBOXES, now->sandboxes, more->sandboxes, e) < 0 ||
	    check_sum(l, KEY_MEMORY, now->memory, more->memory, e) < 0 ||
	    check_sum(l, KEY_CPU_MILLI, now->cpu_milli, more->cpu_milli, e) < 0)
		return -1;
	return 0;
}
