/* SPDX-License-Identifier: Apache-2.0 */
/* The dialer with a front and a warden that are this test, in a network namespace of its own. */
#include "gateway/dialer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "base/fds.h"
#include "policy/compile.h"
#include "sys/net/route.h"
#include "sys/process/memfd.h"
#include "t_ns.h"

#define WEB	"45.90.0.10" /* a server at 7000, nobody at 7001, a proxy at 3128 */
#define ELSE	"45.90.0.11"
#define NOWHERE "45.91.0.2" /* packets to it are lost */

static const char rules[] =
	"limits: {connections: 200}\n"
	"rules:\n"
	"  - {id: web, hosts: [ok.test, moves.test], ports: [7000, 7001]}\n"
	"  - {id: few, hosts: [few.test], ports: [7000], limits: {connections: 2}}\n"
	"  - {id: lost, hosts: [lost.test], ports: [7000]}\n"
	"  - {id: address, addresses: [" ELSE "], ports: [7000]}\n"
	"  - {id: first, hosts: [two.test], addresses: [" WEB "], ports: [7001]}\n"
	"  - {id: second, hosts: [two.test], addresses: [" ELSE "], ports: [7001],\n"
	"     limits: {connections: 1}}\n";

static struct dialer d;
static int front, reports, web, elsewhere, proxy;
static struct conn warden;
static char report[4096]; /* the last one: "name address port rule reason" */

/* --- what the dialer is given instead of the world's names and routes --- */

static const char *answers = WEB; /* what names resolve to */
static int nresolved;

int resolver_new(struct loop *l, const char *servers, struct resolver **ret)
{
	(void)l;
	(void)servers;
	*ret = (void *)&d;
	return 0;
}

int resolve(struct resolver *r, const char *name, struct resolve_wait *w,
	    void (*fn)(struct resolve_wait *, const struct resolve_answer *))
{
	struct resolve_answer a = { .n = 1 };

	(void)r;
	nresolved++;
	if (str_starts(str_of(name), STR("missing")))
		a.status = -ENOENT;
	CHECK(ip_parse(str_of(strcmp(name, "lost.test") == 0 ? NOWHERE : answers), &a.addrs[0]) ==
	      0);
	if (strcmp(name, "two.test") == 0)
		CHECK(ip_parse(str_of(ELSE), &a.addrs[a.n++]) == 0);
	*w = (struct resolve_wait){ .fn = fn };
	fn(w, &a);
	return 0;
}

void resolve_cancel(struct resolve_wait *w)
{
	(void)w;
}

/* The addresses of this test stand for those of others, but for the one that is asked for here. */
int route_is_local(int fd, const uint8_t *addr, size_t size)
{
	static const uint8_t own[] = { 45, 90, 0, 11 };

	(void)fd;
	return size == 4 && memcmp(addr, own, 4) == 0;
}

/* --- the warden --- */

static void on_report(struct conn *c, const struct frame *f, int *fds)
{
	static const uint16_t tags[] = { GW_T_NAME, GW_T_ADDR, GW_T_PORT, GW_T_RULE, GW_T_REASON };
	struct str text[ARRAY_LEN(tags)] = { 0 }, body = f->body;
	uint64_t port = 0, kind = GW_KINDS;
	struct field field;

	(void)c;
	(void)fds;
	loop_stop(&d.loop);
	if (f->type != GW_EVENT)
		return;
	while (field_next(&body, &field) > 0) {
		if (field.tag == GW_T_KIND)
			(void)field_u64(field, &kind);
		for (size_t i = 0; i < ARRAY_LEN(tags); i++)
			if (field.tag == tags[i])
				text[i] = field.value;
		if (field.tag == GW_T_PORT)
			(void)field_u64(field, &port);
	}
	CHECK(kind == GW_KIND_DIAL);
	reports++;
	(void)snprintf(report, sizeof report, "%.*s %.*s %u %.*s %.*s", STR_ARG(text[0]),
		       STR_ARG(text[1]), (unsigned)port, STR_ARG(text[3]), STR_ARG(text[4]));
}

static void on_end(struct conn *c, int err)
{
	(void)err;
	conn_done(c);
}

