/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialer's asks in any order. An input is a script: a front asks, cancels and reads late, names
 * resolve or do not, servers accept, refuse or say nothing, the host's proxy answers in pieces, the
 * clock moves and the policy changes. Each ask gets one answer at most, and a socket comes only
 * with a yes to a dial.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fds.h"
#include "fuzz.h"
#include "gateway/dialer.h"
#include "policy/compile.h"
#include "sys/process/memfd.h"

enum { STEPS = 200, SLOTS = 6, SERVERS = 8, WAITS = 64 };
enum how { AT_ONCE, SOON, REFUSED, NEVER, HOWS };

static struct {
	struct dialer d;
	struct conn warden;
	int front, outside, deaf, deaf_held;
	uint64_t now_ns;
	enum how dials, lookups;
	struct resolve_wait *waits[WAITS];
	int servers[SERVERS];
	unsigned next_server;
	uint32_t serial, asked[SLOTS]; /* without an answer; 0: none */
	enum dial_ask_kind kind[SLOTS];
} w;

struct script {
	const uint8_t *p, *end;
};

static unsigned next(struct script *s)
{
	return s->p < s->end ? *s->p++ : 0;
}

/* --- what the dialer asks the outside for --- */

uint64_t __wrap_clock_mono_ns(void);
uint64_t __wrap_clock_mono_ns(void)
{
	return w.now_ns;
}

int __wrap_route_is_local(int fd, const uint8_t *addr, size_t size);
int __wrap_route_is_local(int fd, const uint8_t *addr, size_t size)
{
	(void)fd;
	return size == 4 && addr[3] == 11;
}

int resolver_new(struct loop *l, const char *servers, struct resolver **ret)
{
	(void)l;
	(void)servers;
	*ret = (void *)&w;
	return 0;
}

static const struct resolve_answer addresses = {
	.n = 3,
	.addrs = { { 4, { 45, 90, 0, 10 } }, { 4, { 10, 1, 2, 3 } }, { 4, { 45, 90, 0, 11 } } }
};

int resolve(struct resolver *r, const char *name, struct resolve_wait *wait,
	    void (*fn)(struct resolve_wait *, const struct resolve_answer *))
{
	int i = 0;

	(void)r;
	(void)name;
	*wait = (struct resolve_wait){ .fn = fn };
	if (w.lookups == REFUSED)
		return -EBUSY;
	if (w.lookups == AT_ONCE) {
		fn(wait, &addresses);
		return 0;
	}
	while (i < WAITS && w.waits[i])
		i++;
	FUZZ_CHECK(i < WAITS);
	w.waits[i] = wait;
	wait->lookup = (void *)wait;
	return 0;
}

void resolve_cancel(struct resolve_wait *wait)
{
	for (int i = 0; wait->lookup && i < WAITS; i++)
		if (w.waits[i] == wait)
			w.waits[i] = NULL;
	wait->lookup = NULL;
}

static int connect_to(int listener)
{
	struct sockaddr_in sa;
	socklen_t n = sizeof sa;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	FUZZ_CHECK(fd >= 0 && getsockname(listener, (void *)&sa, &n) == 0);
	(void)connect(fd, (void *)&sa, n);
	return fd;
}

