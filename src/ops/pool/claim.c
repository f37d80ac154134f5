/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/random.h"
#include "link/decode.h"
#include "ops/host_net.h"
#include "ops/pool/demand.h"
#include "ops/pool/ready_key.h"

enum { ANSWER_MS = 1000, END_MS = 5000, RETRY_MS = 5 };

static int put_claim(struct buf *b, const struct creation *n, const char *key, const char *hostname)
{
	const char *host = hostname ? hostname : n->row.name[0] ? n->row.name : NULL;
	struct err ignored = { 0 };
	size_t at = 0;
	int r = frame_begin(b, MSG_C_HELLO, 0, &at);

	if (r == 0)
		r = field_put_u64(b, TAG_VERSION, PROTO_CLIENT_OLDEST);
	if (r == 0)
		r = frame_end(b, at, 0);
	if (r == 0)
		r = frame_begin(b, MSG_C_CLAIM, 0, &at);
	if (r == 0)
		r = field_put_c(b, TAG_READY_DIR, key);
	if (r == 0)
		r = field_put_u64(b, TAG_EPHEMERAL, n->row.ephemeral);
	if (r == 0)
		r = field_put_c(b, TAG_TEXT, n->row.template_);
	if (r == 0 && n->row.name[0])
		r = field_put_c(b, TAG_NAME, n->row.name);
	if (r == 0 && host)
		r = field_put_c(b, TAG_HOSTNAME, host);
	if (r == 0)
		r = ready_split(buf_str(&n->recipe), true, b);
	if (r == 0 && host_net_put(&n->cay->config.net, buf_str(&n->recipe), b, &ignored) < 0)
		return -EINVAL; /* creating it reports the error */
	return r < 0 ? r : frame_end(b, at, 0);
}

/* Values that the ready sandbox was built with and that we cannot know. */
static int take_built(struct creation *n, const struct frame *f)
{
	uint64_t base = frame_number(f, TAG_UID_BASE, 0);
	struct str body = f->body;
	struct field field;
	size_t count = 0;

	for (struct str rest = body; field_next(&rest, &field) > 0;)
		count += field.tag == TAG_LAYER;
	free(n->layers);
	n->layers = calloc(count + 1, sizeof *n->layers);
	n->nlayers = 0;
	if (!n->layers)
		return -ENOMEM;
	while (field_next(&body, &field) > 0)
		if (field.tag == TAG_LAYER)
			(void)str_copy(n->layers[n->nlayers++], ID_SIZE, field.value);
	if (base >= UID_SLOT_BASE)
		n->row.uid_slot = (int)((base - UID_SLOT_BASE) / UID_SLOT_SIZE);
	return 0;
}

/* A claim sent to one ready sandbox. */
struct attempt {
	int fd;
	char id[ID_SIZE];
};

/* The listed sandboxes, starting at a random one, because other processes may claim too. */
struct ready {
	char key[READY_KEY];
	int key_fd;
	char (*ids)[ID_SIZE];
	size_t n, asked, start;
};

static void ready_done(struct ready *r)
{
	fd_close(&r->key_fd);
	free(r->ids);
}
DEFINE_AUTO(struct ready, ready_done)

static int find(const struct creation *n, struct ready *r)
{
	struct err ignored = { 0 };
	uint32_t dice = 0;

	if (!ready_exists(&n->cay->state) || cay_programs(n->cay, &ignored) < 0 ||
	    ready_key(&n->cay->state, n->cay->programs.warden, &n->cay->config, buf_str(&n->recipe),
		      n->row.top, r->key) <= 0)
		return -1;
	r->key_fd = ready_open_key(&n->cay->state, r->key);
	if (r->key_fd < 0 || ready_list(r->key_fd, &r->ids, &r->n) < 0 || !r->ids)
		return -1;
	if (random_bytes(&dice, sizeof dice) < 0)
		dice = (uint32_t)getpid();
	r->start = dice;
	return 0;
}

/* Removes a dead sandbox from the list. A living one stays listed by its warden. */
static void forget_dead(const struct creation *n, const struct ready *r, const char *id)
{
	if (!state_is_alive(&n->cay->state, id))
		(void)unlinkat(r->key_fd, id, 0);
}

