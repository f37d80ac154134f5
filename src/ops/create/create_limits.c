/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "ops/create/create_check.h"
#include "ops/create/options.h"
#include "wire/frame.h"

enum {
	MEMORY_MIN = 4 << 20, /* init and a small program */
	DISK_MIN = 1 << 20,
	PIDS_MIN = 4, /* init, a shell, and one command */
	FILES_MIN = 16,
	CPU_MIN = 10, /* the kernel's smallest quota */
	CPU_MAX = 1000 * 1000,
	COUNT_MAX = 1 << 22, /* pid_max */
};

static int check_size(const char *name, uint64_t value, uint64_t min, struct err *e)
{
	char text[NUMBER_TEXT];

	if (!value || value >= min)
		return 0;
	(void)err_set(e, ERR_INVALID, "%" PRIu64 " bytes: at least %s", value,
		      number_size(min, text));
	return err_field(e, "limits.%s", name);
}

static int check_count(const char *name, uint64_t value, uint64_t min, struct err *e)
{
	if (!value || (value >= min && value <= COUNT_MAX))
		return 0;
	(void)err_set(e, ERR_INVALID, "%" PRIu64 ": from %" PRIu64 " to %d", value, min, COUNT_MAX);
	return err_field(e, "limits.%s", name);
}

static bool is_pause(const struct limits_spec *l)
{
	return l->on_timeout && strcmp(l->on_timeout, "pause") == 0;
}

int create_limits_check(const struct limits_spec *l, struct err *e)
{
	if (check_size("memory", l->memory, MEMORY_MIN, e) < 0 ||
	    check_size("disk", l->disk, DISK_MIN, e) < 0 ||
	    check_count("pids", l->pids, PIDS_MIN, e) < 0 ||
	    check_count("files", l->files, FILES_MIN, e) < 0)
		return -1;
	if (l->cpu_milli && (l->cpu_milli < CPU_MIN || l->cpu_milli > CPU_MAX)) {
		(void)err_set(e, ERR_INVALID, "%g: from 0.01 to 1000", (double)l->cpu_milli / 1000);
		return err_field(e, "limits.cpus");
	}
	if (l->on_timeout && strcmp(l->on_timeout, "kill") != 0 && !is_pause(l)) {
		(void)err_set(e, ERR_INVALID, "'%.100s': kill or pause", l->on_timeout);
		return err_field(e, "limits.on_timeout");
	}
	if (l->on_timeout && !l->ttl_ms && !l->idle_ms) {
		(void)err_set(e, ERR_INVALID, "needs a time to live or an idle time");
		return err_field(e, "limits.on_timeout");
	}
	return 0;
}

struct row {
	uint16_t tag;
	const char *key;
	uint64_t value;
};

#define ROWS(l) \
	{ \
		{ TAG_MEMORY, "memory", (l)->memory }, \
			{ TAG_CPU_MILLI, "cpu_milli", (l)->cpu_milli }, \
			{ TAG_PIDS, "pids", (l)->pids }, { TAG_FILES, "files", (l)->files }, \
			{ TAG_DISK, "disk", (l)->disk }, \
			{ TAG_TIMEOUT_MS, "call_timeout_ms", (l)->call_timeout_ms }, \
			{ TAG_TTL_MS, "ttl_ms", (l)->ttl_ms }, \
			{ TAG_IDLE_MS, "idle_ms", (l)->idle_ms }, \
			{ TAG_ON_TIMEOUT, "pauses", is_pause(l) }, \
			{ TAG_BEST_EFFORT, NULL, (l)->best_effort }, \
	}

int create_limits_put(const struct limits_spec *l, struct buf *b)
{
	const struct row rows[] = ROWS(l);
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows) && r == 0; i++)
		if (rows[i].value)
			r = field_put_u64(b, rows[i].tag, rows[i].value);
	return r;
}

void limits_options(const struct limits_spec *l, struct json *j)
{
	const struct row rows[] = ROWS(l);
	bool open = false;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!rows[i].key || !rows[i].value)
			continue;
		if (!open)
			json_put_obj(j, "limits");
		open = true;
		json_put_u64(j, rows[i].key, rows[i].value);
	}
	if (open)
		json_end(j);
}