int __wrap_dial_start(const struct ip *ip, uint16_t port, bool *ret_open);
int __wrap_dial_start(const struct ip *ip, uint16_t port, bool *ret_open)
{
	int *server = &w.servers[w.next_server++ % SERVERS], fd;

	FUZZ_CHECK(ip->len && port);
	if (w.dials == REFUSED)
		return -ECONNREFUSED;
	fd = connect_to(w.dials == NEVER ? w.deaf : w.outside);
	*ret_open = w.dials == AT_ONCE;
	if (w.dials == NEVER)
		return fd;
	fd_close(server);
	*server = accept4(w.outside, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	return fd;
}

/* --- the warden --- */

static void on_report(struct conn *c, const struct frame *f, int *fds)
{
	(void)c;
	(void)fds;
	FUZZ_CHECK(f->nfds == 0);
}

static void on_end(struct conn *c, int err)
{
	(void)c;
	(void)err;
	__builtin_trap();
}

static const char *const policies[] = {
	"rules:\n  - {id: any, hosts: ['**.test'], ports: [7000]}\n",
	"rules:\n"
	"  - {id: lan, hosts: ['**.test'], addresses: [10.0.0.0/8], ports: [7000],\n"
	"     limits: {connections: 2}}\n"
	"  - {id: few, hosts: [a.test], ports: [7000], limits: {connections: 3}}\n",
	"limits: {rate_connections: 2/s, rate_dns: 2/s}\n"
	"rules:\n  - {id: exact, addresses: [45.90.0.11], ports: [7000]}\n"
	"  - {id: any, hosts: ['**.test'], ports: [7000]}\n",
	"rules: []\n",
};

static struct str compiled(unsigned i)
{
	static struct buf done[ARRAY_LEN(policies)];
	struct policy_document doc = { .file = "p.yaml", .text = str_of(policies[i]) };
	struct policy_builder b;
	struct err e = { 0 };

	if (done[i].len)
		return buf_str(&done[i]);
	doc.format = POLICY_YAML;
	done[i] = (struct buf)BUF_INIT(LIMIT_POLICY);
	policy_builder_init(&b);
	FUZZ_CHECK(policy_add_document(&b, &doc, &e) == 0 && policy_build(&b, &done[i], &e) == 0);
	policy_builder_done(&b);
	return buf_str(&done[i]);
}

/* --- the front --- */

static void send_ask(const struct dial_ask *a)
{
	uint8_t packet[DIAL_ASK_SIZE];

	dial_ask_write(a, packet);
	(void)send(w.front, packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void do_ask(struct script *s)
{
	uint32_t slot = next(s) % SLOTS;
	unsigned how = next(s);
	struct dial_ask a = { .slot = slot, .serial = ++w.serial, .kind = DIAL_ASK_DIAL };

	if (w.asked[slot])
		return;
	if (how & 1 && how & 2)
		a.addr = (struct ip){ 4, { 45, 90, 0, how & 4 ? 11 : 10 } };
	else
		(void)str_copy(a.name, sizeof a.name, how & 4 ? STR("b.test") : STR("a.test"));
	a.port = how & 8 ? 7001 : 7000;
	if (a.name[0] && how & 16) {
		a.kind = DIAL_ASK_RESOLVE;
		a.port = 0;
	}
	w.asked[slot] = a.serial;
	w.kind[slot] = a.kind;
	send_ask(&a);
}

static void do_cancel(struct script *s)
{
	uint32_t slot = next(s) % SLOTS;

	send_ask(&(struct dial_ask){
		.kind = DIAL_ASK_CANCEL, .slot = slot, .serial = w.asked[slot] });
	w.asked[slot] = 0;
}

static bool read_answer(void)
{
	char packet[DIAL_ANSWER_SIZE + 1];
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} ctl;
	struct iovec iov = { packet, sizeof packet };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl };
	auto_close int fd = FD_NONE;
	struct dial_answer a;
	int nfds;
	ssize_t n;

	m.msg_controllen = sizeof ctl;
	n = recvmsg(w.front, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return false;
	nfds = fds_take(&m, &fd, 1);
	FUZZ_CHECK(dial_answer_read((struct str){ packet, (size_t)n }, &a) == 0);
	FUZZ_CHECK(a.slot < SLOTS && a.serial && a.serial <= w.serial);
	FUZZ_CHECK(nfds == 0 || a.outcome == DIAL_DONE);
	if (w.asked[a.slot] != a.serial)
		return true; /* it was cancelled when the answer was on its way */
	FUZZ_CHECK(nfds == (w.kind[a.slot] == DIAL_ASK_DIAL && a.outcome == DIAL_DONE));
	w.asked[a.slot] = 0;
	return true;
}

static void do_read(struct script *s)
{
	(void)s;
	(void)read_answer();
}

/* --- the others --- */

static void do_modes(struct script *s)
{
	unsigned how = next(s);

	w.dials = (enum how)(how % HOWS);
	w.lookups = (enum how)((how >> 4) % HOWS);
}

static void do_resolved(struct script *s)
{
	struct resolve_answer none = { .status = -ENOENT };
	unsigned i = next(s) % WAITS;
	struct resolve_wait *wait;

	for (int k = 0; k < WAITS && !w.waits[i]; k++)
		i = (i + 1) % WAITS;
	wait = w.waits[i];
	if (!wait)
		return;
	resolve_cancel(wait);
	wait->fn(wait, next(s) & 1 ? &none : &addresses);
}

static void do_policy(struct script *s)
{
	FUZZ_CHECK(conn_send(&w.warden, GW_POLICY, 0, compiled(next(s) % ARRAY_LEN(policies))) ==
		   0);
}

static void do_wait(struct script *s)
{
	static const uint16_t ms[] = { 1, 5, 100, 101, 1000, 5001, 15001, 30000 };

	w.now_ns += ms[next(s) % ARRAY_LEN(ms)] * NS_PER_MS;
}

/* What a proxy says, whole or in two pieces. */
static void do_say(struct script *s)
{
	static const struct str said[] = {
		STR("HTTP/1.1 200 OK\r\n\r\n"),
		STR("HTTP/1.1 407 No\r\n\r\n"),
		STR("HTTP/1.1 100 Go\r\n\r\n"),
		STR("\5\0"),
		STR("\5\2"),
		STR("\1\0"),
		STR("\5\0\0\1\0\0\0\0\0\0"),
		STR("\5\0\0\3\4abcd\0\0"),
		STR("\5\1\0\1\0\0\0\0\0\0"),
		STR("x"),
	};
	struct str in = said[next(s) % ARRAY_LEN(said)];
	unsigned how = next(s);
	int fd = w.servers[(w.next_server - 1 - (how & 3)) % SERVERS];
	size_t cut = how & 128 ? (how >> 2) % in.n : in.n, from = how & 64 ? cut : 0;

	if (fd >= 0)
		(void)send(fd, in.p + from, (from ? in.n : cut) - from,
			   MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void do_close(struct script *s)
{
	fd_close(&w.servers[next(s) % SERVERS]);
}

static void (*const steps[])(struct script *s) = {
	do_ask,	 do_read, do_say,  do_ask,    do_modes,	   do_wait, do_ask,   do_cancel,
	do_read, do_say,  do_wait, do_policy, do_resolved, do_say,  do_close, do_resolved,
};

/* --- turns --- */

static void check(void)
{
	const struct dialer *d = &w.d;
	uint32_t n = 0, answered = 0, to_send = 0;

	for (uint32_t i = 0; i < LIMIT_DIAL_ASKS; i++) {
		const struct dialling *a = d->asks[i];

		if (!a)
			continue;
		n++;
		FUZZ_CHECK(i < d->top && a->ask.slot == i && a->d == d);
		FUZZ_CHECK(a->fd >= 0 || a->wait.lookup || a->answered);
		FUZZ_CHECK(!a->deadline_ns || (d->tick.at_ns && !a->answered));
		answered += a->answered;
	}
	for (const struct dialling *a = d->to_send; a; a = a->next)
		to_send++;
	FUZZ_CHECK(n == d->nasks && answered == to_send && !d->broken);
	FUZZ_CHECK(*d->to_send_end == NULL);
}

static void on_turned(struct loop *l)
{
	loop_stop(l);
}

static void turn(void)
{
	w.d.loop.chores = true;
	FUZZ_CHECK(loop_run(&w.d.loop) == 0);
	check();
}

static int loopback(int backlog)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	FUZZ_CHECK(fd >= 0 && bind(fd, (void *)&sa, sizeof sa) == 0 && listen(fd, backlog) == 0);
	return fd;
}

static void open_once(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	(void)signal(SIGPIPE, SIG_IGN);
	w.outside = loopback(64);
	w.deaf = loopback(0); /* its queue is full: connections to it hang */
	w.deaf_held = connect_to(w.deaf);
	for (int i = 0; i < SERVERS; i++)
		w.servers[i] = FD_NONE;
}

static void begin(unsigned how)
{
	static const struct conn_ops ops = { .frame = on_report, .closed = on_end };
	static const char *const vias[] = { NULL, NULL, "http://me:pw@45.90.0.20:3128",
					    "socks5h://me:pw@45.90.0.20:1080" };
	const char *via = vias[how % ARRAY_LEN(vias)];
	int few = 1, stream[2], packets[2], ledger = memfd_shared("ledger", sizeof(struct ledger));
	size_t at;

	w.now_ns = 1000 * NS_PER_S;
	w.d = (struct dialer){ .top = 0 };
	w.warden = (struct conn){ .fd = FD_NONE };
	w.dials = w.lookups = AT_ONCE;
	w.next_server = w.serial = 0;
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) == 0);
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, packets) == 0);
	/* A front that reads late soon leaves no room for answers. */
	FUZZ_CHECK(setsockopt(packets[0], SOL_SOCKET, SO_SNDBUF, &few, sizeof few) == 0);
	FUZZ_CHECK(dialer_begin(&w.d, stream[0], packets[0], FD_NONE) == 0);
	FUZZ_CHECK(conn_init(&w.warden, &w.d.loop, stream[1], &ops) == 0);
	w.front = packets[1];
	w.d.loop.turned = on_turned;
	FUZZ_CHECK(conn_begin(&w.warden, GW_CONFIG, 0, &at) == 0);
	if (via)
		FUZZ_CHECK(field_put(&w.warden.out, GW_T_PROXY, str_of(via)) == 0);
	FUZZ_CHECK(conn_end(&w.warden, at, &ledger, 1) == 0);
	FUZZ_CHECK(conn_send(&w.warden, GW_POLICY, 0, compiled(0)) == 0);
	for (int i = 0; i < 4; i++)
		turn();
	FUZZ_CHECK(w.d.policy_number == 1);
}

