/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link whose warden sends anything in any order, and whose owner does anything in between: each
 * question, call and dial is told its end at most once, and where the connection ends exactly once
 * unless it was dropped; nothing is told after that.
 *
 * The input is a list of steps: what (1 byte), which (1 byte), length (1 byte), that many bytes.
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "link/wait.h"

enum { CALLS = 4, ASKS = 3, DIALS = 2, STEPS = 200 };

enum life { UNUSED, OPEN, OVER, DROPPED };

static struct loop loop;
static struct waiter waiter;
static struct link *the_link;
static int peer;
static bool closed, frees;

static struct one_call {
	struct link_call call;
	enum life life;
	uint64_t came;
} calls[CALLS];
static struct one_ask {
	struct link_ask ask;
	enum life life;
} asks[ASKS];
static struct one_dial {
	struct link_dial dial;
	enum life life;
} dials[DIALS];

static void is_whole(const struct err *why)
{
	FUZZ_CHECK(why->kind > ERR_NONE && why->kind < ERR_KIND_COUNT);
	FUZZ_CHECK(memchr(why->msg, '\0', sizeof why->msg) &&
		   memchr(why->code, '\0', sizeof why->code));
}

static void maybe_free(void)
{
	if (!frees)
		return;
	link_free(the_link);
	the_link = NULL;
}

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct one_call *one = container_of(c, struct one_call, call);

	FUZZ_CHECK(one->life == OPEN);
	one->came += data.n;
	if (data.n % 3 == 0)
		link_call_taken(c, stream, data.n);
	if (data.n % 7 == 1) {
		one->life = DROPPED;
		link_call_drop(c);
	}
}

static void on_started(struct link_call *c, const struct call_started *s)
{
	(void)s;
	FUZZ_CHECK(container_of(c, struct one_call, call)->life == OPEN);
}

static void on_room(struct link_call *c, size_t bytes)
{
	FUZZ_CHECK(bytes <= LIMIT_STDIN_WINDOW);
	FUZZ_CHECK(container_of(c, struct one_call, call)->life == OPEN);
}

static void on_ended(struct link_call *c, const struct call_result *r, const struct err *why)
{
	struct one_call *one = container_of(c, struct one_call, call);

	FUZZ_CHECK(one->life == OPEN && (r == NULL) == (why != NULL));
	one->life = OVER;
	if (why)
		is_whole(why);
	else
		FUZZ_CHECK(r->code >= 0 && r->code <= 255 && strlen(r->reason) < sizeof r->reason);
	maybe_free();
}

static int on_answer(struct link_ask *a, const struct frame *f)
{
	struct one_ask *one = container_of(a, struct one_ask, ask);
	struct link_call_row row;
	struct link_process p;
	struct sandbox_status st;

	FUZZ_CHECK(one->life == OPEN);
	decode_call_row(f, &row);
	decode_process(f, &p);
	decode_status(f, &st);
	FUZZ_CHECK(strlen(row.args) < sizeof row.args && strlen(p.args) < sizeof p.args);
	if (f->body.n == 9) {
		one->life = DROPPED;
		link_ask_drop(a);
	}
	return (int)(f->body.n % 3) - 1;
}

static void on_asked(struct link_ask *a, const struct err *why)
{
	struct one_ask *one = container_of(a, struct one_ask, ask);

	FUZZ_CHECK(one->life == OPEN);
	one->life = OVER;
	if (why)
		is_whole(why);
	maybe_free();
}

static void on_dialed(struct link_dial *d, int fd, const struct err *why)
{
	struct one_dial *one = container_of(d, struct one_dial, dial);

	FUZZ_CHECK(one->life == OPEN && (fd < 0) == (why != NULL));
	one->life = OVER;
	if (fd >= 0)
		(void)close(fd);
}

static void on_closed(struct link *l, const struct err *why)
{
	FUZZ_CHECK(l == the_link && !closed);
	is_whole(why);
	closed = true;
	for (int i = 0; i < CALLS; i++)
		FUZZ_CHECK(calls[i].life != OPEN);
	for (int i = 0; i < ASKS; i++)
		FUZZ_CHECK(asks[i].life != OPEN);
	for (int i = 0; i < DIALS; i++)
		FUZZ_CHECK(dials[i].life != OPEN);
}

