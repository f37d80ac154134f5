/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detect the protocol by the client's first bytes. The bytes stay in the kernel (MSG_PEEK) until
 * the policy has decided. If the decision needs more bytes than the client sends, the front passes
 * on only the bytes that it has checked. f->first keeps them, at most SNIFF_LINE, so that the next
 * check sees the whole beginning.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/flow.h"
#include "wire/sniff.h"

enum { SCRATCH = 64 * 1024 }; /* more than any head or hello that is accepted */

_Static_assert((int)SNIFF_LINE < (int)SCRATCH, "what was let go leaves room for what is there");

static char scratch[SCRATCH];

static int peek_behind(struct side *s, size_t before, struct str *ret)
{
	ssize_t n;

	if (before >= sizeof scratch)
		return -ENOBUFS;
	do {
		n = recv(s->fd, scratch + before, sizeof scratch - before, MSG_PEEK | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		s->eof = s->hup = true;
	*ret = (struct str){ scratch, before + (size_t)n };
	return 0;
}

int flow_peek(struct side *s, struct str *ret)
{
	return peek_behind(s, 0, ret);
}

void flow_discard(struct side *s, size_t n)
{
	while (n > 0) {
		ssize_t k = recv(s->fd, NULL, n, MSG_TRUNC | MSG_DONTWAIT);

		if (k <= 0)
			return;
		n -= (size_t)k;
	}
}

void flow_await_more(struct side *s, size_t than)
{
	int low = (int)than + 1;

	if (s->seen == than)
		return;
	s->seen = than;
	(void)setsockopt(s->fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low);
}

/* The client's first bytes: those passed on before (f->first), then those in the socket. */
static int peek_first(struct flow *f, struct str *ret)
{
	if (f->nfirst > SNIFF_LINE)
		return -ENOBUFS;
	if (f->nfirst)
		memcpy(scratch, f->first, f->nfirst);
	return peek_behind(&f->side[UP], f->nfirst, ret);
}

static enum look await_first(struct flow *f, struct str in, bool likely)
{
	f->likely = likely;
	flow_await_more(&f->side[UP], in.n - f->nfirst);
	return LOOK_MORE;
}

/* Append the first n bytes of the socket to f->first. -1: f is gone. */
static int remember_first(struct flow *f, struct str in, size_t n)
{
	if (n > in.n || f->nfirst > SNIFF_LINE || n > SNIFF_LINE - f->nfirst) {
		flow_end(f, "the first line is too long", true);
		return -1;
	}
	if (!f->first)
		f->first = malloc(SNIFF_LINE);
	if (!f->first) {
		flow_end(f, "out of memory", true);
		return -1;
	}
	memcpy(f->first + f->nfirst, in.p, n);
	return 0;
}

int flow_let_go(struct flow *f)
{
	struct side *s = &f->side[UP];
	size_t judged =
		s->seen; /* only these were checked; bytes that came since may complete a request */
	uint64_t left = judged;
	struct str in;
	int r = flow_flush(f, UP);

	if (r <= 0)
		return r; /* the server has not read the previous bytes yet */
	if (judged == 0 || flow_peek(s, &in) < 0 || in.n == 0)
		return 0; /* the next read finds out why */
	if (remember_first(f, in, judged) < 0)
		return -1;
	flow_await_more(s, 0);
	s->ready = true;
	if (flow_pump(f, UP, &left) < 0)
		return -1;
	f->nfirst += judged - (size_t)left + (f->way[UP].pipe ? f->way[UP].held : 0);
	return 0;
}

static void spoke(struct flow *f, enum policy_proto proto)
{
	f->proto = proto;
	f->looked = true;
	f->silent = false;
	flow_await_more(&f->side[UP], 0);
}

static enum look look_tls(struct flow *f, struct str in)
{
	int64_t n;

	if (!f->hello)
		f->hello = calloc(1, sizeof *f->hello);
	if (!f->hello) {
		flow_end(f, "memory", true);
		return LOOK_BAD;
	}
	n = tls_hello_parse(in, f->hello);
	if (n == 0 && !f->side[UP].hup && in.n < SCRATCH)
		return await_first(f, in, true);
	spoke(f, PROTO_TLS);
	if (n <= 0) /* unreadable: it gives no name to trust */
		*f->hello = (struct tls_hello){ .why = "it cannot be read" };
	return LOOK_DONE;
}

static enum look look_http(struct flow *f, struct str in)
{
	static struct http_head head; /* static because it is large; not used after this function */
	int64_t n;

	if (f->nfirst) { /* the server already has its beginning: too late to check the request */
		spoke(f, PROTO_HTTP);
		flow_refuse_http(f, 400,
				 "the first line has pauses, or is too long to be judged; "
				 "a rule with protocol: tcp lets anything pass");
		return LOOK_BAD;
	}
	n = http_request_parse(in, &head);
	if (n == 0 && !f->side[UP].hup)
		return await_first(f, in, true);
	if (!f->http)
		f->http = calloc(1, sizeof *f->http);
	spoke(f, PROTO_HTTP);
	if (n <= 0 || !f->http) {
		flow_refuse_http(f, n < 0 ? http_error_status(n) : 400,
				 n < 0 ? head.why : "the head is incomplete");
		return LOOK_BAD;
	}
	return LOOK_DONE;
}

/* A greeting is complete. Before the dial it decides; after it, the next bytes must agree with it.
 */
static enum look look_greeting(struct flow *f, struct str in)
{
	if (f->state != FLOW_LOOK) {
		(void)await_first(f, in, false);
		return LOOK_PART;
	}
	spoke(f, PROTO_SSH);
	f->silent = true;
	return LOOK_DONE;
}

enum look flow_look(struct flow *f)
{
	struct side *s = &f->side[UP];
	struct str in = STR_NONE;
	int r = peek_first(f, &in);

	if (r == -EAGAIN)
		return LOOK_MORE;
	if (r < 0) {
		flow_end(f, "reset by the client", true);
		return LOOK_BAD;
	}
	if (in.n == 0 && s->eof && f->state == FLOW_LOOK) {
		flow_end(f, "closed without data", false);
		return LOOK_BAD;
	}
	switch (sniff(in, s->hup)) {
	case SNIFF_MORE:
		return await_first(f, in, false);
	case SNIFF_LIKELY:
		return await_first(f, in, true);
	case SNIFF_GREETING:
		return look_greeting(f, in);
	case SNIFF_TLS:
		return look_tls(f, in);
	case SNIFF_HTTP:
		return look_http(f, in);
	case SNIFF_SSH:
		spoke(f, PROTO_SSH);
		return LOOK_DONE;
	case SNIFF_OTHER:
		break;
	}
	spoke(f, PROTO_TCP);
	return LOOK_DONE;
}