static void end(void)
{
	struct dialer *d = &w.d;

	for (int i = 0; i < 4; i++) {
		for (uint8_t slot = 0; slot < SLOTS; slot++)
			do_cancel(&(struct script){ &slot, &slot + 1 });
		while (read_answer())
			;
		turn();
	}
	FUZZ_CHECK(d->nasks == 0 && !d->to_send);
	for (int i = 0; i < WAITS; i++)
		FUZZ_CHECK(!w.waits[i]);
	for (int i = 0; i < SERVERS; i++)
		fd_close(&w.servers[i]);
	conn_done(&w.warden);
	conn_done(&d->warden);
	fd_close(&w.front);
	fd_close(&d->front_fd);
	loop_done(&d->loop);
	policy_free(d->policy);
	free(d->meters);
	(void)munmap(d->ledger, sizeof *d->ledger);
}

static int open_descriptors(void)
{
	enum { MOST = 256 };
	int n = 0;

	for (int fd = 0; fd < MOST; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct script s = { data, data + size };
	int before;

	open_once();
	before = open_descriptors();
	begin(next(&s));
	for (int i = 0; i < STEPS && s.p < s.end; i++) {
		unsigned step = next(&s);

		steps[step % ARRAY_LEN(steps)](&s);
		if (!(step & 128))
			turn();
	}
	end();
	FUZZ_CHECK(open_descriptors() == before);
	return 0;
}
