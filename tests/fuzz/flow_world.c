/* SPDX-License-Identifier: Apache-2.0 */
#include "flow_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "policy/compile.h"

struct world world;

/* --- what the gateway asks the outside for --- */

uint64_t __wrap_clock_mono_ns(void);
uint64_t __wrap_clock_mono_ns(void)
{
	return world.now_ns;
}

struct sockdiag_owner __wrap_whose(struct gateway *g, int protocol, const struct target *from,
				   const struct target *to);
struct sockdiag_owner __wrap_whose(struct gateway *g, int protocol, const struct target *from,
				   const struct target *to)
{
	(void)g;
	(void)protocol;
	(void)from;
	(void)to;
	return (struct sockdiag_owner){ .inode = (uint32_t)world.inode };
}

uint16_t world_port(int fd, bool peer)
{
	struct sockaddr_in sa = { 0 };
	socklen_t n = sizeof sa;

	(void)(peer ? getpeername(fd, (void *)&sa, &n) : getsockname(fd, (void *)&sa, &n));
	return ntohs(sa.sin_port);
}

static int connect_to(int listener)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(world_port(listener, false)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	FUZZ_CHECK(fd >= 0);
	(void)connect(fd, (void *)&sa, sizeof sa);
	return fd;
}

/* The other end of a connection from this port. A busy machine may take a moment for it. */
static int accept_from(int listener, uint16_t port)
{
	enum { PATIENCE_MS = 5000 };
	struct pollfd p = { .fd = listener, .events = POLLIN };

	while (poll(&p, 1, PATIENCE_MS) > 0) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0 && world_port(fd, true) == port)
			return fd;
		if (fd >= 0)
			(void)close(fd);
	}
	return FD_NONE;
}

int world_serve(void)
{
	struct world_server *s = &world.servers[world.next_server++ % WORLD_PEERS];
	int fd = connect_to(world.outside);

	world_shut(&s->fd, 2);
	*s = (struct world_server){ .port = world_port(fd, false) };
	s->fd = accept_from(world.outside, s->port);
	return fd;
}

/* --- the warden --- */

int event_begin(struct gateway *g, enum gw_kind kind, uint32_t slot, const struct subject *s,
		size_t *ret_at)
{
	(void)s;
	*ret_at = 0;
	switch (kind) {
	case GW_KIND_CONNECT:
		FUZZ_CHECK(!world.told[slot] && g->flows[slot]);
		world.told[slot] = 1;
		break;
	case GW_KIND_CLOSE:
		FUZZ_CHECK(world.told[slot]);
		world.told[slot] = 0;
		break;
	case GW_KIND_TLS:
	case GW_KIND_HTTP:
		FUZZ_CHECK(world.told[slot]);
		break;
	case GW_KIND_DIAL: /* only the dialer tells of dials */
		__builtin_trap();
	case GW_KIND_DNS:
	case GW_KIND_DENY:
	case GW_KIND_FAIL:
	case GW_KIND_GAP:
	case GW_KINDS:
		break;
	}
	return 0;
}

void event_end(struct gateway *g, size_t at, enum event_when when)
{
	(void)at;
	g->loop.chores |= when == EVENT_SOON;
}

void event_text(struct gateway *g, uint16_t tag, struct str text)
{
	static volatile char sink;

	(void)g;
	(void)tag;
	for (size_t i = 0; i < text.n; i++) /* all of it is readable */
		sink = text.p[i];
	(void)sink;
}

void event_num(struct gateway *g, uint16_t tag, uint64_t value)
{
	(void)g;
	(void)tag;
	(void)value;
}

static void on_frame(struct conn *c, const struct frame *f, int *fds)
{
	(void)c;
	(void)f;
	(void)fds;
}

static void on_closed(struct conn *c, int err)
{
	(void)c;
	(void)err;
	__builtin_trap(); /* the warden's end stays open */
}

/* --- the two ends of a connection --- */

