/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/call_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "ops/trace_open.h"
#include "trace/filter.h"

void path_list_done(struct path_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct path_list){ 0 };
}

int path_list_add(struct path_list *l, char *path)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 16;
		void *p = reallocarray(l->v, cap, sizeof *l->v);

		if (!p) {
			free(path);
			return -ENOMEM;
		}
		l->v = p;
		l->cap = cap;
	}
	l->v[l->n++] = path;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

bool path_list_has(const struct path_list *l, const char *path)
{
	return l->n && bsearch(&path, l->v, l->n, sizeof *l->v, by_text);
}

static int add_text(struct path_list *l, const json_t *event, const char *key)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_EVENT);
	const json_t *v = json_object_get(event, key);

	if (!v || trace_value_text(v, &b) < 0 || !b.len)
		return 0;
	return path_list_add(l, buf_take(&b, NULL));
}

static int take_line(struct trace_filter *f, struct str line, struct path_list *l, struct err *e)
{
	auto_done(trace_event_done) struct trace_event ev = { 0 };
	int r;

	if (trace_filter_skips(f, line))
		return 0;
	if (trace_event_parse(line, &ev, e) < 0)
		return -1;
	r = trace_filter_check(f, &ev);
	if (r > 0 && str_starts(ev.kind, STR("file."))) {
		r = add_text(l, ev.json, "path");
		if (r == 0)
			r = add_text(l, ev.json, "from");
	}
	return r < 0 ? err_sys(e, -r, "read the trace") : 0;
}

int call_paths_load(struct cay *c, const char *sandbox, const char *call, struct path_list *ret,
		    struct err *e)
{
	auto_done(trace_open_done) struct trace_found file = { .fd = FD_NONE };
	auto_done(trace_filter_done) struct trace_filter filter = { 0 };
	auto_done(trace_lines_done) struct trace_lines lines = { 0 };
	struct str line;
	int r;

	if (op_trace_open(c, sandbox, &file, e) < 0 ||
	    trace_filter_init(&filter, NULL, call, e) < 0)
		return -1;
	trace_lines_init(&lines, file.fd);
	while ((r = trace_lines_next(&lines, &line)) > 0)
		if (take_line(&filter, line, ret, e) < 0)
			return -1;
	if (r < 0)
		return err_sys(e, -r, "read the trace");
	if (!filter.call_seen)
		return err_set(e, ERR_NOT_FOUND, "sandbox '%s' has no call '%s'", sandbox, call);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof *ret->v, by_text);
	return 0;
}
