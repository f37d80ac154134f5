/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host/key_options.h"

#include <string.h>

#include "base/number.h"
#include "ops/create/create_check.h"

/* "60/min"; without a unit per minute. */
static int rate_parse(const char *text, uint64_t *ret)
{
	const char *slash = strchr(text, '/');
	char number[24];
	uint64_t n;

	if (slash && strcmp(slash, "/min") != 0 && strcmp(slash, "/s") != 0)
		return -1;
	if (!str_copy(number, sizeof number,
		      (struct str){ text, slash ? (size_t)(slash - text) : strlen(text) }) ||
	    count_parse(number, &n) < 0)
		return -1;
	return __builtin_mul_overflow(n, slash && slash[1] == 's' ? 60u : 1u, ret) ? -1 : 0;
}

static const struct {
	const char *option, *form;
	int (*parse)(const char *text, uint64_t *ret);
} rows[KEY_LIMITS] = {
	[KEY_SANDBOXES] = { "max-sandboxes", "a number such as 20", count_parse },
	[KEY_MEMORY] = { "memory", "a size such as 8G", size_parse },
	[KEY_CPU_MILLI] = { "cpus", "a number such as 4 or 0.5", number_parse },
	[KEY_SNAPSHOTS] = { "snapshots", "a number such as 20", count_parse },
	[KEY_RATE] = { "rate", "a rate such as 60/min or 2/s", rate_parse },
	[KEY_CALLS] = { "calls", "a number such as 100", count_parse },
	[KEY_BOX_MEMORY] = { "sandbox-memory", "a size such as 512M", size_parse },
	[KEY_BOX_CPU_MILLI] = { "sandbox-cpus", "a number such as 2 or 0.5", number_parse },
	[KEY_BOX_PIDS] = { "sandbox-pids", "a number such as 500", count_parse },
	[KEY_BOX_DISK] = { "sandbox-disk", "a size such as 5G", size_parse },
};

static int read_limit(enum key_limit which, const char *text, uint64_t *ret, struct err *e)
{
	if (strcmp(text, "none") == 0) {
		*ret = KEY_LIMIT_NONE;
		return 0;
	}
	if (rows[which].parse(text, ret) == 0 && *ret < KEY_LIMIT_NONE)
		return 0;
	return err_set(e, ERR_INVALID, "--%s '%.64s': write %s, or none", rows[which].option, text,
		       rows[which].form);
}

/* A key whose sandboxes could never be made is of no use to anybody. */
static int check_sandbox(const struct key_limits *l, struct err *e)
{
	struct limits_spec spec = { 0 };
	uint64_t *const to[] = { &spec.memory, &spec.cpu_milli, &spec.pids, &spec.disk };
	static const enum key_limit from[] = { KEY_BOX_MEMORY, KEY_BOX_CPU_MILLI, KEY_BOX_PIDS,
					       KEY_BOX_DISK };

	for (size_t i = 0; i < ARRAY_LEN(from); i++)
		if (l->of[from[i]] != KEY_LIMIT_NONE)
			*to[i] = l->of[from[i]];
	return create_limits_check(&spec, e) < 0 ? err_ctx(e, "limits of each sandbox") : 0;
}

int key_opts_read(const struct key_opts *o, struct key_limits *ret, struct err *e)
{
	struct key_limits l = { 0 };

	for (int i = 0; i < KEY_LIMITS; i++)
		if (o->limits[i] && read_limit((enum key_limit)i, o->limits[i], &l.of[i], e) < 0)
			return -1;
	if (o->scope && key_scope_read(str_of(o->scope), &l.scope) < 0)
		return err_set(e, ERR_INVALID,
			       "--scope '%.64s': write all, or some of read, create, use, network, "
			       "snapshot with commas",
			       o->scope);
	if (check_sandbox(&l, e) < 0)
		return -1;
	*ret = l;
	return 0;
}