/* Send the claim to the next sandbox that accepts it. False: there are no more. */
static bool ask(const struct creation *n, struct ready *r, const char *hostname, struct attempt *a)
{
	auto_done(buf_done) struct buf request = BUF_INIT(LIMIT_FRAME_BODY);
	struct err ignored = { 0 };

	if (put_claim(&request, n, r->key, hostname) < 0)
		return false;
	while (r->asked < r->n) {
		const char *id = r->ids[(r->start + r->asked++) % r->n];

		if (link_socket(&n->cay->state, id, &a->fd, &ignored) == 0 &&
		    io_write_all(a->fd, request.data, request.len) == 0) {
			(void)str_copy(a->id, sizeof a->id, str_of(id));
			return true;
		}
		fd_close(&a->fd);
		forget_dead(n, r, id);
	}
	return false;
}

/* Any reply except a plain yes means that the sandbox is not ours. */
static bool take(struct creation *n, struct attempt *a)
{
	auto_done(buf_done) struct buf in = BUF_INIT(64 * 1024);
	struct err ignored = { 0 };
	struct frame f;

	if (creation_await_frame(a->fd, ANSWER_MS, &in, &f, &ignored) < 0 ||
	    f.type != MSG_C_READY || take_built(n, &f) < 0)
		return false;
	n->start_us = frame_number(&f, TAG_START_US, 0);
	creation_take_warnings(n, &f);
	(void)str_copy(n->row.id, sizeof n->row.id, str_of(a->id));
	n->row.created_ns = clock_real_ns();
	n->warden_fd = TAKE_FD(a->fd);
	n->row.held = n->row.running = true;
	n->from = FROM_POOL;
	(void)creation_move(n, CREATION_ASKED);
	(void)creation_move(n, CREATION_READY);
	return true;
}

/* Ask all at once, so that their wardens work in parallel. False: no sandbox is left to ask. */
static bool ask_round(struct creation *ns, size_t n, const char *hostname, struct ready *r,
		      struct attempt *tries)
{
	size_t sent = 0;

	for (size_t i = 0; i < n; i++)
		if (ns[i].at == CREATION_PLANNED && ask(&ns[i], r, hostname, &tries[i]))
			sent++;
	for (size_t i = 0; i < n; i++) {
		if (tries[i].fd < 0)
			continue;
		if (!take(&ns[i], &tries[i]))
			forget_dead(&ns[i], r, tries[i].id);
		fd_close(&tries[i].fd);
	}
	return sent > 0;
}

static size_t ask_all(struct creation *ns, size_t n, const char *hostname, struct ready *r)
{
	auto_free struct attempt *tries = calloc(n, sizeof *tries);
	size_t claimed = 0;

	if (!tries)
		return 0;
	for (size_t i = 0; i < n; i++)
		tries[i].fd = FD_NONE;
	while (claimed < n && ask_round(ns, n, hostname, r, tries)) {
		claimed = 0;
		for (size_t i = 0; i < n; i++)
			claimed += ns[i].from == FROM_POOL;
	}
	return claimed;
}

size_t claim(struct creation *ns, size_t n, const char *hostname)
{
	auto_done(ready_done) struct ready r = { .key_fd = FD_NONE };
	size_t claimed = find(&ns[0], &r) < 0 || r.n == 0 ? 0 : ask_all(ns, n, hostname, &r);

	if (claimed < n && r.key[0] && ns[0].cay->config.notes_demand)
		demand_miss(ns[0].cay, r.key, ns[0].row.template_, ns[0].row.top,
			    buf_str(&ns[0].recipe), n - claimed);
	return claimed;
}

int claim_lock(struct creation *n, struct err *e)
{
	uint64_t end = clock_mono_ns() + END_MS * NS_PER_MS;

	while (state_lock(&n->cay->state, n->row.id, &n->lock_fd, e) < 0) {
		if (e->kind != ERR_CONFLICT || clock_mono_ns() > end)
			return -1;
		if (wait_pause(&n->cay->wait, RETRY_MS * NS_PER_MS) < 0)
			return -1;
	}
	return 0;
}
