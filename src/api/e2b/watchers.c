/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filesystem.CreateWatcher, GetWatcherEvents, RemoveWatcher: events are kept until they are
 * fetched. A watcher lives as long as the front's link to its sandbox. One whose events nobody
 * fetches stops its call inside, as a full pipe would.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/e2b/watch.h"
#include "base/clock.h"
#include "wire/json_write.h"

enum { WATCHERS_MOST = 64, KEPT_MOST = 1 << 20, KEPT_FULL = 512 * 1024 };

/* A request for the events, until the call inside has told all of them. */
struct asker {
	struct envd *v;
	struct watcher *watcher;
	struct asker *next;
};

struct watcher {
	struct watch w;
	struct box *box;
	struct watcher *next;
	char id[32];
	struct envd *made_by; /* CreateWatcher, until it is answered */
	struct asker *askers; /* oldest first */
	struct buf kept;      /* events as JSON, with commas between them */
};

static void watcher_free(struct watcher *w)
{
	for (struct watcher **at = &w->box->watchers; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			break;
		}
	watch_stop(&w->w);
	buf_done(&w->kept);
	free(w);
}

static void remove_asker(struct asker *a)
{
	for (struct asker **at = a->watcher ? &a->watcher->askers : NULL; at && *at;
	     at = &(*at)->next)
		if (*at == a) {
			*at = a->next;
			break;
		}
	a->watcher = NULL;
}

static void answer_events(struct envd *v, struct watcher *w)
{
	auto_done(buf_done) struct buf out = BUF_INIT(KEPT_MOST + 64);

	if (buf_add_c(&out, "{\"events\":[") < 0 || buf_add_str(&out, buf_str(&w->kept)) < 0 ||
	    buf_add_c(&out, "]}") < 0) {
		envd_fail(v, "internal", "out of memory");
		return;
	}
	buf_clear(&w->kept);
	envd_answer(v, &out);
}

/* ---- what the call tells ---- */

static void on_ready(struct watch *at)
{
	struct watcher *w = container_of(at, struct watcher, w);
	auto_done(buf_done) struct buf out = BUF_INIT(128);
	struct envd *v = TAKE_PTR(w->made_by);

	if (!v)
		return;
	v->own = NULL;
	v->own_done = NULL;
	if (buf_printf(&out, "{\"watcherId\":\"%s\"}", w->id) == 0)
		envd_answer(v, &out);
}

static int on_event(struct watch *at, const struct watch_event *e)
{
	struct watcher *w = container_of(at, struct watcher, w);
	size_t before = w->kept.len;
	struct json j;

	if (e->kind == WATCH_SYNC) {
		struct asker *a = w->askers;

		if (a) {
			remove_asker(a);
			answer_events(a->v, w);
		}
		return 0;
	}
	json_init(&j, &w->kept);
	if (before && buf_add_c(&w->kept, ",") < 0)
		return 1;
	watch_put(&j, e);
	if (json_done(&j) < 0)
		buf_cut(&w->kept, before);
	return w->kept.len > KEPT_FULL;
}

static void on_failed(struct watch *at, const char *code, const char *text)
{
	struct watcher *w = container_of(at, struct watcher, w);
	struct envd *v = TAKE_PTR(w->made_by);

	if (v) {
		v->own = NULL;
		v->own_done = NULL;
		envd_fail(v, code, "%s", text);
	}
	while (w->askers) {
		struct asker *a = w->askers;

		remove_asker(a);
		envd_fail(a->v, code, "%s", text);
	}
	watcher_free(w);
}

/* ---- the RPCs ---- */

static void creator_done(struct envd *v)
{
	watcher_free(v->own);
}

void filesystem_create_watcher(struct envd *v, struct box *b, const json_t *body)
{
	static const struct watch_ops ops = { on_ready, on_event, on_failed };
	struct watcher *w;
	int n = 0;

	for (w = b->watchers; w; w = w->next)
		n++;
	if (n >= WATCHERS_MOST) {
		envd_fail(v, "resource_exhausted", "at most %d watchers of one sandbox",
			  WATCHERS_MOST);
		return;
	}
	w = calloc(1, sizeof *w);
	if (!w) {
		envd_fail(v, "internal", "out of memory");
		return;
	}
	/* An id of an earlier front must not name another watcher. */
	(void)snprintf(w->id, sizeof w->id, "w%llx", (unsigned long long)clock_real_ns());
	w->box = b;
	w->made_by = v;
	w->kept = (struct buf)BUF_INIT(KEPT_MOST);
	w->next = b->watchers;
	b->watchers = w;
	v->own = w;
	v->own_done = creator_done;
	(void)watch_start(&w->w, v, b, body, &ops);
}

static struct watcher *named(struct envd *v, struct box *b, const json_t *body)
{
	const char *id = json_string_value(json_object_get(body, "watcherId"));
	struct watcher *w = b->watchers;

	while (w && (!id || w->made_by || strcmp(w->id, id) != 0))
		w = w->next;
	if (!w)
		envd_fail(v, "not_found", "watcher with id %.64s not found", id ? id : "");
	return w;
}

static void asker_done(struct envd *v)
{
	remove_asker(v->own);
	free(v->own);
}

void filesystem_watcher_events(struct envd *v, struct box *b, const json_t *body)
{
	struct watcher *w = named(v, b, body);
	struct asker *a, **last;

	if (!w)
		return;
	/* Whatever happened before this request is told before the byte comes back. */
	if (w->w.full || link_call_write(&w->w.call.call, STR("?")) != 1) {
		answer_events(v, w);
		watch_room(&w->w);
		return;
	}
	a = calloc(1, sizeof *a);
	if (!a) {
		envd_fail(v, "internal", "out of memory");
		return;
	}
	*a = (struct asker){ .v = v, .watcher = w };
	for (last = &w->askers; *last; last = &(*last)->next)
		;
	*last = a;
	v->own = a;
	v->own_done = asker_done;
}

void filesystem_remove_watcher(struct envd *v, struct box *b, const json_t *body)
{
	struct watcher *w = named(v, b, body);

	if (!w)
		return;
	while (w->askers) {
		struct asker *a = w->askers;

		remove_asker(a);
		envd_fail(a->v, "not_found", "watcher with id %s was removed", w->id);
	}
	watcher_free(w);
	http_answer(v->q->http, 200, "application/json", STR("{}"));
}