static void send_policy(const char *yaml)
{
	struct policy_document doc = { .file = "p.yaml", .text = str_of(yaml) };
	auto_done(buf_done) struct buf out = BUF_INIT(LIMIT_POLICY);
	struct policy_builder b;
	struct err e = { 0 };

	doc.format = POLICY_YAML;
	policy_builder_init(&b);
	if (policy_add_document(&b, &doc, &e) < 0 || policy_build(&b, &out, &e) < 0)
		t_fail_str(__FILE__, __LINE__, e.msg, "a policy");
	policy_builder_done(&b);
	CHECK(conn_send(&warden, GW_POLICY, 0, buf_str(&out)) == 0);
}

/* --- the front --- */

static void on_packet(struct loop_io *io, uint32_t events)
{
	(void)io;
	(void)events;
	loop_stop(&d.loop);
}

static int listen_at(const char *ip, uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(inet_pton(AF_INET, ip, &sa.sin_addr) == 1);
	CHECK(fd >= 0 && bind(fd, (void *)&sa, sizeof sa) == 0 && listen(fd, 500) == 0);
	return fd;
}

static void own_network(void)
{
	t_own_namespaces(0);
	CHECK(unshare(CLONE_NEWNET) == 0);
	CHECK(system("ip link set lo up && ip addr add " WEB "/32 dev lo && "
		     "ip addr add " ELSE "/32 dev lo && ip link add d0 type veth peer name d1 && "
		     "ip addr add 45.91.0.1/24 dev d0 && ip link set d0 up && ip link set d1 up && "
		     "ip neigh add " NOWHERE " lladdr 02:00:00:00:00:02 dev d0") == 0);
	web = listen_at(WEB, 7000);
	proxy = listen_at(WEB, 3128);
	elsewhere = listen_at(ELSE, 7000);
	CHECK(fcntl(elsewhere, F_SETFL, O_NONBLOCK) == 0);
}

static void begin_dialer(const char *policy, const char *via, int ledger)
{
	static const struct conn_ops ops = { .frame = on_report, .closed = on_end };
	static struct loop_io io;
	int stream[2], packets[2], copy = dup(ledger);
	size_t at;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, packets) == 0);
	d = (struct dialer){ .top = 0 };
	warden = (struct conn){ .fd = FD_NONE };
	CHECK(dialer_begin(&d, stream[0], packets[0], FD_NONE) == 0);
	CHECK(conn_init(&warden, &d.loop, stream[1], &ops) == 0);
	front = packets[1];
	CHECK(loop_add(&d.loop, &io, front, EPOLLIN, on_packet) == 0);
	CHECK(conn_begin(&warden, GW_CONFIG, 0, &at) == 0);
	if (via)
		CHECK(field_put(&warden.out, GW_T_PROXY, str_of(via)) == 0);
	CHECK(conn_end(&warden, at, &copy, 1) == 0);
	send_policy(policy);
}

static void begin(const char *via)
{
	own_network();
	begin_dialer(rules, via, memfd_shared("ledger", sizeof(struct ledger)));
}

static void send_raw(const void *packet, size_t n)
{
	CHECK(send(front, packet, n, MSG_NOSIGNAL) == (ssize_t)n);
}

static void ask(enum dial_ask_kind kind, uint32_t slot, const char *target, uint16_t port)
{
	struct dial_ask a = { .kind = kind, .slot = slot, .serial = slot + 100, .port = port };
	uint8_t packet[DIAL_ASK_SIZE];

	if (ip_parse(str_of(target), &a.addr) < 0)
		(void)str_copy(a.name, sizeof a.name, str_of(target));
	dial_ask_write(&a, packet);
	send_raw(packet, sizeof packet);
}

