/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that view detached calls (record.h). */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "warden/record.h"

struct viewer *viewer_of(const struct client *c, uint32_t chan)
{
	for (struct viewer *v = c->viewers; v; v = v->next_of_client)
		if (v->chan == chan)
			return v;
	return NULL;
}

void viewer_free(struct viewer *v)
{
	struct call *call = v->record->call;

	for (struct viewer **at = &v->record->viewers; *at; at = &(*at)->next)
		if (*at == v) {
			*at = v->next;
			break;
		}
	for (struct viewer **at = &v->client->viewers; *at; at = &(*at)->next_of_client)
		if (*at == v) {
			*at = v->next_of_client;
			break;
		}
	v->client->nviewers--;
	free(v);
	if (call)
		call_resume(call); /* the other viewers may be faster */
}

void viewers_forget(struct client *c)
{
	while (c->viewers)
		viewer_free(c->viewers);
}

static uint64_t slowest(const struct record *r)
{
	uint64_t least = UINT64_MAX;

	for (const struct viewer *v = r->viewers; v; v = v->next)
		if (v->follows && v->at.offset < least)
			least = v->at.offset;
	return least;
}

bool viewers_are_full(struct record *r)
{
	uint64_t least = slowest(r);

	retain_trim(&r->output, least);
	return retain_is_full(&r->output, least);
}

static bool may_send(const struct viewer *v)
{
	return v->follows && (!v->limited || v->credit) &&
	       conn_backlog(&v->client->conn) < LIMIT_CONN_HIGH;
}

/* Send as much output as the credit allows; true if the viewer has all of it. */
static bool send_output(struct viewer *v)
{
	struct str data;
	uint8_t stream;

	while (retain_peek(&v->record->output, &v->at, &stream, &data)) {
		if (!may_send(v))
			return false;
		if (v->limited && data.n > v->credit)
			data.n = (size_t)v->credit;
		if (conn_send(&v->client->conn, stream, v->chan, data) < 0)
			return false;
		if (v->limited)
			v->credit -= data.n;
		retain_take(&v->at, data.n);
	}
	return true;
}

static void say_started(struct viewer *v)
{
	const struct record *r = v->record;
	const struct call *c = r->call;
	uint64_t room = v->writes && c ? c->in.max - c->in.len : 0;

	v->told = true;
	(void)CONN_MENTION(&v->client->conn, MSG_C_STARTED, v->chan, { TAG_CALL, r->id, NULL },
			   { TAG_PID, (uint64_t)r->pid, NULL },
			   { TAG_WARNING, 0, c ? c->warning : "" },
			   { TAG_EXISTING, v->existing, NULL }, { TAG_OFFSET, v->at.offset, NULL },
			   { TAG_DROPPED, v->dropped, NULL }, { TAG_STDIN, room, NULL });
}

/* Send everything that the viewer may get now. Frees the viewer after the last frame. */
static void tell(struct viewer *v)
{
	struct record *r = v->record;
	bool all;

	if (!v->told && (r->pid || (!r->call && v->existing)))
		say_started(v);
	if (!v->told && r->call)
		return;
	all = !v->follows || send_output(v);
	if (r->call || !all)
		return;
	(void)conn_send(&v->client->conn, r->last_type, v->chan, buf_str(&r->last));
	viewer_free(v);
}

void viewers_tell(struct record *r)
{
	struct viewer *next;

	for (struct viewer *v = r->viewers; v; v = next) {
		next = v->next;
		tell(v);
	}
}

static void go_on(struct viewer *v)
{
	struct call *call = v->record->call;

	tell(v);
	if (call)
		call_resume(call);
}

void viewer_credit(struct viewer *v, uint64_t bytes)
{
	v->credit = bytes < LIMIT_WINDOW - v->credit ? v->credit + bytes : LIMIT_WINDOW;
	go_on(v);
}

void viewers_resume(struct client *c)
{
	struct viewer *next;

	for (struct viewer *v = c->viewers; v; v = next) {
		next = v->next_of_client;
		go_on(v);
	}
}

void viewers_stdin_taken(struct record *r, size_t n)
{
	for (struct viewer *v = r->viewers; v; v = v->next)
		if (v->writes)
			(void)CONN_SAY(&v->client->conn, MSG_C_CREDIT, v->chan,
				       { TAG_BYTES, n, NULL });
}

ssize_t viewers_read(struct record *r, uint8_t type, int fd)
{
	static char data[LIMIT_FRAME_DATA]; /* static is safe: one thread */
	ssize_t n = read(fd, data, sizeof data);
	int k;

	if (n <= 0)
		return n < 0 ? -errno : 0;
	k = retain_add(&r->output, type, (struct str){ data, (size_t)n });
	viewers_tell(r);
	retain_trim(&r->output, slowest(r));
	return k < 0 ? k : n;
}

