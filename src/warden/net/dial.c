/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/net/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "warden/call/stream.h"
#include "warden/features.h"

enum { DIALS_MOST = 1024 };

/* If ports are channels, their numbers differ from numbers of calls. */
#define FIRST_CHANNEL (1u << 30)

struct dial {
	struct dial *next;
	struct client *client;
	uint32_t chan, id;
	uint16_t port;
};

int dial_ask(struct client *c, const struct frame *f, struct err *e)
{
	struct warden *w = c->w;
	struct str body = f->body;
	struct field field;
	uint64_t port = 0;
	struct dial *d;
	int r;

	while (field_next(&body, &field) > 0)
		if (field.tag == TAG_PORT && field_u64(field, &port) < 0)
			break;
	if (port < 1 || port > UINT16_MAX)
		return err_set(e, ERR_INVALID, "there is no port %llu", (unsigned long long)port);
	if (w->state != SANDBOX_RUNNING)
		return err_set(e, ERR_CONFLICT, "the sandbox is %s", sandbox_state_name(w->state));
	if (features_need(w, HAS_PORTS, e) < 0)
		return -1;
	d = w->ndials < DIALS_MOST ? calloc(1, sizeof *d) : NULL;
	if (!d)
		return err_set(e, ERR_LIMIT, "too many connections are being made");
	*d = (struct dial){ .next = w->dials,
			    .client = c,
			    .chan = f->chan,
			    .id = FIRST_CHANNEL | ++w->last_dial,
			    .port = (uint16_t)port };
	w->dials = d;
	w->ndials++;
	r = CONN_SAY(&w->init, MSG_DIAL, d->id, { TAG_PORT, port, NULL });
	return r < 0 ? err_sys(e, -r, "ask init") : 0;
}

/* Init is on the hostile side: check that the descriptor is a TCP socket. */
static bool is_tcp(int fd)
{
	int domain = 0, protocol = 0;
	socklen_t n = sizeof domain, m = sizeof protocol;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &m) == 0 &&
	       (domain == AF_INET || domain == AF_INET6) && protocol == IPPROTO_TCP;
}

static void hand_over(struct warden *w, const struct dial *d, int fd)
{
	size_t at = 0;

	(void)trace_begin(&w->trace, "net.ingress", 0, w->created_event);
	trace_num(&w->trace, "port", d->port);
	(void)trace_end(&w->trace);
	if (conn_begin(&d->client->conn, MSG_C_DIALED, d->chan, &at) < 0)
		fds_discard(&fd, 1);
	else
		(void)conn_end(&d->client->conn, at, &fd, 1);
}

static void refuse(const struct dial *d, uint64_t err)
{
	struct err e = { 0 };

	if (err == ECONNREFUSED) {
		(void)err_set(&e, ERR_UNAVAILABLE, "nothing listens on port %u inside", d->port);
		e.sys = ECONNREFUSED;
		(void)err_code(&e, "port.closed", NULL);
	} else {
		(void)err_sys(&e, err ? (int)(err & 0xfff) : EPROTO, "connect to port %u inside",
			      d->port);
	}
	(void)client_error(d->client, d->chan, &e, STAGE_SETUP);
}

static void hand_over_stream(struct warden *w, const struct dial *d)
{
	int fd = stream_dial(w, d->id);

	if (fd < 0)
		refuse(d, (uint64_t)-fd);
	else
		hand_over(w, d, fd);
}

void dial_answered(struct warden *w, const struct frame *f, int *fds, uint64_t err)
{
	for (struct dial **at = &w->dials; *at; at = &(*at)->next) {
		struct dial *d = *at;

		if (d->id != f->chan)
			continue;
		*at = d->next;
		w->ndials--;
		if (f->nfds == 1 && is_tcp(fds[0]))
			hand_over(w, d, TAKE_FD(fds[0]));
		else if (!err && stream_is_needed(w))
			hand_over_stream(w, d);
		else
			refuse(d, err);
		free(d);
		break;
	}
	fds_discard(fds, f->nfds);
}

void dial_forget(struct warden *w, const struct client *c)
{
	struct dial **at = &w->dials;

	while (*at) {
		struct dial *d = *at;

		if (c && d->client != c) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		w->ndials--;
		free(d);
	}
}
