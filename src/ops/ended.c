/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/ended.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/dir.h"
#include "ops/operation.h"
#include "ops/reconcile.h"
#include "store/end_note.h"
#include "store/snapshots.h"
#include "store/trace_files.h"
#include "wire/json_write.h"

/* An ended sandbox before its trace is read. */
struct ended_id {
	char id[ID_SIZE];
	uint64_t mtime_ns;
};

struct ended_ids {
	struct ended_id *all;
	size_t n;
};

static void ended_ids_done(struct ended_ids *l)
{
	free(l->all);
}
DEFINE_AUTO(struct ended_ids, ended_ids_done)

static int by_id(const void *a, const void *b)
{
	const struct ended_id *x = a, *y = b;
	int r = strcmp(x->id, y->id);

	return r ? r : x->mtime_ns < y->mtime_ns ? 1 : x->mtime_ns > y->mtime_ns ? -1 : 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct ended_id *x = a, *y = b;

	return x->mtime_ns < y->mtime_ns   ? 1
	       : x->mtime_ns > y->mtime_ns ? -1
					   : strcmp(x->id, y->id);
}

/* Merge the entries of all files of a sandbox into the newest entry. */
static void unite(struct ended_ids *l)
{
	size_t n = 0;

	if (l->n)
		qsort(l->all, l->n, sizeof *l->all, by_id);
	for (size_t i = 0; i < l->n; i++)
		if (!n || strcmp(l->all[n - 1].id, l->all[i].id) != 0)
			l->all[n++] = l->all[i];
	l->n = n;
	if (n)
		qsort(l->all, n, sizeof *l->all, newest_first);
}

