/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/limit_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/frame.h"
#include "wire/proto.h"

enum {
	MEMORY_MIN = 4 << 20, /* init and a small program */
	DISK_MIN = 1 << 20,
	PIDS_MIN = 4, /* init, a shell, and something that it runs */
	FILES_MIN = 16,
	CPU_MIN = 10, /* the kernel's smallest quota */
	CPU_MAX = 1000 * 1000,
	COUNT_MAX = 1 << 22, /* pid_max */
};

static int check_size(const char *name, uint64_t value, uint64_t min, struct err *e)
{
	char text[OUT_NUMBER];

	if (!value || value >= min)
		return 0;
	return err_set(e, ERR_INVALID, "--%s %" PRIu64 " bytes: at least %s", name, value,
		       limit_size(min, text));
}

static int check_count(const char *name, uint64_t value, uint64_t min, struct err *e)
{
	if (!value || (value >= min && value <= COUNT_MAX))
		return 0;
	return err_set(e, ERR_INVALID, "--%s %" PRIu64 ": from %" PRIu64 " to %d", name, value, min,
		       COUNT_MAX);
}

static bool is_pause(const struct limit_opts *l)
{
	return l->on_timeout && strcmp(l->on_timeout, "pause") == 0;
}

int limit_opts_check(const struct limit_opts *l, struct err *e)
{
	if (check_size("memory", l->memory, MEMORY_MIN, e) < 0 ||
	    check_size("call-memory", l->call_memory, MEMORY_MIN, e) < 0 ||
	    check_size("disk", l->disk, DISK_MIN, e) < 0 ||
	    check_count("pids", l->pids, PIDS_MIN, e) < 0 ||
	    check_count("files", l->files, FILES_MIN, e) < 0)
		return -1;
	if (l->cpu_milli && (l->cpu_milli < CPU_MIN || l->cpu_milli > CPU_MAX))
		return err_set(e, ERR_INVALID, "--cpus: from 0.01 to 1000");
	if (l->on_timeout && strcmp(l->on_timeout, "kill") != 0 && !is_pause(l))
		return err_set(e, ERR_INVALID, "--on-timeout '%.100s': kill or pause",
			       l->on_timeout);
	if (l->on_timeout && !l->ttl_ms && !l->idle_ms)
		return err_set(e, ERR_INVALID, "--on-timeout without --ttl or --idle");
	return 0;
}

struct row {
	uint16_t tag;
	const char *key;
	uint64_t value;
};

static int put_rows(struct buf *b, const struct row *rows, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		if (rows[i].value)
			r = field_put_u64(b, rows[i].tag, rows[i].value);
	return r;
}

#define BUILD_ROWS(l) \
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

int limit_opts_put_build(const struct limit_opts *l, struct buf *b)
{
	const struct row rows[] = BUILD_ROWS(l);

	return put_rows(b, rows, ARRAY_LEN(rows));
}

int limit_opts_put_exec(const struct limit_opts *l, struct buf *b)
{
	const struct row rows[] = {
		{ TAG_CALL_MEMORY, NULL, l->call_memory },
		{ TAG_BEST_EFFORT, NULL, l->best_effort },
	};

	return put_rows(b, rows, ARRAY_LEN(rows));
}

void limit_opts_spec(const struct limit_opts *l, struct out_json *j)
{
	const struct row rows[] = BUILD_ROWS(l);
	bool open = false;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!rows[i].key || !rows[i].value)
			continue;
		if (!open)
			out_json_open(j, "limits", '{');
		open = true;
		out_json_num(j, rows[i].key, (int64_t)rows[i].value);
	}
	if (open)
		out_json_close(j, '}');
}

const char *limit_size(uint64_t bytes, char out[OUT_NUMBER])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
	double v = (double)bytes / 1024;
	size_t u = 0;

	for (; v >= 1024 && u + 1 < ARRAY_LEN(units); u++)
		v /= 1024;
	(void)snprintf(out, OUT_NUMBER, v == (double)(uint64_t)v ? "%.0f %s" : "%.1f %s", v,
		       units[u]);
	return out;
}