static int viewer_new(struct client *c, uint32_t chan, struct record *r, struct viewer **ret,
		      struct err *e)
{
	struct viewer *v;

	if (c->nviewers >= LIMIT_VIEWERS)
		return err_set(e, ERR_LIMIT, "the client has joined %d calls", LIMIT_VIEWERS);
	v = calloc(1, sizeof *v);
	if (!v)
		return err_sys(e, ENOMEM, "join a call");
	*v = (struct viewer){ .record = r,
			      .client = c,
			      .chan = chan,
			      .next = r->viewers,
			      .next_of_client = c->viewers };
	r->viewers = v;
	c->viewers = v;
	c->nviewers++;
	*ret = v;
	return 0;
}

static void place(struct viewer *v, uint64_t offset)
{
	const struct retain *output = &v->record->output;

	v->dropped = offset < output->base ? output->base - offset : 0;
	v->at.offset = offset < output->base  ? output->base
		       : offset > output->end ? output->end
					      : offset;
}

static void set_window(struct viewer *v, bool limited, uint64_t window)
{
	v->limited = limited;
	v->credit = window < LIMIT_WINDOW ? window : LIMIT_WINDOW;
	v->follows = !limited || window;
}

static bool has_writer(const struct record *r)
{
	for (const struct viewer *v = r->viewers; v; v = v->next)
		if (v->writes)
			return true;
	return false;
}

int viewer_begin(struct client *c, uint32_t chan, const struct ask *a, struct record *r,
		 bool existing, struct err *e)
{
	bool writes = !has_writer(r);
	struct viewer *v;

	if (viewer_new(c, chan, r, &v, e) < 0)
		return -1;
	v->existing = existing;
	v->writes = writes;
	set_window(v, a->has_window, a->window);
	place(v, 0);
	if (existing)
		tell(v);
	return 0;
}

enum { TAKES_STDIN = 2 };

struct attach {
	uint64_t call, offset, window, writes;
	bool limited;
	struct str call_id;
};

static int parse(struct attach *a, struct str body, struct err *e)
{
	struct field f;
	int r;

	*a = (struct attach){ .call_id = STR_NONE };
	while ((r = field_next(&body, &f)) > 0) {
		uint64_t *to = f.tag == TAG_CALL     ? &a->call
			       : f.tag == TAG_OFFSET ? &a->offset
			       : f.tag == TAG_WINDOW ? &a->window
			       : f.tag == TAG_STDIN  ? &a->writes
						     : NULL;

		if (to && field_u64(f, to) < 0)
			break;
		a->limited |= f.tag == TAG_WINDOW;
		if (f.tag == TAG_CALL_ID)
			a->call_id = f.value;
	}
	return r ? err_set(e, ERR_INVALID, "bad request to join a call") : 0;
}

static int refuse(struct warden *w, const struct attach *a, struct err *e)
{
	if (a->call_id.n)
		(void)err_set(e, ERR_NOT_FOUND, "no call has the id '%.*s'", STR_ARG(a->call_id));
	else
		(void)err_set(e, ERR_NOT_FOUND, "there is no call %llu in '%s', or it is forgotten",
			      (unsigned long long)a->call, w->spec.id);
	return err_code(e, "call.not_found", w->spec.id);
}

static int may_join(const struct attach *a, const struct record *r, struct err *e)
{
	if (!r->detached) {
		(void)err_set(e, ERR_CONFLICT, "call %u is not detached", r->id);
		return err_code(e, "call.not_detached", NULL);
	}
	if (a->writes && a->writes != TAKES_STDIN && has_writer(r)) {
		(void)err_set(e, ERR_CONFLICT, "another client writes to call %u", r->id);
		return err_code(e, "stdin.taken", NULL);
	}
	return 0;
}

static void silence_writers(struct record *r)
{
	for (struct viewer *v = r->viewers; v; v = v->next)
		v->writes = false;
}

int viewer_attach(struct client *c, const struct frame *f, struct err *e)
{
	struct record *r;
	struct attach a;
	struct viewer *v;

	if (parse(&a, f->body, e) < 0)
		return -1;
	if (viewer_of(c, f->chan) || call_of_client(c, f->chan))
		return err_set(e, ERR_INVALID, "channel %u is in use", f->chan);
	r = a.call_id.n ? record_find(c->w, a.call_id) : record_by_number(c->w, a.call);
	if (!r)
		return refuse(c->w, &a, e);
	if (may_join(&a, r, e) < 0)
		return -1;
	if (viewer_new(c, f->chan, r, &v, e) < 0)
		return -1;
	if (a.writes == TAKES_STDIN)
		silence_writers(r);
	v->existing = true;
	v->writes = a.writes != 0;
	set_window(v, a.limited, a.window);
	place(v, a.offset);
	tell(v);
	return 0;
}