/* The next answer; *ret_fd: what came with it. */
static struct dial_answer await(int *ret_fd)
{
	char packet[DIAL_ANSWER_SIZE + 1];
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} ctl;
	struct iovec iov = { packet, sizeof packet };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ctl };
	struct dial_answer a;
	int fds[4] = { FD_NONE };
	ssize_t n;

	m.msg_controllen = sizeof ctl;
	while ((n = recvmsg(front, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0) {
		CHECK(errno == EAGAIN && !d.broken);
		CHECK(loop_run(&d.loop) == 0);
		m.msg_controllen = sizeof ctl;
	}
	CHECK(fds_take(&m, fds, 4) <= 1);
	CHECK(dial_answer_read((struct str){ packet, (size_t)n }, &a) == 0);
	*ret_fd = fds[0];
	return a;
}

static struct dial_answer dial(uint32_t slot, const char *target, uint16_t port, int *ret_fd)
{
	ask(DIAL_ASK_DIAL, slot, target, port);
	return await(ret_fd);
}

static void await_report(const char *want)
{
	const int most = reports + 4; /* earlier ones may still be on their way */

	while (strcmp(report, want) != 0) {
		if (reports > most)
			t_fail_str(__FILE__, __LINE__, report, want);
		CHECK(loop_run(&d.loop) == 0);
	}
}

static bool is_connected(int fd)
{
	struct sockaddr_in sa;
	socklen_t n = sizeof sa;

	return getpeername(fd, (void *)&sa, &n) == 0;
}

/* --- claims --- */

static void an_allowed_name_is_dialled_and_reported(void)
{
	struct dial_answer a;
	int fd;

	begin(NULL);
	a = dial(5, "ok.test", 7000, &fd);
	CHECK(a.outcome == DIAL_DONE && a.slot == 5 && a.serial == 105 && fd >= 0);
	CHECK(a.addr.len == 4 && a.addr.b[3] == 10 && !a.local && is_connected(fd));
	await_report("ok.test " WEB " 7000 web ");
	a = dial(5, ELSE, 7000, &fd); /* a rule for exactly this address, though it is the host's */
	CHECK(a.outcome == DIAL_DONE && a.local && fd >= 0);
	await_report(" " ELSE " 7000 address ");
}

/* What a front without its list of system calls would do. */
static void redial(int fd)
{
	struct sockaddr_in other = { .sin_family = AF_INET, .sin_port = htons(7000) };

	CHECK(inet_pton(AF_INET, ELSE, &other.sin_addr) == 1);
	for (int i = 0; i < 3; i++) {
		CHECK(sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (void *)&other,
			     sizeof other) < 0);
		CHECK(errno == EISCONN || errno == EPIPE || errno == ECONNRESET);
	}
	CHECK(accept4(elsewhere, NULL, NULL, 0) < 0 && errno == EAGAIN);
}

