/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of things: an input is a script of what clients, servers, the clock, the policy and the
 * dialer do to one gateway (flow_world.h). Each step is one byte and its operands; every byte
 * string is a script. After each step the loop turns and the world checks that all is consistent.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "flow_world.h"
#include "fuzz.h"

enum { STEPS = 256 };

struct script {
	const uint8_t *p, *end;
};

static unsigned next(struct script *s)
{
	return s->p < s->end ? *s->p++ : 0;
}

/* --- what is said --- */

#define HELLO_HEAD \
	"\x16\3\1\0\x45\1\0\0\x41\3\3rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr\0\0\2\x13\1\1\0\0\x16"
#define QUERY "\0\7\1\0\0\1\0\0\0\0\0\0\1a\4test\0\0\1\0\1"

static const struct str said_inside[] = {
	STR("a"),
	STR(" "),
	STR("\r\n"),
	STR("GET / HTTP/1.1\r\nHost: a.test:8004\r\n\r\n"),
	STR("GET /pub/x HTTP/1.1\r\nHost: a.test\r\n\r\n"),
	STR("GET /admin/x HTTP/1.1\r\nHost: a.test:8004\r\n\r\n"),
	STR("POST /up HTTP/1.1\r\nHost: a.test:8004\r\nContent-Length: 9\r\n\r\n"),
	STR("POST /up HTTP/1.1\r\nHost: a.test:8004\r\nTransfer-Encoding: chunked\r\n\r\n"),
	STR("5\r\nhello\r\n"),
	STR("0\r\n\r\n"),
	STR("GET /ws HTTP/1.1\r\nHost: a.test:8004\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	    "Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"),
	STR("CONNECT a.test:8004 HTTP/1.1\r\nHost: a.test:8004\r\n\r\n"),
	STR("GET http://a.test:8004/p HTTP/1.1\r\nHost: a.test:8004\r\n\r\n"),
	STR("GET http://b.test/p HTTP/1.1\r\nHost: b.test\r\n\r\n"),
	STR("\5\1\0"),
	STR("\5\1\0\3\6a.test\x1f\x44"),
	STR("\5\1\0\1\x2d\x5a\0\x0a\x1f\x44"),
	STR("\0\x18" QUERY),
	STR("SSH-2.0-x\r\n"),
	STR("\0\0\1\x0c"),
	STR("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n"),
	STR("EHLO me\r\n"),
	STR("FOO /x"),
	STR(" HTTP/1.1\r\nHost: other.test\r\n\r\n"),
	STR(HELLO_HEAD "\0\0\0\x0b\0\x09\0\0\6a.test\0\x0a\0\3\0\1\0"),
	STR("*1\r\n$4\r\nPING\r\n"),
};

static const struct str said_outside[] = {
	STR("a"),
	STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
	STR("HTTP/1.1 100 Continue\r\n\r\n"),
	STR("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
	STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
	STR("5\r\nhello\r\n0\r\n\r\n"),
	STR("HTTP/1.0 200 OK\r\n\r\n"),
	STR("HTTP/1.1 407 No\r\n\r\n"),
	STR("SSH-2.0-x\r\n"),
	STR("\5\0"),
	STR("\5\2"),
	STR("\1\0"),
	STR("\5\0\0\1\0\0\0\0\0\0"),
};

/* Around the limits of the first line, the peeked buffer, the pipe and small sockets. */
static const uint32_t sizes[] = { 1,	2,    10,    100,   1000,  3800,  4084,	 4095,
				  4096, 4097, 16384, 20000, 65530, 65536, 70000, 200000 };

/* A piece, whole, cut short, or so often that it fills one of the sizes. */
static struct str piece(struct script *s, const struct str *said, size_t n)
{
	static char filled[200000];
	struct str in = said[next(s) % n];
	unsigned how = next(s);
	size_t size;

	if (how < 128)
		return in;
	if (how < 160) {
		in.n = next(s) % (in.n + 1);
		return in;
	}
	size = sizes[how % ARRAY_LEN(sizes)];
	for (size_t i = 0; i < size; i += in.n)
		memcpy(filled + i, in.p, in.n < size - i ? in.n : size - i);
	return (struct str){ filled, size };
}

/* --- what is done --- */

static unsigned last_client, last_server;

/* Mostly the one that acted last: what is of interest happens to one connection. */
static unsigned client_of(unsigned byte)
{
	enum { OTHERS = 224 };

	if (byte >= OTHERS)
		last_client = byte % WORLD_PEERS;
	return last_client;
}

static unsigned server_of(unsigned byte)
{
	enum { OTHERS = 224 };

	last_server = byte >= OTHERS ? byte % WORLD_PEERS : world.next_server - 1;
	return last_server;
}

static void do_connect(struct script *s)
{
	static const uint16_t ports[] = { 8004, 80, 443, 22, 9000, 53, 3128, 1080 };
	unsigned client = next(s) % WORLD_PEERS, how = next(s);
	struct target to = { .port = ports[how % ARRAY_LEN(ports)] };
	struct ip ip6;

	if (to.port == 3128 || to.port == 1080)
		to.ip = gateway_ip(AF_INET);
	else if ((how & 0xc0) == 0x40)
		to.ip = (struct ip){ 4, { 45, 90, 0, 10 } };
	else if (addresses_give(world.g->addresses, how & 128 ? "b.test" : "a.test", &to.ip, &ip6) <
		 0)
		return;
	if ((how & 0x38) == 0x38)
		to.ip = (struct ip){ 4, { 198, 19, 200, 7 } }; /* of the pool, but no name's */
	last_client = client;
	world_connect(client, &to);
}

static void do_wait(struct script *s)
{
	static const uint16_t ms[] = { 1,   5,	 10,   50,   199,  200,	 201,	299,
				       301, 400, 1000, 2001, 5001, 9999, 10001, 15001 };

	world.now_ns += ms[next(s) % ARRAY_LEN(ms)] * NS_PER_MS;
}

/* Small buffers, so that the other side is soon full. */
static void do_shrink(struct script *s)
{
	unsigned i = next(s);
	int size = 4096;
	int fd = i & 16 ? world.servers[server_of(i) % WORLD_PEERS].fd
			: world.clients[client_of(i)].fd;

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

static void do_via(struct script *s)
{
	world.via = next(s) & 1;
}

static void do_datagram(struct script *s)
{
	char msg[64] = QUERY;

	msg[next(s) % sizeof msg] ^= (char)next(s);
	world_dns_datagram((struct str){ msg, sizeof QUERY - 1 });
}

static void do_owned(struct script *s)
{
	unsigned how = next(s);

	world.inode = how & 1 ? 7 : 0;
	world.g->ask = how & 2;
	flow_owned(world.g, how >> 2);
}

static void do_read(struct script *s)
{
	unsigned who = next(s);
	size_t most = sizes[next(s) % ARRAY_LEN(sizes)];

	if (who & 16)
		world_server_read(server_of(who), most);
	else
		world_client_read(client_of(who), most);
}

static void do_shut(struct script *s)
{
	unsigned who = next(s), how = next(s);
	int *fd = who & 16 ? &world.servers[server_of(who) % WORLD_PEERS].fd
			   : &world.clients[client_of(who)].fd;

	world_shut(fd, how % 3);
}

static void do_send(struct script *s)
{
	unsigned who = next(s);

	world_send(client_of(who), piece(s, said_inside, ARRAY_LEN(said_inside)));
}

static void do_server_send(struct script *s)
{
	unsigned who = next(s);

	world_server_send(server_of(who), piece(s, said_outside, ARRAY_LEN(said_outside)));
}

static void do_modes(struct script *s)
{
	unsigned how = next(s);

	world.dials = (enum world_play)(how % PLAYS);
	world.lookups = (enum world_play)((how >> 4) % PLAYS);
}

static void do_answer(struct script *s)
{
	unsigned ask = next(s), how = next(s);

	world_reply(ask, (enum world_reply)(how % REPLIES), (uint8_t)next(s));
}

static void do_policy(struct script *s)
{
	world_policy(next(s));
}

static void do_list(struct script *s)
{
	(void)flow_list(world.g, next(s));
}

static void do_die(struct script *s)
{
	enum { SELDOM = 32 };

	if (next(s) < SELDOM)
		world_dialer_die();
}

static void do_late(struct script *s);

/* What happens often stands here often. */
static void (*const steps[])(struct script *s) = {
	do_connect, do_send,	do_send,   do_wait,   do_server_send, do_read,	      do_send,
	do_wait,    do_connect, do_send,   do_read,   do_policy,      do_server_send, do_modes,
	do_shut,    do_wait,	do_answer, do_via,    do_owned,	      do_shrink,      do_datagram,
	do_late,    do_list,	do_late,   do_answer, do_die,
};

enum { NO_TURN = 128 }; /* a step that has this bit comes in the same turn as the next one */

static void do_step(struct script *s, unsigned step)
{
	steps[(step & (unsigned)~NO_TURN) % ARRAY_LEN(steps)](s);
}

/* What comes after the loop has asked for events, and before it looks at the clock. */
static struct {
	struct loop_timer timer;
	struct script script;
} late;

static void on_late(struct loop_timer *t)
{
	unsigned step = next(&late.script);

	(void)t;
	if (steps[(step & (unsigned)~NO_TURN) % ARRAY_LEN(steps)] != do_late)
		do_step(&late.script, step);
}

/* The next step happens late in the turn after the next one. */
static void do_late(struct script *s)
{
	enum { STEP_MOST = 5 };
	size_t n = (size_t)(s->end - s->p) < STEP_MOST ? (size_t)(s->end - s->p) : STEP_MOST;

	if (late.timer.at_ns)
		return;
	late.script = (struct script){ s->p, s->p + n };
	s->p += n;
	/* A moment ahead, so that it comes before whatever the next wait makes due. */
	loop_timer_set(&world.g->loop, &late.timer, 1, on_late);
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

	world_open();
	before = open_descriptors();
	world_begin();
	late.timer = (struct loop_timer){ 0 };
	last_client = last_server = 0;
	for (int i = 0; i < STEPS && s.p < s.end; i++) {
		unsigned step = next(&s);

		do_step(&s, step);
		if (!(step & NO_TURN))
			world_turn();
	}
	for (int i = 0; i < 4; i++)
		world_turn();
	world_end();
	FUZZ_CHECK(open_descriptors() == before);
	return 0;
}
