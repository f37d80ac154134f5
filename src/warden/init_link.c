/* SPDX-License-Identifier: Apache-2.0 */
/* The stream to init. Init is on the hostile side: the warden checks everything that it sends. */
#include <errno.h>
#include <unistd.h>

#include "base/fds.h"
#include "warden/call/call.h"
#include "warden/call/stream.h"
#include "warden/limit/limits.h"
#include "warden/net/dial.h"
#include "warden/warden.h"

struct said {
	uint64_t pid, status, err, cpu_us, maxrss_kb, stage, version;
	struct str text;
};

static int read_said(struct said *s, struct str body)
{
	struct field f;
	int r;

	*s = (struct said){ .text = STR_NONE };
	while ((r = field_next(&body, &f)) > 0) {
		uint64_t *to = f.tag == TAG_PID		? &s->pid
			       : f.tag == TAG_STATUS	? &s->status
			       : f.tag == TAG_ERRNO	? &s->err
			       : f.tag == TAG_CPU_US	? &s->cpu_us
			       : f.tag == TAG_MAXRSS_KB ? &s->maxrss_kb
			       : f.tag == TAG_STAGE	? &s->stage
			       : f.tag == TAG_VERSION	? &s->version
							: NULL;

		if (to && field_u64(f, to) < 0)
			return -EBADMSG;
		if (f.tag == TAG_TEXT)
			s->text = f.value;
	}
	return r;
}

static void on_reaped(struct warden *w, const struct said *s)
{
	if (w->watch && s->pid <= INT32_MAX)
		watch_reaped(w->watch, (int)s->pid, (int)(s->status & 0xffff));
}

static void on_call_frame(struct warden *w, const struct frame *f, const struct said *s)
{
	struct call *c = call_by_job(w, f->chan);

	if (!c)
		return;
	if (f->type == MSG_STARTED)
		call_started(c, (int)(s->pid & INT32_MAX));
	else if (f->type == MSG_FAILED)
		call_failed(c, s->stage == STAGE_EXEC ? STAGE_EXEC : STAGE_SETUP,
			    (int)(s->err & 0xfff), s->text);
	else if (f->type == MSG_EXITED)
		call_exited(c, (int)(s->status & 0xffff), s->cpu_us, s->maxrss_kb);
}

static void on_frame(struct conn *conn, const struct frame *f, int *fds)
{
	struct warden *w = container_of(conn, struct warden, init);
	int r = stream_is_needed(w) ? stream_frame(w, f) : 1;
	struct said s;

	if (r == 1 && f->type == MSG_DIALED && read_said(&s, f->body) == 0) {
		dial_answered(w, f, fds, s.err);
		return;
	}
	fds_discard(fds, f->nfds); /* init has no other descriptors to send */
	if (r == 0)
		return;
	if (r < 0 || read_said(&s, f->body) < 0) {
		warden_end(w, END_FAILED, "init broke the protocol");
		return;
	}
	if (f->type == MSG_HELLO) {
		loop_timer_stop(&w->loop, &w->hello_timer);
		w->init_greeted = s.version == PROTO_INIT_VERSION;
		if (!w->init_greeted)
			warden_end(w, END_FAILED, "init speaks another version of the protocol");
		else
			guard_look_later(w, VERIFY_HELLO);
	} else if (f->type == MSG_REAPED) {
		on_reaped(w, &s);
	} else if (f->type == MSG_PREPARED) {
		if (w->watch)
			watch_prepared(w->watch, (int)(s.err & 0xfff));
	} else if (f->type == MSG_ENTERED) {
		generation_entered(w, (int)(s.err & 0xfff));
	} else {
		on_call_frame(w, f, &s);
	}
}

static void on_closed(struct conn *conn, int err)
{
	struct warden *w = container_of(conn, struct warden, init);
	/* If init ends with an unread order, the kernel resets the stream. */
	bool broke = err < 0 && err != -ECONNRESET && err != -EPIPE;

	conn_done(&w->init);
	if (limits_killed_init(w))
		warden_end(w, END_OOM, "out of memory: even init was killed");
	else if (!guard_is_whole(w))
		guard_lost_init(w, broke ? "init broke the protocol"
					 : "init ended while the sandbox was being built");
	else
		warden_end(w, END_FAILED, broke ? "init broke the protocol" : "init ended");
}

static void on_drained(struct conn *conn)
{
	streams_resume(container_of(conn, struct warden, init));
}

static int send_order(void *ctx, uint8_t type, int *fds, int nfds)
{
	struct warden *w = ctx;
	size_t at = 0;
	int r = conn_begin(&w->init, type, 0, &at);

	if (r == 0)
		r = conn_end(&w->init, at, fds, nfds);
	else
		for (int i = 0; i < nfds; i++)
			(void)close(fds[i]);
	for (int i = 0; i < nfds; i++)
		fds[i] = FD_NONE;
	return r;
}

static void on_entered(void *ctx, int err)
{
	generation_entered(ctx, err);
}

void init_link_events(struct warden *w)
{
	w->events = (struct cell_events){ send_order, on_entered, w };
}

int init_link_prepare(void *ctx, const struct watch_rename *r)
{
	struct warden *w = ctx;

	return CONN_SAY(&w->init, MSG_PREPARE, 0, { TAG_PID, (uint64_t)r->tid, NULL },
			{ TAG_FLAGS, r->flags, NULL }, { TAG_DIRFD, (uint32_t)r->dirfd[0], NULL },
			{ TAG_DIRFD, (uint32_t)r->dirfd[1], NULL }, { TAG_PATH, 0, r->path[0] },
			{ TAG_PATH, 0, r->path[1] });
}

int init_link_open(struct warden *w, struct err *e)
{
	static const struct conn_ops ops = { .frame = on_frame,
					     .closed = on_closed,
					     .drained = on_drained };
	int r = conn_init(&w->init, &w->loop, w->driver->stream(w->cell), &ops);

	w->init.hostile = true;
	return r < 0 ? err_sys(e, -r, "connect to init") : 0;
}