static int read_ids(struct cay *c, struct ended_ids *ret, struct err *e)
{
	auto_done(dir_free) DIR *d = dir_open_at(c->state.fd, "ended");

	if (!d)
		return errno == ENOENT ? 0 : err_sys(e, errno, "look for ended sandboxes");
	for (struct dirent *x = readdir(d); x; x = readdir(d)) {
		struct ended_id one;
		struct stat st;
		void *more;

		if (!state_is_ended_file(x->d_name, one.id) ||
		    fstatat(dirfd(d), x->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		one.mtime_ns =
			(uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
		more = reallocarray(ret->all, ret->n + 1, sizeof *ret->all);
		if (!more)
			return err_sys(e, ENOMEM, "list the ended sandboxes");
		ret->all = more;
		ret->all[ret->n++] = one;
	}
	unite(ret);
	return 0;
}

static void take_note(const struct state *s, struct ended_row *row)
{
	json_t *note = end_note_read(s, row->id) ?: end_note_make(s, row->id);
	const char *reason = json_string_value(json_object_get(note, "reason"));
	const char *log = json_string_value(json_object_get(note, "log"));

	(void)snprintf(row->cause, sizeof row->cause, "lost");
	(void)snprintf(row->reason, sizeof row->reason, "%s",
		       reason ? reason : "its trace has no end");
	(void)snprintf(row->log, sizeof row->log, "%s", log ? log : "");
	json_decref(note);
}

/* Reads the trace, or else the note that reconcile wrote when it found the sandbox dead. */
void ended_row_read(const struct state *s, const char *id, struct ended_row *ret)
{
	struct ended_row row = { 0 };
	auto_close int first = FD_NONE, last = FD_NONE;
	uint64_t start;
	struct stat st;

	(void)str_copy(row.id, sizeof row.id, str_of(id));
	first = trace_file_find(s->fd, id, 0, &start);
	last = trace_file_last(s->fd, id, &start);
	if (first >= 0 && last >= 0)
		trace_story_read(first, last, &row.story);
	if (last >= 0 && fstat(last, &st) == 0)
		row.ended_ns =
			(uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	if (row.story.has_end) {
		/* Older wardens recorded only a reason. */
		(void)snprintf(row.cause, sizeof row.cause, "%s",
			       row.story.cause[0] ? row.story.cause : "ended");
		(void)snprintf(row.reason, sizeof row.reason, "%s", row.story.reason);
	} else {
		take_note(s, &row);
	}
	*ret = row;
}

static void ended_row_done(struct ended_row *r)
{
	trace_story_done(&r->story);
}

void ended_list_done(struct ended_list *l)
{
	for (int i = 0; i < l->n; i++)
		ended_row_done(&l->rows[i]);
	free(l->rows);
	*l = (struct ended_list){ 0 };
}

int op_ended(struct cay *c, int most, struct ended_list *ret, struct err *e)
{
	auto_done(ended_ids_done) struct ended_ids ids = { 0 };
	struct ended_list l = { 0 };

	if (read_ids(c, &ids, e) < 0)
		return -1;
	if (most > 0 && ids.n > (size_t)most)
		ids.n = (size_t)most;
	l.rows = calloc(ids.n + 1, sizeof *l.rows);
	if (!l.rows)
		return err_sys(e, ENOMEM, "list the ended sandboxes");
	for (size_t i = 0; i < ids.n; i++)
		ended_row_read(&c->state, ids.all[i].id, &l.rows[l.n++]);
	*ret = l;
	return 0;
}

/* Returns the first match, which is the newest. */
static int find_name(struct cay *c, const struct ended_ids *ids, const char *name,
		     char ret_id[ID_SIZE])
{
	for (size_t i = 0; i < ids->n; i++) {
		struct ended_row row;
		bool found;

		ended_row_read(&c->state, ids->all[i].id, &row);
		found = strcmp(row.story.name, name) == 0;
		ended_row_done(&row);
		if (!found)
			continue;
		memcpy(ret_id, ids->all[i].id, ID_SIZE);
		return 1;
	}
	return 0;
}

int ended_find(struct cay *c, const char *ref, char ret_id[ID_SIZE], struct err *e)
{
	auto_done(ended_ids_done) struct ended_ids ids = { 0 };
	const struct ended_id *match = NULL;
	int matches = 0;

	if (read_ids(c, &ids, e) < 0)
		return -1;
	for (size_t i = 0; i < ids.n; i++)
		if (strcmp(ids.all[i].id, ref) == 0) {
			memcpy(ret_id, ids.all[i].id, ID_SIZE);
			return 1;
		}
	if (find_name(c, &ids, ref, ret_id) > 0)
		return 1;
	for (size_t i = 0; i < ids.n; i++)
		if (strncmp(ids.all[i].id, ref, strlen(ref)) == 0) {
			match = &ids.all[i];
			matches++;
		}
	if (matches > 1)
		return err_set(e, ERR_INVALID, "'%s' is ambiguous: %d ended sandboxes begin so",
			       ref, matches);
	if (match)
		memcpy(ret_id, match->id, ID_SIZE);
	return matches;
}

void why_result_done(struct why_result *r)
{
	ended_row_done(&r->row);
}

static int why_listed(struct cay *c, struct sandbox_row *row, struct why_result *ret, struct err *e)
{
	auto_done(snapshot_row_done) struct snapshot_row snap = { 0 };

	if (state_is_alive(&c->state, row->id)) {
		ret->state = "running";
		(void)str_copy(ret->row.id, sizeof ret->row.id, str_of(row->id));
		(void)str_copy(ret->row.story.name, sizeof ret->row.story.name, str_of(row->name));
		return 0;
	}
	/* The row may be outdated; after reconcile there may be no row. */
	if (reconcile_one(c->catalog, &c->state, row->id, e) < 0)
		return -1;
	ended_row_read(&c->state, row->id, &ret->row);
	ret->state = "lost";
	if (catalog_last_snapshot(c->catalog, row->id, SNAPSHOT_LOST, &snap, e) < 0)
		return -1;
	(void)str_copy(ret->snapshot, sizeof ret->snapshot, str_of(snap.id));
	return 0;
}

int op_why(struct cay *c, const char *ref, struct why_result *ret, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	auto_done(why_result_done) struct why_result r = { .state = "ended" };
	struct err missing = { 0 };
	char id[ID_SIZE];
	int found;

	if (cay_catalog(c, e) < 0)
		return -1;
	if (catalog_find(c->catalog, ref, &row, &missing) == 0) {
		if (why_listed(c, &row, &r, e) < 0)
			return -1;
	} else {
		found = missing.kind == ERR_NOT_FOUND ? ended_find(c, ref, id, e) : 0;
		if (found < 0)
			return -1;
		if (found == 0) {
			*e = missing;
			return -1;
		}
		ended_row_read(&c->state, id, &r.row);
	}
	*ret = r;
	r = (struct why_result){ 0 };
	return 0;
}

static void put_text(struct json *j, const char *key, const char *text)
{
	json_put_c(j, key, text && text[0] ? text : NULL);
}

static void put_number(struct json *j, const char *key, int64_t n)
{
	if (n >= 0)
		json_put_i64(j, key, n);
}

static void put_call(struct json *j, const struct trace_story *s)
{
	if (!s->call)
		return;
	json_put_obj(j, "last_call");
	json_put_u64(j, "call", s->call);
	put_text(j, "reason", s->call_reason);
	put_number(j, "code", s->code);
	put_number(j, "signal", s->signal);
	json_end(j);
}

static void put_end(struct json *j, const struct ended_row *r, const char *state)
{
	const struct trace_story *s = &r->story;

	put_text(j, "id", r->id);
	put_text(j, "name", s->name);
	put_text(j, "state", state);
	put_text(j, "template", s->template_);
	put_text(j, "created", s->created);
	put_text(j, "ended", s->last);
	put_text(j, "cause", r->cause);
	put_text(j, "reason", r->reason);
	put_text(j, "by", s->by);
	put_number(j, "by_pid", s->by[0] || s->by_pid > 0 ? s->by_pid : -1);
	put_number(j, "by_uid", s->by[0] || s->by_pid > 0 ? s->by_uid : -1);
	put_text(j, "log", r->log);
	json_put_raw(j, "argv", s->argv ? str_of(s->argv) : STR("null"));
	put_call(j, s);
	json_put_u64(j, "events", s->events);
}

void json_ended(struct json *j, const struct ended_row *r)
{
	json_obj(j);
	put_end(j, r, "ended");
	json_end(j);
}

void json_why(struct json *j, const struct why_result *r)
{
	json_obj(j);
	if (strcmp(r->state, "running") == 0) {
		put_text(j, "id", r->row.id);
		put_text(j, "name", r->row.story.name);
		put_text(j, "state", r->state);
	} else {
		put_end(j, &r->row, r->state);
		put_text(j, "snapshot", r->snapshot);
	}
	json_end(j);
}