static void a_socket_that_was_passed_cannot_be_connected_elsewhere(void)
{
	static const struct linger reset = { .l_onoff = 1 };
	int fd, server;

	begin(NULL);
	CHECK(dial(0, "ok.test", 7000, &fd).outcome == DIAL_DONE && fd >= 0);
	redial(fd);
	server = accept4(web, NULL, NULL, SOCK_CLOEXEC);
	CHECK(server >= 0);
	CHECK(setsockopt(server, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
	CHECK(close(server) == 0);
	redial(fd);
}

static void what_the_policy_forbids_is_refused_and_reported(void)
{
	static const struct {
		const char *target;
		uint16_t port;
		const char *report;
	} evil[] = {
		{ "evil.test", 7000, "evil.test  7000  default" },
		{ "ok.test", 22, "ok.test  22  default" },
		{ WEB, 7000, " " WEB " 7000  default" }, /* allowed by its name only */
		{ "127.0.0.1", 7000, " 127.0.0.1 7000  never" },
		{ "::1", 7000, " ::1 7000  never" },
		{ "169.254.169.254", 80, " 169.254.169.254 80  address" },
		{ "localhost", 7000, "localhost  7000  localhost" },
	};

	begin(NULL);
	for (size_t i = 0; i < ARRAY_LEN(evil); i++) {
		int fd;

		CHECK(dial(0, evil[i].target, evil[i].port, &fd).outcome == DIAL_DENIED && fd < 0);
		await_report(evil[i].report);
	}
	CHECK(nresolved == 0);
}

static void a_name_that_is_not_allowed_is_not_resolved(void)
{
	int fd;

	begin(NULL);
	ask(DIAL_ASK_RESOLVE, LIMIT_NET_FLOWS, "secret.evil.test", 0);
	CHECK(await(&fd).outcome == DIAL_DENIED && fd < 0 && nresolved == 0);
	await_report("secret.evil.test  0  default");
	ask(DIAL_ASK_RESOLVE, LIMIT_NET_FLOWS, "ok.test", 0);
	CHECK(await(&fd).outcome == DIAL_DONE && fd < 0 && nresolved == 1);
}

static void a_name_that_moves_to_another_address_is_refused(void)
{
	static const char *const to[] = { "10.0.0.1", "127.0.0.1", "169.254.169.254", ELSE };
	int fd;

	begin(NULL);
	CHECK(dial(0, "moves.test", 7000, &fd).outcome == DIAL_DONE && fd >= 0);
	for (size_t i = 0; i < ARRAY_LEN(to); i++) {
		struct dial_answer a;

		answers = to[i];
		a = dial(0, "moves.test", 7000, &fd);
		CHECK(a.outcome == DIAL_DENIED && fd < 0 && a.addr.len == 4);
	}
}

static void expect_broken(const void *packet, size_t n)
{
	send_raw(packet, n);
	while (!d.broken)
		CHECK(loop_run(&d.loop) == 0);
	CHECK(recv(front, (char[1]){ 0 }, 1, MSG_DONTWAIT) < 0);
}

static void an_address_with_a_name_ends_the_dialer(void)
{
	struct dial_ask a = { .kind = DIAL_ASK_DIAL, .port = 7000, .name = "ok.test" };
	uint8_t packet[DIAL_ASK_SIZE];

	begin(NULL);
	a.addr = (struct ip){ 4, { 10, 0, 0, 1 } };
	dial_ask_write(&a, packet);
	expect_broken(packet, sizeof packet);
	await_report("  0  malformed");
}

static void a_packet_of_another_size_ends_the_dialer(void)
{
	char packet[DIAL_ASK_SIZE + 1] = { 0 };

	begin(NULL);
	expect_broken(packet, sizeof packet);
}

static void a_second_ask_in_a_slot_ends_the_dialer(void)
{
	struct dial_ask a = { .kind = DIAL_ASK_DIAL, .port = 7000, .name = "ok.test" };
	uint8_t packet[DIAL_ASK_SIZE];

	begin(NULL);
	ask(DIAL_ASK_DIAL, 0, "lost.test", 7000);
	dial_ask_write(&a, packet);
	expect_broken(packet, sizeof packet);
}

static void a_server_that_refuses_gives_no_descriptor(void)
{
	struct dial_answer a;
	int fd;

	begin(NULL);
	a = dial(0, "ok.test", 7001, &fd);
	CHECK(a.outcome == DIAL_FAILED && a.err == ECONNREFUSED && fd < 0 && reports == 0);
}

static void stalled_dials_do_not_delay_a_quick_one(void)
{
	int fd;

	begin(NULL);
	for (uint32_t i = 0; i < 150; i++)
		ask(DIAL_ASK_DIAL, i, "lost.test", 7000);
	CHECK(dial(150, "ok.test", 7000, &fd).slot == 150 && fd >= 0);
	CHECK(d.nasks == 150);
}

static void a_cancelled_ask_is_not_answered_and_its_slot_is_free(void)
{
	struct dial_ask c = { .kind = DIAL_ASK_CANCEL, .slot = 7, .serial = 107 };
	uint8_t packet[DIAL_ASK_SIZE];
	struct dial_answer a;
	int fd;

	begin(NULL);
	ask(DIAL_ASK_DIAL, 7, "lost.test", 7000);
	c.serial = 1; /* of another ask: nothing happens */
	dial_ask_write(&c, packet);
	send_raw(packet, sizeof packet);
	CHECK(dial(8, "ok.test", 7000, &fd).slot == 8 && d.nasks == 1);
	c.serial = 107;
	dial_ask_write(&c, packet);
	send_raw(packet, sizeof packet);
	a = dial(7, "ok.test", 7000, &fd);
	CHECK(a.slot == 7 && a.outcome == DIAL_DONE && fd >= 0 && d.nasks == 0);
}

static void budgets_hold_against_the_front_and_outlive_the_dialer(void)
{
	int fd, ledger = memfd_shared("ledger", sizeof(struct ledger));

	own_network();
	for (int life = 0; life < 2; life++) {
		begin_dialer(rules, NULL, ledger);
		CHECK(dial(0, "few.test", 7000, &fd).outcome == DIAL_DONE);
	}
	CHECK(dial(0, "few.test", 7000, &fd).outcome == DIAL_LIMITED && fd < 0);
	/* The limit is known before the address. */
	await_report("few.test  7000 few connections");
	begin_dialer(rules, NULL, ledger);
	CHECK(dial(0, "few.test", 7000, &fd).outcome == DIAL_LIMITED && fd < 0);
	CHECK(dial(0, "ok.test", 7000, &fd).outcome == DIAL_DONE);
}

static void a_connection_is_counted_by_the_rule_of_the_address_it_got(void)
{
	int fd;

	begin(NULL);
	CHECK(listen_at(ELSE, 7001) >= 0); /* nobody listens there at the first address */
	CHECK(dial(0, "two.test", 7001, &fd).outcome == DIAL_DONE && fd >= 0);
	await_report("two.test " ELSE " 7001 second ");
	CHECK(d.total.connections == 1);
	CHECK(dial(0, "two.test", 7001, &fd).outcome == DIAL_LIMITED && fd < 0);
	await_report("two.test " ELSE " 7001 second connections");
}

/* A deny rule for requests is the front's to apply: it sees the bytes. */
static void a_client_that_may_be_silent_is_dialled_for(void)
{
	struct dial_ask a = { .kind = DIAL_ASK_DIAL, .port = 7000, .name = "ok.test" };
	uint8_t packet[DIAL_ASK_SIZE];
	int fd;

	own_network();
	begin_dialer("rules:\n"
		     "  - {id: no-admin, action: deny, paths: [/admin/**]}\n"
		     "  - {id: any, hosts: [ok.test], ports: [7000], protocol: any}\n",
		     NULL, memfd_shared("ledger", sizeof(struct ledger)));
	a.proto = PROTO_TCP;
	dial_ask_write(&a, packet);
	send_raw(packet, sizeof packet);
	CHECK(await(&fd).outcome == DIAL_DONE && fd >= 0);
}

static void names_that_do_not_exist_count(void)
{
	static const char few[] = "limits: {connections: 2}\n"
				  "rules:\n"
				  "  - {id: all, hosts: ['*.test'], ports: [7000]}\n";
	int fd;

	own_network();
	begin_dialer(few, NULL, memfd_shared("ledger", sizeof(struct ledger)));
	CHECK(dial(0, "missing1.test", 7000, &fd).outcome == DIAL_FAILED);
	CHECK(dial(0, "missing2.test", 7000, &fd).outcome == DIAL_FAILED && nresolved == 2);
	CHECK(dial(0, "missing3.test", 7000, &fd).outcome == DIAL_LIMITED && nresolved == 2);
}

static void names_that_do_not_exist_count_for_their_rule(void)
{
	static const char few[] = "rules:\n"
				  "  - {id: some, hosts: ['*.test'], ports: [7000],\n"
				  "     limits: {connections: 3}}\n";
	int fd;

	own_network();
	begin_dialer(few, NULL, memfd_shared("ledger", sizeof(struct ledger)));
	CHECK(dial(0, "missing1.test", 7000, &fd).outcome == DIAL_FAILED);
	CHECK(dial(0, "missing2.test", 7000, &fd).outcome == DIAL_FAILED && nresolved == 2);
	/* A connection that is made counts once, before the lookup and not again at the address. */
	CHECK(dial(0, "ok.test", 7000, &fd).outcome != DIAL_LIMITED && nresolved == 3);
	CHECK(dial(0, "missing3.test", 7000, &fd).outcome == DIAL_LIMITED && nresolved == 3);
}

/* --- through the host's proxy --- */

static char heard[1024];
static int heard_fd;

static void on_proxy(struct loop_io *io, uint32_t events)
{
	ssize_t n;

	(void)events;
	heard_fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC);
	CHECK(heard_fd >= 0);
	while (recv(heard_fd, heard, 1, MSG_PEEK | MSG_DONTWAIT) < 0) /* it is on loopback */
		CHECK(errno == EAGAIN);
	n = recv(heard_fd, heard, sizeof heard - 1, 0);
	CHECK(n > 0);
	heard[n] = '\0';
	loop_stop(&d.loop);
}

/* Ask for ok.test, and have what the proxy was asked for in `heard`. */
static void ask_through_proxy(void)
{
	static struct loop_io io;

	begin("http://me:secret@" WEB ":3128");
	CHECK(loop_add(&d.loop, &io, proxy, EPOLLIN, on_proxy) == 0);
	ask(DIAL_ASK_DIAL, 0, "ok.test", 7000);
	heard_fd = FD_NONE;
	while (heard_fd < 0)
		CHECK(loop_run(&d.loop) == 0);
}

static void answer_as_proxy(const char *words)
{
	CHECK(send(heard_fd, words, strlen(words), 0) == (ssize_t)strlen(words));
}

static void a_proxy_is_asked_for_the_name_and_its_yes_gives_the_socket(void)
{
	struct dial_answer a;
	char got[16];
	int fd;

	ask_through_proxy();
	CHECK(strstr(heard, "CONNECT ok.test:7000 HTTP/1.1\r\n") == heard);
	CHECK(strstr(heard, "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"));
	answer_as_proxy("HTTP/1.1 200 OK\r\n\r\nhello"); /* the server has spoken already */
	a = await(&fd);
	CHECK(a.outcome == DIAL_DONE && a.addr.len == 0 && fd >= 0 && nresolved == 0);
	CHECK(recv(fd, got, sizeof got, MSG_DONTWAIT) == 5 && memcmp(got, "hello", 5) == 0);
	await_report("ok.test  7000 web ");
}

static void a_proxy_that_says_no_gives_no_descriptor(void)
{
	int fd;

	ask_through_proxy();
	answer_as_proxy("HTTP/1.1 403 Forbidden\r\n\r\n");
	CHECK(await(&fd).outcome == DIAL_FAILED && fd < 0 && reports == 0);
}

static void a_name_that_is_not_allowed_is_not_asked_of_the_proxy(void)
{
	int fd;

	begin("http://me:secret@" WEB ":3128");
	CHECK(dial(0, "evil.test", 7000, &fd).outcome == DIAL_DENIED && fd < 0);
	CHECK(fcntl(proxy, F_SETFL, O_NONBLOCK) == 0 && accept(proxy, NULL, NULL) < 0);
}

static void a_policy_that_forbids_it_meanwhile_is_obeyed(void)
{
	int fd;

	ask_through_proxy();
	send_policy("rules:\n  - {id: other, hosts: [other.test]}\n");
	while (d.policy_number < 2)
		CHECK(loop_run(&d.loop) == 0);
	answer_as_proxy("HTTP/1.1 200 OK\r\n\r\n");
	CHECK(await(&fd).outcome == DIAL_DENIED && fd < 0);
	await_report("ok.test  7000  default");
}

T_MAIN(T(an_allowed_name_is_dialled_and_reported),
       T(a_socket_that_was_passed_cannot_be_connected_elsewhere),
       T(what_the_policy_forbids_is_refused_and_reported),
       T(a_name_that_is_not_allowed_is_not_resolved),
       T(a_name_that_moves_to_another_address_is_refused),
       T(an_address_with_a_name_ends_the_dialer), T(a_packet_of_another_size_ends_the_dialer),
       T(a_second_ask_in_a_slot_ends_the_dialer), T(a_server_that_refuses_gives_no_descriptor),
       T(stalled_dials_do_not_delay_a_quick_one),
       T(a_cancelled_ask_is_not_answered_and_its_slot_is_free),
       T(budgets_hold_against_the_front_and_outlive_the_dialer),
       T(a_connection_is_counted_by_the_rule_of_the_address_it_got),
       T(a_client_that_may_be_silent_is_dialled_for), T(names_that_do_not_exist_count),
       T(names_that_do_not_exist_count_for_their_rule),
       T(a_proxy_is_asked_for_the_name_and_its_yes_gives_the_socket),
       T(a_proxy_that_says_no_gives_no_descriptor),
       T(a_name_that_is_not_allowed_is_not_asked_of_the_proxy),
       T(a_policy_that_forbids_it_meanwhile_is_obeyed))
