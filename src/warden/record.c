/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/record.h"

#include <errno.h>
#include <string.h>

#define KNOWN_NS (24 * 3600 * NS_PER_S)

static struct records *list_of(struct warden *w, const struct record *r)
{
	return &w->records[r->detached];
}

static void free_one(struct record *r)
{
	retain_done(&r->output);
	buf_done(&r->args);
	buf_done(&r->last);
	free(r);
}

static void unlink_one(struct records *list, struct record *r)
{
	struct record *before = NULL;

	for (struct record *at = list->first; at && at != r; at = at->next)
		before = at;
	if (before)
		before->next = r->next;
	else
		list->first = r->next;
	if (list->last == r)
		list->last = before;
	list->n--;
}

static bool is_over(const struct record *r)
{
	return !r->call && !r->viewers;
}

/* Drop the oldest records that nothing uses any more. */
static void trim(struct records *list, int most, uint64_t age_ns)
{
	uint64_t now = clock_mono_ns();
	struct record *next;

	for (struct record *r = list->first; r; r = next) {
		next = r->next;
		if (list->n <= most && (!is_over(r) || now - r->ended_ns < age_ns))
			return;
		if (!is_over(r))
			continue;
		unlink_one(list, r);
		free_one(r);
	}
}

/* Make room for the output of one more call: drop the output of the oldest ended call. */
static int make_room(struct warden *w, struct err *e)
{
	struct record *oldest = NULL;
	int n = 0;

	for (struct record *r = w->records[true].first; r; r = r->next) {
		if (!r->has_output)
			continue;
		n++;
		if (!oldest && is_over(r))
			oldest = r;
	}
	if (n < LIMIT_RETAINED)
		return 0;
	if (!oldest)
		return err_set(e, ERR_LIMIT, "%d detached calls are running", LIMIT_RETAINED);
	retain_drop(&oldest->output);
	oldest->has_output = false;
	return 0;
}

static void keep_args(struct record *r, const struct ask *a)
{
	struct str body = a->body;
	struct field f;

	while (field_next(&body, &f) > 0)
		if ((f.tag == TAG_ARG || f.tag == TAG_PATH) &&
		    field_put(&r->args, f.tag, f.value) < 0)
			return; /* the first arguments suffice */
}

void record_hash(const struct ask *a, uint8_t out[SHA256_SIZE])
{
	struct str body = a->body;
	struct sha256 s;
	struct field f;

	sha256_init(&s);
	while (field_next(&body, &f) > 0) {
		uint64_t head[2] = { f.tag, f.value.n };

		/* The client's window and terminal size are not part of the request. */
		if (f.tag == TAG_WINDOW || f.tag == TAG_ROWS || f.tag == TAG_COLS)
			continue;
		sha256_add(&s, head, sizeof head);
		sha256_add(&s, f.value.p, f.value.n);
	}
	sha256_end(&s, out);
}

int record_new(struct call *c, const struct ask *a, struct err *e)
{
	struct warden *w = c->w;
	struct records *list = &w->records[a->detached];
	struct record *r;

	if (a->detached && make_room(w, e) < 0)
		return -1;
	trim(list, a->detached ? LIMIT_CALLS_KNOWN - 1 : LIMIT_CALLS_KEPT - 1, KNOWN_NS);
	r = calloc(1, sizeof *r);
	if (!r)
		return err_sys(e, ENOMEM, "start a call");
	*r = (struct record){ .id = c->id,
			      .op = a->op,
			      .tty = a->tty,
			      .detached = a->detached,
			      .has_output = a->detached,
			      .start_ms = clock_real_ns() / NS_PER_MS,
			      .call = c,
			      .args = BUF_INIT(LIMIT_CALL_ARGS),
			      .last = BUF_INIT(LIMIT_CALL_RESULT) };
	(void)str_copy(r->call_id, sizeof r->call_id, a->call_id);
	retain_init(&r->output, a->retain);
	keep_args(r, a);
	if (a->detached)
		record_hash(a, r->hash);
	if (list->last)
		list->last->next = r;
	else
		list->first = r;
	list->last = r;
	list->n++;
	c->record = r;
	return 0;
}

void record_undo(struct call *c)
{
	struct record *r = c->record;

	if (!r)
		return;
	while (r->viewers)
		viewer_free(r->viewers);
	unlink_one(list_of(c->w, r), r);
	free_one(r);
	c->record = NULL;
}

void record_started(struct call *c, int pid)
{
	if (!c->record)
		return;
	c->record->pid = pid;
	viewers_tell(c->record);
}

/* Fields that do not fit are cut from the end: the policy's denials. */
static void keep_last(struct record *r, struct str body)
{
	struct field f;

	while (field_next(&body, &f) > 0)
		if (field_put(&r->last, f.tag, f.value) < 0)
			return;
}

