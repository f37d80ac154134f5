/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandboxes.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/tidy.h"
#include "store/snapshots.h"

enum { RETRY_MS = 20 };

int cli_store_open_state(struct cli_store *s, struct err *e)
{
	*s = (struct cli_store){ 0 };
	if (state_open(&s->state, e) < 0)
		return -1;
	s->open = true;
	return 0;
}

int cli_store_open(struct cli_store *s, struct err *e)
{
	return cli_store_open_state(s, e) < 0 ? -1 : catalog_open(&s->state, &s->catalog, e);
}

void cli_store_done(struct cli_store *s)
{
	if (s->catalog)
		catalog_close(s->catalog);
	if (s->deep)
		tidy_start(s->state.dir);
	if (s->open)
		state_done(&s->state);
	*s = (struct cli_store){ 0 };
}

static struct sandbox_row *list_room(struct sandbox_list *l)
{
	struct sandbox_row *rows = reallocarray(l->rows, (size_t)l->n + 1, sizeof *rows);

	if (!rows)
		return NULL;
	l->rows = rows;
	return &rows[l->n];
}

static int add_copy(void *ctx, const struct sandbox_row *row)
{
	struct sandbox_list *l = ctx;
	struct sandbox_row *to = list_room(l);
	char *spec = row->spec ? strdup(row->spec) : NULL;

	if (!to || (row->spec && !spec)) {
		free(spec);
		return -ENOMEM;
	}
	*to = *row;
	to->spec = spec;
	l->n++;
	return 0;
}

struct adding {
	struct sandbox_list *list;
	bool failed;
};

static int add_row(void *ctx, const struct sandbox_row *row)
{
	struct adding *a = ctx;

	a->failed = add_copy(a->list, row) < 0;
	return a->failed;
}

int sandbox_list_load(struct sandbox_list *l, struct cli_store *s, struct err *e)
{
	struct adding a = { .list = l };

	if (catalog_each(s->catalog, add_row, &a, e) < 0)
		return -1;
	return a.failed ? err_sys(e, ENOMEM, "listing the sandboxes") : 0;
}

int sandbox_list_find(struct sandbox_list *l, struct cli_store *s, const char *ref, struct err *e)
{
	struct sandbox_row *to = list_room(l);

	if (!to)
		return err_sys(e, ENOMEM, "sandbox '%s'", ref);
	*to = (struct sandbox_row){ 0 };
	if (catalog_find(s->catalog, ref, to, e) < 0)
		return -1;
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->rows[i].id, to->id) == 0) {
			sandbox_row_done(to);
			return 0;
		}
	l->n++;
	return 0;
}

void sandbox_list_done(struct sandbox_list *l)
{
	for (int i = 0; i < l->n; i++)
		sandbox_row_done(&l->rows[i]);
	free(l->rows);
	*l = (struct sandbox_list){ 0 };
}

/* A lock has no event to wait for that could not be missed: look again now and then. */
static int lock_within(struct cli_store *s, const char *id, int wait_ms, int *ret_fd, struct err *e)
{
	uint64_t end = clock_mono_ns() + (uint64_t)wait_ms * NS_PER_MS;
	const struct timespec pause = { .tv_nsec = RETRY_MS * (long)NS_PER_MS };

	for (;;) {
		if (state_lock(&s->state, id, ret_fd, e) == 0)
			return 0;
		if (e->kind != ERR_CONFLICT || clock_mono_ns() >= end)
			return -1;
		(void)nanosleep(&pause, NULL);
	}
}

int sandbox_settle(struct cli_store *s, const char *id, int wait_ms, struct err *e)
{
	int lock;

	if (lock_within(s, id, wait_ms, &lock, e) < 0)
		return -1;
	if (state_remove(&s->state, id, lock, e) < 0)
		return -1;
	if (catalog_del_sandbox(s->catalog, id, e) < 0)
		return -1;
	catalog_free_layers_soon(s->catalog, &s->state);
	return 0;
}

json_t *spec_load(const struct sandbox_row *row)
{
	json_t *spec = row->spec ? json_loads(row->spec, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (json_is_object(spec))
		return spec;
	json_decref(spec);
	return NULL;
}

uint64_t spec_seen_ns(const char *spec)
{
	auto_done(spec_free) json_t *v = spec ? json_loads(spec, 0, NULL) : NULL;

	return (uint64_t)json_integer_value(json_object_get(v, "seen_ns"));
}

const char *spec_text(const json_t *v, const char *key)
{
	if (key)
		v = json_object_get(v, key);
	if (json_is_object(v))
		v = json_object_get(v, "b64");
	return json_string_value(v);
}

const char *spec_first_dir(const json_t *spec)
{
	return spec_text(json_array_get(json_object_get(spec, "dirs"), 0), "path");
}

bool spec_has_label(const json_t *spec, const char *want)
{
	const char *eq = strchr(want, '=');
	auto_free char *key = eq ? strndup(want, (size_t)(eq - want)) : strdup(want);
	const char *value = key ? spec_text(json_object_get(spec, "labels"), key) : NULL;

	return value && (!eq || strcmp(value, eq + 1) == 0);
}

static void put_argument(FILE *f, const char *arg)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "@%+=:,./_-";

	if (arg[0] && arg[strspn(arg, plain)] == '\0') {
		fputs(arg, f);
		return;
	}
	putc('\'', f);
	for (; *arg; arg++)
		if (*arg == '\'')
			fputs("'\\''", f);
		else
			putc(*arg, f);
	putc('\'', f);
}

char *argv_text(const char *json)
{
	auto_done(spec_free) json_t *args = json ? json_loads(json, 0, NULL) : NULL;
	char *out = NULL;
	size_t n = 0;
	FILE *f;

	if (!json_is_array(args))
		return NULL;
	f = open_memstream(&out, &n);
	if (!f)
		return NULL;
	for (size_t i = 0; i < json_array_size(args); i++) {
		const json_t *v = json_array_get(args, i);
		const char *arg = spec_text(v, NULL);

		fputs(i ? " " : "", f);
		fputs(json_is_object(v) ? "b64:" : "", f);
		put_argument(f, arg ? arg : "?");
	}
	if (fclose(f) == 0)
		return out;
	free(out);
	return NULL;
}
