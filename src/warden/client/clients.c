/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of a warden: the creator on an inherited socket, the others on the sandbox's socket. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "warden/call/call.h"
#include "warden/client/lease.h"
#include "warden/features.h"
#include "warden/limit/limits.h"
#include "warden/limit/pause.h"
#include "warden/net/dial.h"
#include "warden/net/net.h"
#include "warden/ready.h"
#include "warden/record.h"
#include "warden/warden.h"

int client_put_error(struct buf *out, const struct err *e, enum run_stage stage)
{
	int r = field_put_c(out, TAG_KIND, err_name(e->kind));

	if (r == 0)
		r = field_put_c(out, TAG_TEXT, e->msg);
	if (r == 0)
		r = field_put_c(out, TAG_HINT, e->hint);
	if (r == 0 && e->code[0])
		r = field_put_c(out, TAG_CODE, e->code);
	if (r == 0 && e->about[0])
		r = field_put_c(out, TAG_ABOUT, e->about);
	if (r == 0)
		r = field_put_u64(out, TAG_ERRNO, (uint64_t)e->sys);
	return r < 0 ? r : field_put_u64(out, TAG_STAGE, stage);
}

int client_error(struct client *c, uint32_t chan, const struct err *e, enum run_stage stage)
{
	auto_done(buf_done) struct buf body = BUF_INIT(LIMIT_FRAME_DATA);
	int r = client_put_error(&body, e, stage);

	return r < 0 ? r : conn_send(&c->conn, MSG_C_ERROR, chan, buf_str(&body));
}

