/* SPDX-License-Identifier: Apache-2.0 */
/* The two processes of a gateway: start, configure and end them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/ledger.h"
#include "sys/ns/jail.h"
#include "sys/ns/userns.h"
#include "sys/process/memfd.h"
#include "sys/process/raw.h"
#include "warden/features.h"
#include "warden/net/net.h"
#include "wire/gateway_proto.h"

enum { LAST_WORDS_MS = 200 };

static void stop_part(struct net_part *p)
{
	conn_done(&p->conn);
	if (p->pidfd >= 0)
		(void)raw_pidfd_signal(p->pidfd, SIGKILL);
	while (p->pid > 0 && waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
	fd_close(&p->pidfd);
}

void net_stop(struct net *n)
{
	for (int i = 0; i < NET_PARTS; i++)
		stop_part(&n->part[i]);
}

void net_stop_gently(struct net *n)
{
	struct conn *dialer = &n->part[NET_DIALER].conn;

	if (dialer->loop) /* the dialer ends in parallel with the front */
		(void)shutdown(dialer->fd, SHUT_WR);
	for (int i = 0; i < NET_PARTS; i++)
		if (n->part[i].conn.loop)
			(void)conn_drain(&n->part[i].conn, LAST_WORDS_MS);
	net_stop(n);
}

/* Duplicate a descriptor; the message takes the copy. */
static int add_copy(int *fds, int *count, int fd)
{
	fds[*count] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fds[*count] < 0)
		return -errno;
	(*count)++;
	return 0;
}

static int send_config(struct net_part *p, struct str fields, const int *given, int ngiven)
{
	int fds[1 + NET_FDS], count = 0, r = add_copy(fds, &count, p->ledger);
	size_t at = 0;

	for (int i = 0; i < ngiven && given[i] >= 0 && r == 0; i++)
		r = add_copy(fds, &count, given[i]);
	if (r == 0)
		r = conn_begin(&p->conn, GW_CONFIG, 0, &at);
	if (r == 0) {
		r = buf_add_str(&p->conn.out, fields);
		if (r < 0)
			conn_cancel(&p->conn, at);
	}
	if (r == 0)
		return conn_end(&p->conn, at, fds, count);
	while (count > 0)
		(void)close(fds[--count]);
	return r;
}

int net_configure(struct net *n)
{
	auto_done(buf_done) struct buf front = BUF_INIT(64);
	struct net_part *part = n->part;
	struct str policy = { n->policy, n->policy_len };
	int r = warden_has(n->w, HAS_GROUPS) ? 0 : field_put_u64(&front, GW_T_ASK, 1);

	if (r == 0)
		r = send_config(&part[NET_DIALER], buf_str(&n->config), NULL, 0);
	if (r == 0)
		r = send_config(&part[NET_FRONT], buf_str(&front),
				n->w->driver->net_fds(n->w->cell), NET_FDS);
	for (int i = 0; i < NET_PARTS && r == 0; i++)
		r = conn_send(&part[i].conn, GW_POLICY, 0, policy);
	return r;
}

/* cay-gateway is beside the warden, like init. */
static void find_program(const struct warden *w, char out[LIMIT_PATH])
{
	const char *slash = strrchr(w->spec.init, '/');

	(void)snprintf(out, LIMIT_PATH, "%.*s/cay-gateway", (int)(slash - w->spec.init),
		       w->spec.init);
}

static int start_part(struct net_part *p, struct jail *j, const struct conn_ops *ops)
{
	struct loop *loop = &p->n->w->loop;
	int pair[2], r;

	if (p->ledger < 0) {
		r = memfd_shared("cay-ledger", sizeof(struct ledger));
		if (r < 0)
			return r;
		p->ledger = r;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	j->stream_fd = pair[1];
	r = jail_start(j, &p->pid, &p->pidfd);
	(void)close(pair[1]);
	if (r < 0) {
		(void)close(pair[0]);
		return r;
	}
	return conn_init(&p->conn, loop, pair[0], ops); /* takes it */
}

static int start_both(struct net *n, const int between[2])
{
	static const struct conn_ops front = { .frame = net_on_front, .closed = net_on_closed };
	static const struct conn_ops dialer = { .frame = net_on_dialer, .closed = net_on_closed };
	const uint32_t last = n->w->spec.uid_base + USERNS_IDS - 1;
	char program[LIMIT_PATH];
	struct jail j = { .program = program,
			  .name = "cay-gateway",
			  .uid = n->w->rootful ? last : getuid(),
			  .gid = n->w->rootful ? last : getgid() };
	int r;

	find_program(n->w, program);
	j.role = "dialer";
	j.peer_fd = between[0];
	r = start_part(&n->part[NET_DIALER], &j, &dialer);
	j.role = "front";
	j.peer_fd = between[1];
	j.no_network = true;
	return r < 0 ? r : start_part(&n->part[NET_FRONT], &j, &front);
}

int net_prepare(struct net *n)
{
	int between[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, between) < 0)
		return -errno;
	r = start_both(n, between);
	(void)close(between[0]);
	(void)close(between[1]);
	if (r < 0)
		net_stop(n);
	n->started_ns = clock_mono_ns();
	return r;
}

int net_start(struct net *n)
{
	int r = net_prepare(n);

	if (r < 0)
		return r;
	r = net_configure(n);
	if (r < 0)
		net_stop(n);
	return r;
}