void world_shut(int *fd, unsigned how)
{
	static const struct linger now = { .l_onoff = 1 };

	if (*fd < 0)
		return;
	if (how == 0) {
		(void)shutdown(*fd, SHUT_WR);
		return;
	}
	if (how == 2)
		(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	fd_close(fd);
}

static bool is_front(const struct target *to)
{
	return to->port == 53 || to->port == 3128 || to->port == 1080;
}

void world_connect(unsigned client, const struct target *to)
{
	struct world_client *c = &world.clients[client % WORLD_PEERS];
	struct target from = { .ip = { 4, { 198, 18, 0, 2 } } };
	int fd;

	world_shut(&c->fd, 2);
	c->fd = connect_to(world.listener);
	c->port = from.port = world_port(c->fd, false);
	c->generation++;
	c->nsent = 0;
	c->direct = !is_front(to);
	fd = accept_from(world.listener, c->port);
	if (fd >= 0)
		flow_new(world.g, fd, &from, to);
}

void world_send(unsigned client, struct str data)
{
	struct world_client *c = &world.clients[client % WORLD_PEERS];
	ssize_t n;

	if (data.n > WORLD_SENT - c->nsent)
		data.n = WORLD_SENT - c->nsent;
	if (c->fd < 0 || data.n == 0)
		return;
	n = send(c->fd, data.p, data.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n <= 0)
		return;
	memcpy(c->sent + c->nsent, data.p, (size_t)n);
	c->nsent += (size_t)n;
}

static ssize_t read_some(int fd, char *buf, size_t most)
{
	return fd < 0 ? -1 : recv(fd, buf, most, MSG_DONTWAIT);
}

static char arrived[128 * 1024];

static size_t at_most(size_t n)
{
	return n < sizeof arrived ? n : sizeof arrived;
}

void world_client_read(unsigned client, size_t most)
{
	(void)read_some(world.clients[client % WORLD_PEERS].fd, arrived, at_most(most));
}

/* No byte is lost, doubled or made up: the server gets a beginning of what its client sent. */
void world_server_read(unsigned server, size_t most)
{
	struct world_server *s = &world.servers[server % WORLD_PEERS];
	struct world_client *c = s->client;
	ssize_t n = read_some(s->fd, arrived, at_most(most));

	if (n <= 0)
		return;
	s->ngot += (size_t)n;
	if (!c || c->generation != s->generation || !c->direct)
		return;
	FUZZ_CHECK(s->ngot <= c->nsent);
	FUZZ_CHECK(memcmp(c->sent + s->ngot - (size_t)n, arrived, (size_t)n) == 0);
}

void world_server_send(unsigned server, struct str data)
{
	struct world_server *s = &world.servers[server % WORLD_PEERS];

	if (s->fd >= 0)
		(void)send(s->fd, data.p, data.n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void world_dns_datagram(struct str msg)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(world_port(world.udp, false)) };

	(void)sendto(world.udp_client, msg.p, msg.n, MSG_DONTWAIT, (void *)&sa, sizeof sa);
	while (recv(world.udp_client, arrived, sizeof arrived, MSG_DONTWAIT) >= 0)
		;
}

/* --- policies --- */

static const char *const policies[] = {
	"rules:\n"
	"  - {id: any, hosts: ['**.test'], ports: [8004, 9000]}\n"
	"  - {id: web, hosts: ['**.test']}\n"
	"  - {id: ssh, hosts: ['**.test'], protocol: ssh}\n",
	"rules:\n"
	"  - {id: no-admin, action: deny, paths: [/admin/**]}\n"
	"  - {id: any, hosts: ['**.test'], ports: [80, 8004, 9000], protocol: any}\n",
	"limits: {rate_up: 20K/s, rate_down: 30K/s, rate_dns: 5/s, rate_connections: 3/s}\n"
	"rules:\n"
	"  - {id: any, hosts: ['**.test'], ports: [8004], limits: {bytes: 90K, concurrent: 2}}\n"
	"  - {id: more, hosts: ['**.test'], ports: [80, 443, 9000], limits: {rate_up: 17K/s}}\n",
	"rules:\n"
	"  - {id: raw, hosts: ['**.test'], ports: [1-65535], protocol: tcp, limits: {bytes_up: 9K}}\n",
	"default: allow\n"
	"limits: {concurrent: 3}\n"
	"rules:\n"
	"  - {id: no-b, action: deny, hosts: [b.test]}\n"
	"  - {id: no-put, action: deny, methods: [PUT]}\n",
	"rules:\n"
	"  - {id: pub, hosts: [a.test], methods: [GET], paths: ['/pub/**'], ports: [80, 8004],\n"
	"     limits: {connections: 4}}\n"
	"  - {id: rest, hosts: [a.test], protocol: [http, tls], ports: [80, 443, 8004]}\n",
	"rules: []\n",
	"rules:\n"
	"  - {id: lan, hosts: ['**.test'], addresses: [10.0.0.0/8], ports: [1-65535],\n"
	"     limits: {concurrent: 2}}\n"
	"  - {id: bare, addresses: [45.90.0.0/24], ports: [8004, 80]}\n"
	"  - {id: loose, hosts: ['**.test'], ports: [443, 8004], limits: {concurrent: 2}, tls: {mismatch: true, missing: true}}\n",
};

static struct str compiled(unsigned i)
{
	static struct buf done[ARRAY_LEN(policies)];
	struct policy_document d = { .file = "p.yaml",
				     .text = str_of(policies[i]),
				     .format = POLICY_YAML };
	struct policy_builder b;
	struct err e = { 0 };

	if (done[i].len)
		return buf_str(&done[i]);
	done[i] = (struct buf)BUF_INIT(LIMIT_POLICY);
	policy_builder_init(&b);
	if (policy_add_document(&b, &d, &e) < 0 || policy_build(&b, &done[i], &e) < 0) {
		(void)fprintf(stderr, "policy %u: %s\n", i, e.msg);
		abort();
	}
	policy_builder_done(&b);
	return buf_str(&done[i]);
}

void world_policy(unsigned i)
{
	uint64_t cut;

	FUZZ_CHECK(policy_set(world.g, compiled(i % ARRAY_LEN(policies)), &cut) == 0);
}

/* --- turns --- */

static void on_turned(struct loop *l)
{
	loop_stop(l);
}

static void on_idle(struct loop *l)
{
	flow_close_one(container_of(l, struct gateway, loop));
}

void world_turn(void)
{
	do {
		world.g->loop.chores = true; /* the loop does not sleep: time is ours */
		FUZZ_CHECK(loop_run(&world.g->loop) == 0);
	} while (world_dialer_play());
	while (recv(world.warden, arrived, sizeof arrived, MSG_DONTWAIT) > 0)
		;
	world_check();
}

/* --- the beginning and the end --- */

static int loopback(int type, int backlog)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	FUZZ_CHECK(fd >= 0 && bind(fd, (void *)&sa, sizeof sa) == 0);
	FUZZ_CHECK(type != SOCK_STREAM || listen(fd, backlog) == 0);
	return fd;
}