void record_ended(struct call *c, uint8_t type, struct str body)
{
	struct record *r = c->record;

	if (!r)
		return;
	c->record = NULL;
	r->call = NULL;
	r->ended_ns = clock_mono_ns();
	r->last_type = type;
	keep_last(r, body);
	viewers_tell(r);
}

static struct record *newest(struct warden *w, bool (*is)(const struct record *, const void *),
			     const void *what)
{
	struct record *found = NULL;

	for (int detached = 0; detached < 2; detached++)
		for (struct record *r = w->records[detached].first; r; r = r->next)
			if (is(r, what) && (!found || r->id > found->id))
				found = r;
	return found;
}

static bool has_call_id(const struct record *r, const void *what)
{
	const struct str *id = what;

	return id->n && str_is(*id, r->call_id);
}

static bool has_number(const struct record *r, const void *what)
{
	const uint64_t *id = what;

	return r->id == *id;
}

struct record *record_find(struct warden *w, struct str call_id)
{
	return newest(w, has_call_id, &call_id);
}

struct record *record_by_number(struct warden *w, uint64_t id)
{
	return newest(w, has_number, &id);
}

static int put_record(struct buf *out, const struct record *r)
{
	const struct {
		uint16_t tag;
		uint64_t value;
	} numbers[] = {
		{ TAG_CALL, r->id },
		{ TAG_PID, (uint64_t)r->pid },
		{ TAG_OP, r->op },
		{ TAG_TTY, r->tty },
		{ TAG_DETACHED, r->detached },
		{ TAG_START_MS, r->start_ms },
		{ TAG_OFFSET, r->output.end },
		{ TAG_DROPPED, r->output.base },
	};
	int k = field_put_c(out, TAG_STATE, r->call ? "running" : "ended");

	for (size_t i = 0; i < ARRAY_LEN(numbers) && k == 0; i++)
		k = field_put_u64(out, numbers[i].tag, numbers[i].value);
	if (k == 0 && r->call_id[0])
		k = field_put_c(out, TAG_CALL_ID, r->call_id);
	if (k == 0 && r->call)
		k = field_put_u64(out, TAG_OUT_BYTES, r->call->out.bytes);
	if (k == 0 && r->call)
		k = field_put_u64(out, TAG_ERR_BYTES, r->call->err.bytes);
	if (k == 0)
		k = buf_add_str(out, buf_str(&r->args));
	return k < 0 ? k : buf_add_str(out, buf_str(&r->last));
}

static int send_record(struct client *c, uint32_t chan, const struct record *r)
{
	size_t at = 0;
	int k = conn_begin(&c->conn, MSG_C_CALL, chan, &at);

	if (k < 0)
		return k;
	k = put_record(&c->conn.out, r);
	if (k < 0) {
		conn_cancel(&c->conn, at);
		return k;
	}
	return conn_end(&c->conn, at, NULL, 0);
}

/* Send the records that are recent enough for the list; each kind has its own limit. */
static int send_records(struct client *c, uint32_t chan, const struct records *list)
{
	int skip = list->n > LIMIT_CALLS_LISTED / 2 ? list->n - LIMIT_CALLS_LISTED / 2 : 0;
	int k = 0;

	for (const struct record *r = list->first; r && k == 0; r = r->next)
		if (skip-- <= 0)
			k = send_record(c, chan, r);
	return k;
}

int record_list(struct client *c, const struct frame *f, struct err *e)
{
	struct str body = f->body, call_id = STR_NONE;
	struct warden *w = c->w;
	struct record *one;
	struct field field;
	uint64_t id = 0;
	int k;

	while (field_next(&body, &field) > 0)
		if (field.tag == TAG_CALL_ID)
			call_id = field.value;
		else if (field.tag == TAG_CALL && field_u64(field, &id) < 0)
			return err_set(e, ERR_INVALID, "bad request: a number is not eight bytes");
	if (id || call_id.n) {
		one = id ? record_by_number(w, id) : record_find(w, call_id);
		if (!one) {
			(void)err_set(e, ERR_NOT_FOUND, "there is no such call");
			return err_code(e, "call.not_found", w->spec.id);
		}
		k = send_record(c, f->chan, one);
	} else {
		k = send_records(c, f->chan, &w->records[false]);
		if (k == 0)
			k = send_records(c, f->chan, &w->records[true]);
	}
	if (k == 0)
		k = conn_send(&c->conn, MSG_C_END, f->chan, STR_NONE);
	return k < 0 ? err_sys(e, -k, "list calls") : 0;
}

void records_free(struct warden *w)
{
	for (int detached = 0; detached < 2; detached++) {
		struct records *list = &w->records[detached];

		while (list->first) {
			struct record *r = list->first;

			list->first = r->next;
			while (r->viewers)
				viewer_free(r->viewers);
			free_one(r);
		}
		*list = (struct records){ 0 };
	}
}