void client_free(struct client *c)
{
	struct warden *w = c->w;

	for (struct client **at = &w->clients; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	for (struct call *call = w->calls; call; call = call->next)
		if (call->client == c)
			call_orphan(call);
	viewers_forget(c);
	lease_end(c);
	generation_forget(w, c);
	walk_forget(w, c);
	net_forget_client(c);
	dial_forget(w, c);
	w->nclients--;
	conn_done(&c->conn);
	free(c);
}

static void on_closed(struct conn *conn, int err)
{
	struct client *c = container_of(conn, struct client, conn);
	struct warden *w = c->w;
	/* No other client knows a sandbox that its creator has not handed over. */
	bool last = c->creator && (w->ephemeral || !w->kept);

	(void)err;
	client_free(c);
	if (last)
		warden_end(w, END_CREATOR, "its creator is gone");
}

static void on_drained(struct conn *conn)
{
	struct client *c = container_of(conn, struct client, conn);

	for (struct call *call = c->w->calls; call; call = call->next)
		if (call->client == c)
			call_resume(call);
	viewers_resume(c);
}

static int number_of(const struct frame *f, uint16_t tag, uint64_t *ret)
{
	struct str body = f->body;
	struct field field;

	while (field_next(&body, &field) > 0)
		if (field.tag == tag)
			return field_u64(field, ret);
	return -ENOENT;
}

static int on_hello(struct client *c, const struct frame *f, struct err *e)
{
	uint64_t oldest = 0, newest = 0;

	if (number_of(f, TAG_VERSION, &oldest) < 0)
		oldest = 0;
	if (number_of(f, TAG_NEWEST, &newest) < 0)
		newest = oldest;
	if (newest > PROTO_CLIENT_VERSION)
		newest = PROTO_CLIENT_VERSION;
	if (oldest > newest || newest < PROTO_CLIENT_OLDEST) {
		(void)err_set(e, ERR_CONFLICT,
			      "the sandbox speaks versions %d to %d of the protocol, the client "
			      "%llu",
			      PROTO_CLIENT_OLDEST, PROTO_CLIENT_VERSION,
			      (unsigned long long)oldest);
		(void)err_code(e, "protocol.version", c->w->spec.id);
		return err_hint(e,
				"it was made by another version of cay: use that one, or end it "
				"with: cay kill %s",
				c->w->spec.id ? c->w->spec.id : "ID");
	}
	c->greeted = true;
	c->version = (unsigned)newest;
	/* Queued with the first answer: a client that never sees it assumes version 2. */
	if (newest >= 3)
		(void)CONN_MENTION(&c->conn, MSG_C_HELLO, 0, { TAG_VERSION, newest, NULL });
	return 0;
}

/* claimed: the client did not choose the uids and layers, so send them. */
static int say_ready(struct client *c, bool claimed)
{
	const struct warden *w = c->w;
	struct conn_field fields[3 + CELL_LAYERS + CELL_UNENFORCED] = {
		{ TAG_INIT_PID, (uint64_t)warden_init_pid(w), NULL },
		{ TAG_START_US, (clock_mono_ns() - w->started_ns) / NS_PER_US, NULL },
	};
	char text[CELL_UNENFORCED][CELL_WHY + 48];
	int n = 2;

	if (claimed && w->rootful)
		fields[n++] = (struct conn_field){ TAG_UID_BASE, w->spec.uid_base, NULL };
	for (int i = 0; claimed && i < w->spec.nlayers; i++)
		fields[n++] = (struct conn_field){ TAG_LAYER, 0, w->spec.layers[i] };

	for (int i = 0; i < w->cell->nunenforced; i++)
		fields[n++] = (struct conn_field){ TAG_WARNING, 0,
						   limits_warning(&w->cell->unenforced[i], text[i],
								  sizeof text[i]) };
	/* Queue it with the next answer: the client has already requested its command. */
	if (w->ephemeral && !claimed)
		return conn_mention(&c->conn, MSG_C_READY, 0, fields, n);
	return conn_say(&c->conn, MSG_C_READY, 0, fields, n);
}

static int on_build(struct client *c, const struct frame *f, struct err *e)
{
	struct warden *w = c->w;
	int r;

	if (!c->creator || w->state != SANDBOX_NEW)
		return err_set(e, ERR_NOT_ALLOWED, "the sandbox is built already");
	if (warden_build(w, f->body, e) < 0)
		return -1;
	r = say_ready(c, false);
	return r < 0 ? err_sys(e, -r, "answer") : 0;
}

/* From now on the sandbox belongs to this client only. */
static int on_claim(struct client *c, const struct frame *f, struct err *e)
{
	struct warden *w = c->w;
	int r;

	if (w->state != SANDBOX_READY)
		return err_set(e, ERR_CONFLICT, "the sandbox has an owner");
	if (ready_claim(w, f->body, e) < 0)
		return -1;
	for (struct client *other = w->clients; other; other = other->next)
		other->creator = other == c;
	w->kept = false;
	r = say_ready(c, true);
	return r < 0 ? err_sys(e, -r, "answer") : 0;
}

/* READY_DIR: only while the sandbox has no owner; an owner must end it. */
static int on_destroy(struct client *c, const struct frame *f, struct err *e)
{
	struct str body = f->body;
	struct field field;

	while (field_next(&body, &field) > 0)
		if (field.tag == TAG_READY_DIR && c->w->state != SANDBOX_READY)
			return err_set(e, ERR_CONFLICT, "the sandbox has an owner");
	c->wants_destroyed = true;
	c->destroy_chan = f->chan;
	warden_end(c->w, END_KILLED, "killed");
	return 0;
}

/* Requests allowed before a claim: they run nothing and change nothing. */
static bool may_ask_ready(uint8_t type)
{
	return type == MSG_C_HELLO || type == MSG_C_PING || type == MSG_C_CLAIM ||
	       type == MSG_C_KEEP || type == MSG_C_INFO || type == MSG_C_DESTROY;
}

/* Requests allowed before the sandbox is fully verified: the call for which it was made. */
static bool may_ask_early(uint8_t type)
{
	switch (type) {
	case MSG_C_SWITCH:
	case MSG_C_POLICY:
	case MSG_C_DIAL:
	case MSG_C_PAUSE:
	case MSG_C_RESUME:
		return false;
	default:
		return true;
	}
}

static int on_info(struct client *c, uint32_t chan, struct err *e)
{
	struct warden *w = c->w;
	uint64_t ttl = expiry_ttl_left_ms(w), idle = expiry_idle_left_ms(w);
	char hash[SHA256_HEX];
	struct conn_field fields[11 + CELL_LAYERS] = {
		{ TAG_STATE, 0, sandbox_state_name(w->state) },
		{ TAG_INIT_PID, (uint64_t)warden_init_pid(w), NULL },
		{ TAG_CALLS, w->running, NULL },
		{ TAG_CALL, w->last_call, NULL },
		{ TAG_RSS_KB, ps_rss_kb(w), NULL },
		{ TAG_SWITCHING, w->gen_switch != NULL, NULL },
	};
	int n = 6, r;

	if (ttl != UINT64_MAX)
		fields[n++] = (struct conn_field){ TAG_TTL_LEFT_MS, ttl, NULL };
	if (idle != UINT64_MAX)
		fields[n++] = (struct conn_field){ TAG_IDLE_LEFT_MS, idle, NULL };
	if (w->expires_at_ms)
		fields[n++] = (struct conn_field){ TAG_EXPIRES_AT_MS, w->expires_at_ms, NULL };
	if (lease_holder(w))
		fields[n++] = (struct conn_field){ TAG_LEASE, (uint64_t)lease_holder(w), NULL };
	if (net_policy_hash(w, hash))
		fields[n++] = (struct conn_field){ TAG_POLICY_HASH, 0, hash };

	for (int i = 0; i < w->spec.nlayers; i++)
		fields[n++] = (struct conn_field){ TAG_LAYER, 0, w->spec.layers[i] };
	r = conn_say(&c->conn, MSG_C_STATE, chan, fields, n);
	return r < 0 ? err_sys(e, -r, "answer") : 0;
}

static int on_extend(struct client *c, const struct frame *f, struct err *e)
{
	uint64_t ttl_ms, at_ms;

	if (c->w->state != SANDBOX_RUNNING && c->w->state != SANDBOX_PAUSED)
		return err_set(e, ERR_CONFLICT, "the sandbox is %s",
			       sandbox_state_name(c->w->state));
	if (number_of(f, TAG_EXPIRES_AT_MS, &at_ms) == 0) {
		ttl_ms = expiry_until(c->w, at_ms);
	} else {
		if (number_of(f, TAG_TTL_MS, &ttl_ms) < 0 || ttl_ms > UINT64_MAX / NS_PER_S)
			return err_set(e, ERR_INVALID, "no time to live");
		expiry_extend(c->w, ttl_ms);
	}
	(void)trace_begin(&c->w->trace, "sandbox.extend", 0, c->w->created_event);
	trace_num(&c->w->trace, "ttl_ms", (int64_t)ttl_ms);
	warden_trace_asker(c->w);
	(void)warden_trace_end(c->w);
	return 0;
}

/* Orders that are answered with the resulting state. */
static int on_order(struct client *c, const struct frame *f, struct err *e)
{
	int r = f->type == MSG_C_PAUSE && lease_check(c, e) < 0 ? -1
		: f->type == MSG_C_PAUSE			? pause_enter(c->w, "asked for", e)
		: f->type == MSG_C_RESUME			? pause_leave(c->w, "asked for", e)
								: on_extend(c, f, e);

	return r < 0 ? -1 : on_info(c, f->chan, e);
}

/* Frames about one running call. If the call has just ended, they are late, not an error. */
static void on_call_frame(struct client *c, const struct frame *f)
{
	struct viewer *viewer = viewer_of(c, f->chan);
	struct call *call = viewer ? viewer->record->call : call_of_client(c, f->chan);
	bool writes = f->type == MSG_C_STDIN || f->type == MSG_C_STDIN_EOF;
	uint64_t a = 0, b = 0;

	if (!call || (viewer && writes && !viewer->writes))
		return;
	switch (f->type) {
	case MSG_C_STDIN:
		call_stdin(call, f->body);
		break;
	case MSG_C_STDIN_EOF:
		call_stdin_eof(call);
		break;
	case MSG_C_SIGNAL:
		if (number_of(f, TAG_SIGNAL, &a) == 0 && a < 128)
			call_signal(call, (int)a);
		break;
	case MSG_C_RESIZE:
		if (number_of(f, TAG_ROWS, &a) == 0 && number_of(f, TAG_COLS, &b) == 0)
			call_resize(call, a & 0xffff, b & 0xffff);
		break;
	default:
		break;
	}
}

/* Frames about a client's view of a call. */
static void on_view_frame(struct client *c, const struct frame *f)
{
	struct viewer *viewer = viewer_of(c, f->chan);
	struct call *call = call_of_client(c, f->chan);
	uint64_t bytes = 0;

	if (f->type == MSG_C_DROP && viewer)
		viewer_free(viewer);
	else if (f->type == MSG_C_DROP && call)
		call_orphan(call);
	else if (number_of(f, TAG_BYTES, &bytes) < 0)
		return;
	else if (viewer)
		viewer_credit(viewer, bytes);
	else if (call)
		call_credit(call, bytes);
}

/* Requests new in version 3 of the protocol. */
static int dispatch_3(struct client *c, const struct frame *f, struct err *e)
{
	int r;

	switch (c->version >= 3 ? f->type : 0) {
	case MSG_C_LEASE:
		return lease_ask(c, f, e);
	case MSG_C_LEASE_END:
		lease_end(c);
		return 0;
	case MSG_C_PING:
		r = conn_send(&c->conn, MSG_C_PONG, f->chan, STR_NONE);
		return r < 0 ? err_sys(e, -r, "answer") : 0;
	case MSG_C_ATTACH:
		return viewer_attach(c, f, e);
	case MSG_C_CALLS:
		return record_list(c, f, e);
	case MSG_C_CREDIT:
	case MSG_C_DROP:
		on_view_frame(c, f);
		return 0;
	default:
		return err_set(e, ERR_INVALID, "unknown request %d", f->type);
	}
}

static int dispatch(struct client *c, const struct frame *f, struct err *e)
{
	if (!c->greeted && f->type != MSG_C_HELLO)
		return err_set(e, ERR_INVALID, "the client did not say hello");
	if (c->w->state == SANDBOX_READY && !may_ask_ready(f->type))
		return err_set(e, ERR_NOT_ALLOWED, "the sandbox has no owner yet");
	if (c->w->state == SANDBOX_RUNNING && !guard_is_whole(c->w) && !may_ask_early(f->type))
		return err_set(e, ERR_CONFLICT, "the sandbox is still being built");
	switch (f->type) {
	case MSG_C_HELLO:
		return on_hello(c, f, e);
	case MSG_C_BUILD:
		return on_build(c, f, e);
	case MSG_C_CLAIM:
		return on_claim(c, f, e);
	case MSG_C_EXEC:
		return call_start(c, f->chan, f->body, e);
	case MSG_C_PS:
		return ps_send(c, f->chan) < 0 ? err_set(e, ERR_FAILED, "list processes") : 0;
	case MSG_C_INFO:
		return on_info(c, f->chan, e);
	case MSG_C_SETTLE:
		return walk_settle(c, f->chan, e);
	case MSG_C_SWITCH:
		return lease_check(c, e) < 0 ? -1 : generation_switch(c, f->chan, f->body, e);
	case MSG_C_POLICY:
		return lease_check(c, e) < 0 ? -1 : net_set_policy(c, f, e);
	case MSG_C_NET:
		return net_list(c, f->chan, e);
	case MSG_C_DIAL:
		return dial_ask(c, f, e);
	case MSG_C_PAUSE:
	case MSG_C_RESUME:
	case MSG_C_EXTEND:
		return on_order(c, f, e);
	case MSG_C_DESTROY:
		return on_destroy(c, f, e);
	case MSG_C_KEEP:
		c->w->kept |= c->creator;
		return 0;
	case MSG_C_STDIN:
	case MSG_C_STDIN_EOF:
	case MSG_C_SIGNAL:
	case MSG_C_RESIZE:
		on_call_frame(c, f);
		return 0;
	default:
		return dispatch_3(c, f, e);
	}
}

static void on_frame(struct conn *conn, const struct frame *f, int *fds)
{
	struct client *c = container_of(conn, struct client, conn);
	struct warden *w = c->w;
	struct err e = { 0 };
	int r;

	for (int i = 0; i < f->nfds; i++) /* no request carries descriptors */
		fd_close(&fds[i]);
	w->asking = c;
	r = dispatch(c, f, &e);
	w->asking = NULL;
	if (r == 0)
		return;
	(void)client_error(c, f->chan, &e, STAGE_SETUP);
	if (f->type == MSG_C_BUILD && w->state == SANDBOX_NEW && c->creator)
		warden_end(w, END_FAILED, "it could not be built");
}

int client_adopt(struct warden *w, int fd, bool creator)
{
	static const struct conn_ops ops = {
		.frame = on_frame,
		.closed = on_closed,
		.drained = on_drained,
	};
	struct ucred cred = { 0 };
	socklen_t size = sizeof cred;
	struct client *c = calloc(1, sizeof *c);
	int r = c ? conn_init(&c->conn, &w->loop, fd, &ops) : -ENOMEM;

	if (r < 0) {
		free(c);
		return r;
	}
	c->w = w;
	c->creator = creator;
	c->version = PROTO_CLIENT_OLDEST;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0) {
		c->pid = cred.pid;
		c->uid = cred.uid;
	}
	c->next = w->clients;
	w->clients = c;
	w->nclients++;
	return 0;
}