void world_open(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	(void)signal(SIGPIPE, SIG_IGN); /* as the gateway does */
	world.listener = loopback(SOCK_STREAM, 16);
	world.outside = loopback(SOCK_STREAM, 16);
	world.udp = loopback(SOCK_DGRAM, 0);
	world.udp_client = loopback(SOCK_DGRAM, 0);
	for (int i = 0; i < WORLD_PEERS; i++)
		world.clients[i].fd = world.servers[i].fd = FD_NONE;
}

void world_begin(void)
{
	static const struct conn_ops ops = { .frame = on_frame, .closed = on_closed };
	struct gateway *g = calloc(1, sizeof *g);
	int pair[2];

	FUZZ_CHECK(g);
	world.g = g;
	world.now_ns = 1000 * NS_PER_S;
	world.dials = world.lookups = PLAY_OPEN;
	world.via = false;
	world.inode = 0;
	world.next_server = 0;
	for (int i = 0; i < SOCKS; i++)
		g->fds[i] = FD_NONE;
	g->fds[SOCK_UDP4] = world.udp;
	g->addresses = calloc(1, sizeof *g->addresses);
	g->ledger = calloc(1, sizeof *g->ledger);
	g->free_slots = calloc(LIMIT_NET_FLOWS, sizeof *g->free_slots);
	FUZZ_CHECK(g->addresses && g->ledger && g->free_slots && loop_init(&g->loop) == 0);
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	world.warden = pair[0];
	FUZZ_CHECK(conn_init(&g->warden, &g->loop, pair[1], &ops) == 0);
	world_dialer_begin();
	g->loop.idle = on_idle;
	g->loop.turned = on_turned;
	world_policy(0);
	FUZZ_CHECK(dns_begin(g) == 0);
}

void world_end(void)
{
	struct gateway *g = world.g;

	flow_end_all(g, "over");
	world_dialer_finish();
	FUZZ_CHECK(g->nflows == 0 && g->nwaiting == 0 && g->nthrottled == 0 && g->nqueries == 0);
	FUZZ_CHECK(g->total.open == 0);
	for (int i = 0; i < LIMIT_NET_FLOWS; i++)
		FUZZ_CHECK(!world.told[i]);
	while (g->nclosing)
		flow_close_one(g);
	for (struct pipe *p = g->pipes, *next; p; p = next) {
		next = p->next;
		(void)close(p->r);
		(void)close(p->w);
		free(p);
	}
	for (int i = 0; i < WORLD_PEERS; i++) {
		world_shut(&world.clients[i].fd, 2);
		world_shut(&world.servers[i].fd, 2);
	}
	conn_done(&g->warden);
	fd_close(&world.warden);
	fd_close(&world.dialer);
	fd_close(&g->asker.fd);
	buf_done(&g->asker.out);
	loop_done(&g->loop);
	addresses_done(g->addresses);
	free(g->addresses);
	policy_free(g->policy);
	free(g->meters);
	free(g->ledger);
	free(g->free_slots);
	free(g);
}