static const struct link_call_ops call_ops = {
	.started = on_started, .output = on_output, .room = on_room, .ended = on_ended
};

static void open_call(struct one_call *one, uint8_t how)
{
	const char *argv[] = { "true", NULL };
	struct call_spec spec = { .argv = argv, .detached = how & 1, .window = how & 2 ? 16 : 0 };

	if (one->life == OPEN)
		return;
	if (link_call(the_link, &one->call, &spec, &call_ops) == 0)
		*one = (struct one_call){ .call = one->call, .life = OPEN };
}

static void open_ask(struct one_ask *one)
{
	if (one->life == OPEN)
		return;
	one->ask.answer = on_answer;
	one->ask.done = on_asked;
	if (link_ask(the_link, &one->ask, MSG_C_INFO, STR_NONE, 0) == 0)
		one->life = OPEN;
}

static void open_dial(struct one_dial *one)
{
	if (one->life == OPEN)
		return;
	one->dial.done = on_dialed;
	if (link_dial(the_link, &one->dial, 80, 0) == 0)
		one->life = OPEN;
}

/* What the owner does. */
static void act(uint8_t what, uint8_t which, struct str data)
{
	struct one_call *c = &calls[which % CALLS];

	switch (what % 10) {
	case 0:
		open_call(c, which);
		break;
	case 1:
		open_ask(&asks[which % ASKS]);
		break;
	case 2:
		open_dial(&dials[which % DIALS]);
		break;
	case 3:
		if (c->life == OPEN)
			FUZZ_CHECK(link_call_write(&c->call, data) <= data.n);
		break;
	case 4:
		if (c->life == OPEN)
			link_call_taken(&c->call, CALL_STDOUT, which);
		break;
	case 5:
		if (c->life == OPEN) {
			c->life = DROPPED;
			link_call_drop(&c->call);
		}
		break;
	case 6:
		frees = true;
		break;
	case 7:
		if (c->life == OPEN)
			link_call_eof(&c->call);
		break;
	default:
		link_keep_alive(the_link);
	}
}

/* What the warden sends; numbers of channels are small. */
static void answer(uint8_t type, uint8_t which, struct str data)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);

	FUZZ_CHECK(frame_put(&b, type, which % 16, data) == 0);
	if (send(peer, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
}

static void step(uint8_t what, uint8_t which, struct str data)
{
	static char sink[65536];

	if (what < 64)
		act(what, which, data);
	else if (what < 250)
		answer(what, which, data);
	else if (send(peer, data.p, data.n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	while (recv(peer, sink, sizeof sink, MSG_DONTWAIT) > 0)
		;
	FUZZ_CHECK(wait_pause(&waiter, 0) == 0);
}

static void run(struct str in)
{
	for (int i = 0; i < STEPS && in.n >= 3 && the_link; i++) {
		size_t n = (uint8_t)in.p[2];
		struct str data = { in.p + 3, n < in.n - 3 ? n : in.n - 3 };

		step((uint8_t)in.p[0], (uint8_t)in.p[1], data);
		in = (struct str){ data.p + data.n, in.n - 3 - data.n };
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct link_ops ops = { .closed = on_closed };
	struct link_given given = { .version = size && data[0] & 1 ? 3 : 0 };
	char *copy = exact_copy(data, size);
	struct err e = { 0 };
	int pair[2];

	memset(calls, 0, sizeof calls);
	memset(asks, 0, sizeof asks);
	memset(dials, 0, sizeof dials);
	closed = frees = false;
	FUZZ_CHECK(loop_init(&loop) == 0);
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	waiter = (struct waiter){ .loop = &loop, .cancel_fd = FD_NONE };
	peer = pair[1];
	given.fd = pair[0];
	FUZZ_CHECK(link_adopt(&loop, given, "x", &ops, NULL, &the_link, &e) == 0);
	run((struct str){ copy, size });
	fd_close(&peer);
	FUZZ_CHECK(wait_pause(&waiter, 0) == 0);
	FUZZ_CHECK(wait_pause(&waiter, 0) == 0);
	/* One that is held for a reader of version 2 hears of the end when it goes on. */
	link_free(the_link);
	the_link = NULL;
	loop_done(&loop);
	free(copy);
	return 0;
}
