/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "trace/text.h"

enum { KIND_SIZE = 64 }; /* longest known kind */

static bool kind_matches(const char *pattern, const char *kind)
{
	size_t n = strlen(pattern);

	if (strncmp(kind, pattern, n) == 0 && (kind[n] == '\0' || kind[n] == '.'))
		return true;
	return fnmatch(pattern, kind, 0) == 0;
}

static int check_kind(const char *pattern, struct err *e)
{
	auto_done(buf_done) struct buf known = BUF_INIT(sizeof e->hint);
	int r = 0;

	for (size_t i = 0; trace_kinds[i]; i++)
		if (kind_matches(pattern, trace_kinds[i]))
			return 0;
	for (size_t i = 0; trace_kinds[i] && r == 0; i++) {
		int n = (int)strcspn(trace_kinds[i], ".");

		if (i == 0 || strncmp(trace_kinds[i], trace_kinds[i - 1], (size_t)n + 1) != 0)
			r = buf_printf(&known, " %.*s", n, trace_kinds[i]);
	}
	err_set(e, ERR_INVALID, "no kind of event matches '%s'", pattern);
	return err_hint(e, "kinds are:%s; or one of them in full, such as process.exec",
			known.data ? known.data : "");
}

static int add_call(struct trace_filter *f, uint32_t call)
{
	uint32_t *more = reallocarray(f->calls, f->ncalls + 1, sizeof *more);

	if (!more)
		return -ENOMEM;
	f->calls = more;
	f->calls[f->ncalls++] = call;
	return 0;
}

/* True, and the number, if the text can be a call's number. */
static bool number_of(const char *text, uint32_t *ret)
{
	unsigned long v;

	if (strspn(text, "0123456789") != strlen(text) || text[0] == '\0' || strlen(text) > 10)
		return false;
	v = strtoul(text, NULL, 10);
	*ret = (uint32_t)v;
	return v > 0 && v <= UINT32_MAX;
}

int trace_filter_init(struct trace_filter *f, const char *kind, const char *call, struct err *e)
{
	uint32_t number;

	*f = (struct trace_filter){ .kind = kind, .call = call };
	if (kind && check_kind(kind, e) < 0)
		return -1;
	if (call && number_of(call, &number) && add_call(f, number) < 0)
		return err_sys(e, ENOMEM, "cannot filter by call");
	return 0;
}

void trace_filter_done(struct trace_filter *f)
{
	free(f->calls);
	*f = (struct trace_filter){ 0 };
}

bool trace_filter_passes_all(const struct trace_filter *f)
{
	return !f->kind && !f->call;
}

static bool is_wanted(const struct trace_filter *f, int64_t call)
{
	for (size_t i = 0; i < f->ncalls; i++)
		if (f->calls[i] == call)
			return true;
	return false;
}

/* A call starts: if its caller gave it the selected id, select its number from now on. */
static int learn(struct trace_filter *f, const struct trace_event *ev)
{
	const char *id = json_string_value(json_object_get(ev->json, "call_id"));
	uint32_t number;

	if (!str_is(ev->kind, "call.start") || !id || number_of(f->call, &number) ||
	    strcmp(id, f->call) != 0)
		return 0;
	return add_call(f, ev->call);
}

bool trace_filter_skips(const struct trace_filter *f, struct str line)
{
	char kind[KIND_SIZE];
	struct str view;
	uint32_t call;
	bool kind_ok;

	if (!trace_event_glance(line, &view, &call) || !str_copy(kind, sizeof kind, view))
		return false;
	kind_ok = !f->kind || kind_matches(f->kind, kind);
	if (!f->call)
		return !kind_ok;
	if (strcmp(kind, "call.start") == 0)
		return false;
	/* A file event may name further calls. */
	if (!is_wanted(f, call) && strncmp(kind, "file.", 5) != 0)
		return true;
	return !kind_ok && f->call_seen;
}

static bool call_passes(const struct trace_filter *f, const struct trace_event *ev)
{
	const json_t *calls = json_object_get(ev->json, "calls");

	if (ev->call && is_wanted(f, ev->call))
		return true;
	for (size_t i = 0; i < json_array_size(calls); i++)
		if (is_wanted(f, json_integer_value(json_array_get(calls, i))))
			return true;
	return false;
}

int trace_filter_check(struct trace_filter *f, const struct trace_event *ev)
{
	if (f->call) {
		int r = learn(f, ev);

		if (r < 0)
			return r;
		if (!call_passes(f, ev))
			return 0;
		f->call_seen = true;
	}
	return !f->kind || (str_is_text(ev->kind) && kind_matches(f->kind, ev->kind.p));
}
