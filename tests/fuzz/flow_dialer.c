/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialer of a gateway, played: it reads the front's asks as the real one does and answers them
 * at once, late, in any order, wrongly or twice. What the real one would end the gateway for is a
 * finding: a packet that is no ask, or a second ask in a slot.
 */
#include <errno.h>
#include <sys/socket.h>

#include "flow_world.h"
#include "fuzz.h"
#include "sys/process/fdpass.h"

void world_dialer_begin(void)
{
	int pair[2];

	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) ==
		   0);
	world.dialer = pair[0];
	world.nasks = 0;
	FUZZ_CHECK(ask_begin(world.g, pair[1]) == 0);
}

/* --- answers --- */

static struct ip dialled(const struct dial_ask *a, uint8_t detail)
{
	static const struct ip resolved[] = {
		{ 4, { 45, 90, 0, 10 } },
		{ 4, { 10, 1, 2, 3 } },
		{ 4, { 45, 90, 0, 11 } },
		{ 4, { 127, 0, 0, 1 } },
	};

	if (world.via)
		return (struct ip){ 0 };
	return a->addr.len ? a->addr : resolved[detail % ARRAY_LEN(resolved)];
}

static void send_answer(const struct dial_answer *a, bool socket)
{
	uint8_t packet[DIAL_ANSWER_SIZE];
	auto_close int fd = socket ? world_serve() : FD_NONE;

	dial_answer_write(a, packet);
	/* Where the front reads too little it is lost, as if the dialer were slow for ever. */
	(void)fdpass_try(world.dialer, packet, sizeof packet, &fd, socket);
}

static void reply(const struct dial_ask *ask, enum world_reply how, uint8_t detail)
{
	struct dial_answer a = { .slot = ask->slot, .serial = ask->serial, .detail = detail };
	bool dial = ask->kind == DIAL_ASK_DIAL;

	if (dial) {
		a.addr = dialled(ask, detail);
		a.local = detail & 4;
	}
	switch (how) {
	case REPLY_FAILED:
		a.outcome = DIAL_FAILED;
		a.err = detail & 1 ? ETIMEDOUT : detail & 2 ? ENOENT : ECONNREFUSED;
		break;
	case REPLY_DENIED:
		a.outcome = DIAL_DENIED;
		break;
	case REPLY_LIMITED:
		a.outcome = DIAL_LIMITED;
		break;
	case REPLY_STALE:
		a.serial += detail & 128 ? 1 : (uint32_t)-1 - (detail & 1);
		a.outcome = DIAL_DONE;
		break;
	case REPLY_DONE:
	case REPLY_NO_SOCKET:
	case REPLY_TWICE:
	case REPLIES:
		a.outcome = DIAL_DONE;
		break;
	}
	send_answer(&a, dial && a.outcome == DIAL_DONE && how != REPLY_NO_SOCKET);
	if (how == REPLY_TWICE)
		send_answer(&a, dial);
}

static void drop(unsigned i)
{
	memmove(world.asks + i, world.asks + i + 1, (--world.nasks - i) * sizeof *world.asks);
}

void world_reply(unsigned ask, enum world_reply how, uint8_t detail)
{
	struct dial_ask a;

	if (world.dialer < 0 || world.nasks == 0)
		return;
	ask %= world.nasks;
	a = world.asks[ask];
	if (how != REPLY_STALE)
		drop(ask);
	reply(&a, how, detail);
}

/* --- asks --- */

static unsigned find(uint32_t slot)
{
	unsigned i = 0;

	while (i < world.nasks && world.asks[i].slot != slot)
		i++;
	return i;
}

/* True where it was answered at once. */
static bool take(const struct dial_ask *a)
{
	unsigned held = find(a->slot);
	enum world_play play = a->kind == DIAL_ASK_DIAL ? world.dials : world.lookups;

	if (a->kind == DIAL_ASK_CANCEL) {
		if (held < world.nasks && world.asks[held].serial == a->serial)
			drop(held);
		return false;
	}
	FUZZ_CHECK(held == world.nasks && world.nasks < WORLD_ASKS);
	FUZZ_CHECK((a->kind == DIAL_ASK_DIAL) == (a->slot < LIMIT_NET_FLOWS));
	if (play == PLAY_HOLD) {
		world.asks[world.nasks++] = *a;
		return false;
	}
	reply(a, play == PLAY_OPEN ? REPLY_DONE : REPLY_FAILED, 0);
	return true;
}

bool world_dialer_play(void)
{
	char packet[DIAL_ASK_SIZE + 1];
	struct dial_ask a;
	bool any = false;
	ssize_t n;

	if (world.dialer < 0 || world.dials == PLAY_DEAF)
		return false;
	while ((n = recv(world.dialer, packet, sizeof packet, MSG_DONTWAIT)) > 0) {
		FUZZ_CHECK(dial_ask_read((struct str){ packet, (size_t)n }, &a) == 0);
		any |= take(&a);
	}
	return any;
}

/* --- the end --- */

void world_dialer_finish(void)
{
	struct gateway *g = world.g;

	world.dials = world.lookups = PLAY_FAIL;
	world_turn();
	while (world.nasks)
		world_reply(0, REPLY_FAILED, 0);
	world_turn();
	for (int i = 0; world.dialer < 0 && i < LIMIT_NET_QUERIES; i++)
		if (g->queries[i]) /* nobody answers them: the gateway would end now */
			dns_cancel(g->queries[i]);
}

void world_dialer_die(void)
{
	fd_close(&world.dialer);
	world.nasks = 0;
}