static void listen_again(struct loop_timer *t)
{
	struct warden *w = container_of(t, struct warden, listen_timer);

	(void)loop_mod(&w->loop, &w->listen_io, EPOLLIN);
}

static void on_accept(struct loop_io *io, uint32_t events)
{
	enum { PAUSE_MS = 100 };
	struct warden *w = container_of(io, struct warden, listen_io);
	struct ucred cred;
	socklen_t size = sizeof cred;
	int fd = accept4(w->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	/* The connection still waits, so without a delay the loop would report it endlessly. */
	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		(void)loop_mod(&w->loop, &w->listen_io, 0);
		loop_timer_set(&w->loop, &w->listen_timer, PAUSE_MS * NS_PER_MS, listen_again);
	}
	if (fd < 0)
		return;
	/* A second check: the directory is already closed to other users. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0 ||
	    (cred.uid != 0 && cred.uid != geteuid()) || w->nclients >= LIMIT_CLIENTS ||
	    client_adopt(w, fd, false) < 0)
		(void)close(fd);
}

int clients_listen(struct warden *w, struct err *e)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "sock" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return err_sys(e, errno, "make the sandbox's socket");
	w->listen_fd = fd;
	/* The working directory is the sandbox's own, so the name is always short enough. */
	if (bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0 || listen(fd, LIMIT_CLIENTS) < 0)
		return err_sys(e, errno, "make the sandbox's socket");
	r = loop_add(&w->loop, &w->listen_io, fd, EPOLLIN, on_accept);
	return r < 0 ? err_sys(e, -r, "watch the sandbox's socket") : 0;
}

void clients_say_destroyed(struct warden *w)
{
	enum { PATIENCE_MS = 2000 };
	uint64_t end = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;

	for (struct client *c = w->clients; c; c = c->next)
		if (c->wants_destroyed)
			(void)conn_send(&c->conn, MSG_C_DESTROYED, c->destroy_chan, STR_NONE);
	/* One deadline for all clients together, however many of them do not read. */
	for (struct client *c = w->clients; c; c = c->next) {
		uint64_t now = clock_mono_ns();

		(void)conn_flush(&c->conn, now < end ? (int)((end - now) / NS_PER_MS) : 0);
	}
}
