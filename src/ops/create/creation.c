/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/creation.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/limits.h"
#include "link/decode.h"
#include "ops/background.h"
#include "ops/create/options.h"
#include "ops/create/recipe.h"
#include "ops/create/warden_start.h"
#include "ops/host_net.h"
#include "ops/pool/claim.h"
#include "store/locks.h"
#include "store/pools.h"
#include "store/snapshots.h"
#include "store/storage.h"

enum { SLOT_TRIES = 8, SWEEP = 4, READY_TIMEOUT_MS = 30000, END_TIMEOUT_MS = 10000 };

/* Per state: the allowed next states, and what creation_destroy() must undo. */
static const struct {
	unsigned next;	/* bits */
	bool has_files; /* files to remove */
	bool is_asked;	/* the warden accepts orders and must be told to end */
} states[] = {
#define TO(s) (1u << CREATION_##s)
	[CREATION_PLANNED] = { TO(LOCKED) | TO(ASKED) | TO(UNDONE), false, false },
	[CREATION_LOCKED] = { TO(STARTED) | TO(UNDONE), true, false },
	[CREATION_STARTED] = { TO(ASKED) | TO(UNDONE), true, false },
	[CREATION_ASKED] = { TO(READY) | TO(LEFT) | TO(UNDONE), true, true },
	[CREATION_READY] = { TO(KEPT) | TO(LEFT) | TO(UNDONE), true, true },
	[CREATION_KEPT] = { TO(UNDONE), true, true },
	[CREATION_LEFT] = { 0, false, false },
	[CREATION_UNDONE] = { TO(LOCKED) | TO(ASKED) | TO(UNDONE), false, false },
#undef TO
};

bool creation_move(struct creation *n, enum creation_state to)
{
	if (!(states[n->at].next & 1u << to))
		return false;
	n->at = to;
	return true;
}

static int put_identity(struct buf *b, const struct creation *n, const char *hostname)
{
	char dir[LIMIT_PATH];
	const char *host = hostname ? hostname : n->row.name[0] ? n->row.name : n->row.id;
	int r = field_put_c(b, TAG_ID, n->row.id);

	(void)snprintf(dir, sizeof dir, "%s/sandboxes/%s", n->cay->state.dir, n->row.id);
	if (r == 0)
		r = field_put_c(b, TAG_PATH, dir);
	if (r == 0 && n->disk[0])
		r = field_put_c(b, TAG_DISK_PATH, n->disk);
	if (r == 0)
		r = field_put_c(b, TAG_HOSTNAME, host);
	if (r == 0)
		r = field_put_c(b, TAG_PROGRAM, n->cay->programs.cay);
	if (r == 0)
		r = field_put_c(b, TAG_TEXT, n->row.template_);
	if (r == 0 && n->row.name[0])
		r = field_put_c(b, TAG_NAME, n->row.name);
	if (r == 0 && n->ready_dir)
		r = field_put_c(b, TAG_READY_DIR, n->ready_dir);
	if (r == 0)
		r = field_put_u64(b, TAG_EPHEMERAL, n->row.ephemeral);
	if (r == 0 && n->row.uid_slot >= 0)
		r = field_put_u64(b, TAG_UID_BASE,
				  UID_SLOT_BASE + (uint64_t)n->row.uid_slot * UID_SLOT_SIZE);
	return r;
}

static int send_build(const struct creation *n, const char *hostname, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY + 4096);
	size_t at = 0;
	int r = frame_begin(&b, MSG_C_HELLO, 0, &at);

	if (r == 0)
		r = field_put_u64(&b, TAG_VERSION, PROTO_CLIENT_OLDEST);
	if (r == 0)
		r = frame_end(&b, at, 0);
	if (r == 0)
		r = frame_begin(&b, MSG_C_BUILD, 0, &at);
	if (r == 0)
		r = put_identity(&b, n, hostname);
	if (r == 0)
		r = buf_add_str(&b, buf_str(&n->recipe));
	if (r == 0 && host_net_put(&n->cay->config.net, buf_str(&n->recipe), &b, e) < 0)
		return -1;
	for (size_t i = 0; i < n->nlayers && r == 0; i++)
		r = field_put_c(&b, TAG_LAYER, n->layers[i]);
	if (r == 0)
		r = frame_end(&b, at, 0);
	if (r == 0)
		r = io_write_all(n->warden_fd, b.data, b.len);
	return r < 0 ? err_sys(e, -r, "tell the warden what to build") : 0;
}

int creation_await_frame(int fd, int timeout_ms, struct buf *in, struct frame *f, struct err *e)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t used = frame_parse(buf_str(in), f);
		ssize_t got;
		int r;

		if (used < 0)
			return err_set(e, ERR_FAILED, "the warden sent a malformed answer");
		if (used > 0)
			return 0;
		r = poll(&p, 1, timeout_ms);
		if (r == 0)
			return err_set(e, ERR_TIMEOUT, "the warden does not answer");
		if (buf_reserve(in, 4096) < 0)
			return err_sys(e, ENOMEM, "read an answer");
		got = read(fd, in->data + in->len, 4096);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return err_set(e, ERR_FAILED, "the warden ended without an answer");
		buf_grew(in, (size_t)got);
	}
}

void creation_take_warnings(struct creation *n, const struct frame *f)
{
	struct str body = f->body, text;

	while (warning_next(&body, &text))
		warnings_add(&n->warnings, "limit.not_enforced", text);
}

int creation_await(struct creation *n, struct err *e)
{
	auto_done(buf_done) struct buf in = BUF_INIT(64 * 1024);
	struct frame f;

	if (n->at >= CREATION_READY)
		return 0;
	if (creation_await_frame(n->warden_fd, READY_TIMEOUT_MS, &in, &f, e) < 0)
		return -1;
	if (f.type == MSG_C_ERROR)
		return frame_error(&f, e);
	if (f.type != MSG_C_READY)
		return err_set(e, ERR_FAILED, "the warden answered something else");
	n->start_us = frame_number(&f, TAG_START_US, 0);
	creation_take_warnings(n, &f);
	(void)creation_move(n, CREATION_READY);
	return 0;
}

/* A sandbox with a row is registered by the row; others are described in their lock file. */
static int take_lock(struct creation *n, struct err *e)
{
	auto_done(buf_done) struct buf record = BUF_INIT(LOCK_RECORD_MAX);

	if (n->row.ephemeral && lock_record_put(&record, &n->row) < 0)
		return err_sys(e, ENOMEM, "note sandbox '%s'", n->row.id);
	return state_lock_new(&n->cay->state, n->row.id, buf_str(&record), &n->lock_fd, e);
}

static int make_dir(struct creation *n, struct err *e)
{
	char name[64];

	if (state_id_new(n->row.id, e) < 0 || take_lock(n, e) < 0)
		return -1;
	(void)creation_move(n, CREATION_LOCKED);
	(void)snprintf(name, sizeof name, "sandboxes/%s", n->row.id);
	if (mkdirat(n->cay->state.fd, name, 0700) < 0) {
		int err = errno;

		(void)err_sys(e, err, "make '%s/%s'", n->cay->state.dir, name);
		return err == ENOSPC ? err_code(e, "state.full", n->cay->state.dir) : -1;
	}
	failpoint("create.dir");
	return storage_add(&n->cay->state, n->row.id, n->disk, sizeof n->disk, e);
}

/* Read it again each time: another process may have merged layers of it. */
static int read_stack(struct creation *n, struct err *e)
{
	free(n->layers);
	n->layers = NULL;
	n->nlayers = 0;
	if (!n->row.top[0])
		return 0;
	return catalog_stack(n->cay->catalog, n->row.top, &n->layers, &n->nlayers, e);
}

/* Everything that does not depend on the recipe: the warden starts while we write the recipe. */
static int start_warden(struct creation *n, struct err *e)
{
	if (cay_programs(n->cay, e) < 0)
		return -1;
	if (geteuid() == 0 &&
	    state_take_slot(&n->cay->state, UID_SLOTS, &n->row.uid_slot, &n->slot_fd, e) < 0)
		return -1;
	if (make_dir(n, e) < 0)
		return -1;
	if (warden_start(n, e) < 0)
		return -1;
	(void)creation_move(n, CREATION_STARTED);
	return 0;
}

/*
 * A sandbox that ends with its command needs a row only if others can refer to it: by its name, or
 * by the layers of its snapshot.
 */
static bool needs_row(const struct creation *n)
{
	return !n->row.ephemeral || n->row.name[0] || n->row.top[0];
}

static int add_row(struct creation *n, struct err *e)
{
	if (!needs_row(n))
		return 0;
	/* Set now: an ephemeral sandbox is never marked as running later. */
	n->row.running |= n->row.ephemeral;
	if (cay_catalog(n->cay, e) < 0)
		return -1;
	n->row.recipe = n->row.ephemeral ? STR_NONE : buf_str(&n->recipe);
	n->row.layers = (const char(*)[ID_SIZE])n->layers;
	n->row.nlayers = n->nlayers;
	if (catalog_add_sandbox(n->cay->catalog, &n->row, n->row.uid_slot >= 0, e) < 0)
		return -1;
	n->has_row = true;
	start_done(n->cay, &n->start);
	return 0;
}

/* Without a row: check the uid slot and pin the layers. */
static int hold(struct creation *n, struct err *e)
{
	if (n->row.uid_slot >= 0 && catalog_check_slot(n->cay->catalog, n->row.uid_slot, e) < 0)
		return -1;
	return catalog_hold_layers(n->cay->catalog, n->row.id, n->layers, n->nlayers, e);
}

static int make(struct creation *n, const char *hostname, struct err *e)
{
	int r = n->at == CREATION_STARTED ? 0 : start_warden(n, e);

	if (r == 0)
		r = read_stack(n, e);
	if (r == 0 && n->ready_dir)
		r = hold(n, e);
	if (r == 0)
		r = send_build(n, hostname, e);
	if (r == 0)
		(void)creation_move(n, CREATION_ASKED);
	return r < 0 || n->ready_dir ? r : add_row(n, e);
}

static void undo(struct creation *n)
{
	struct err ignored = { 0 };

	(void)creation_destroy(n, &ignored);
	fd_close(&n->slot_fd);
	n->row.uid_slot = -1;
}

static int keep(struct creation *n, struct err *e)
{
	char frame[FRAME_HEADER] = { [4] = MSG_C_KEEP };

	if (send(n->warden_fd, frame, sizeof frame, MSG_NOSIGNAL) != (ssize_t)sizeof frame)
		return err_sys(e, errno, "tell the warden to keep the sandbox");
	return 0;
}

/* The keeper created the lock file, without knowing the owner. */
static int note_claimed(struct creation *n, struct err *e)
{
	auto_done(buf_done) struct buf record = BUF_INIT(LOCK_RECORD_MAX);

	if (lock_record_put(&record, &n->row) < 0)
		return err_sys(e, ENOMEM, "note sandbox '%s'", n->row.id);
	return lock_record_write(&n->cay->state, n->row.id, buf_str(&record), &n->record_fd, e);
}

/*
 * The lock on a uid range separates running sandboxes. A range that a row reserves for the files of
 * a dead sandbox is no obstacle: no sandbox sees those files.
 */
static int add_claimed(struct creation *n, struct err *e)
{
	if (!needs_row(n))
		return note_claimed(n, e);
	if (add_row(n, e) == 0)
		return 0;
	if (e->sys != EADDRINUSE || catalog_add_sandbox(n->cay->catalog, &n->row, false, e) < 0)
		return -1;
	n->has_row = true;
	return 0;
}

/* If a ready sandbox exists, it lacks only its owner. */
static int take_ready(struct creation *n, const char *hostname, struct err *e)
{
	if (n->ready_dir || n->at != CREATION_PLANNED || !claim(n, 1, hostname))
		return 0;
	if (add_claimed(n, e) == 0)
		return 1;
	undo(n);
	return -1;
}

static int make_cold(struct creation *n, const char *hostname, struct err *e)
{
	for (int i = 0;; i++) {
		if (make(n, hostname, e) == 0)
			return 0;
		undo(n);
		/* A lost sandbox whose files still exist has this range: try another range. */
		if (e->sys != EADDRINUSE || i == SLOT_TRIES)
			return -1;
	}
}

static int make_it(struct creation *n, const char *hostname, struct err *e)
{
	int r = take_ready(n, hostname, e);

	return r == 0 ? make_cold(n, hostname, e) : r < 0 ? -1 : 0;
}

void creation_init(struct creation *n, struct cay *c)
{
	*n = (struct creation){ CREATION_INIT };
	n->cay = c;
	n->row.uid_slot = -1;
}

/* The sandbox is built on the frozen copy. Hold the copy until the row refers to it. */
static int freeze(struct creation *n, struct err *e)
{
	if (cay_catalog(n->cay, e) < 0 ||
	    start_freeze(n->cay, buf_str(&n->recipe), n->row.top, &n->start, e) < 0)
		return -1;
	if (n->start.id[0])
		(void)str_copy(n->row.top, sizeof n->row.top, str_of(n->start.id));
	return 0;
}

/* early: start the warden before the recipe is written, unless a ready sandbox may exist. */
static int plan(struct creation *n, const struct create_spec *spec, bool early, struct err *e)
{
	auto_done(create_plan_done) struct create_plan p = { 0 };

	n->row.ephemeral = spec->ephemeral;
	if (create_check(n->cay, spec, &p, e) < 0)
		return -1;
	(void)snprintf(n->row.template_, sizeof n->row.template_, "%s", p.template_);
	(void)snprintf(n->row.name, sizeof n->row.name, "%s", spec->name ? spec->name : "");
	(void)str_copy(n->row.owner, sizeof n->row.owner, str_of(spec->owner ? spec->owner : ""));
	n->row.request = spec->request;
	p.seen_ns = n->row.created_ns = clock_real_ns();
	n->row.spec = options_write(&p);
	if ((early && !spec->copy && !ready_exists(&n->cay->state) && start_warden(n, e) < 0) ||
	    recipe_write(n, &p, e) < 0) {
		undo(n);
		return -1;
	}
	if (spec->copy && freeze(n, e) < 0) {
		undo(n);
		return -1;
	}
	if (p.seen_ns != n->row.created_ns) { /* the sandbox sees what its snapshot saw */
		free(n->row.spec);
		n->row.spec = options_write(&p);
	}
	return 0;
}

int creation_plan(struct creation *n, const struct create_spec *spec, struct err *e)
{
	return plan(n, spec, false, e);
}

int creation_create(struct creation *n, const struct create_spec *spec, struct err *e)
{
	/* The pool may be one short now: refill it afterwards. */
	n->cay->after |= AFTER_POOL;
	return plan(n, spec, true, e) < 0 ? -1 : make_it(n, spec->hostname, e);
}

int creation_ready(struct creation *n, struct str recipe, const char *top, const char *ready_dir,
		   struct err *e)
{
	if (cay_catalog(n->cay, e) < 0)
		return -1;
	n->ready_dir = ready_dir;
	(void)str_copy(n->row.top, sizeof n->row.top, str_of(top));
	if (buf_add_str(&n->recipe, recipe) < 0)
		return err_sys(e, ENOMEM, "make a sandbox ready");
	if (make_it(n, NULL, e) < 0)
		return -1;
	if (creation_await(n, e) == 0 && keep(n, e) == 0 && creation_move(n, CREATION_LEFT))
		return 0;
	undo(n);
	return -1;
}

int creation_start(struct creation *n, struct err *e)
{
	if (start_warden(n, e) == 0)
		return 0;
	undo(n);
	return -1;
}

static int plan_fork(struct creation *n, const struct creation_source *from, const char *name,
		     struct err *e)
{
	if (catalog_recipe_row(n->cay->catalog, from->recipe_of, &n->recipe, &n->row, e) < 0)
		return -1;
	(void)str_copy(n->row.top, sizeof n->row.top, str_of(from->top));
	if (from->owner[0])
		(void)str_copy(n->row.owner, sizeof n->row.owner, str_of(from->owner));
	(void)snprintf(n->row.name, sizeof n->row.name, "%s", name);
	return 0;
}

/* Commit the claimed sandboxes together, with one durable write. */
static int add_together(struct creation *ns, size_t n, struct err *e)
{
	struct catalog *c = ns[0].cay->catalog;
	int r = 0;

	if (!claim(ns, n, NULL))
		return 0;
	if (catalog_batch_begin(c, e) < 0)
		return -1;
	for (size_t i = 0; i < n && r == 0; i++)
		r = ns[i].from == FROM_POOL ? add_claimed(&ns[i], e) : 0;
	return catalog_batch_end(c, r, e);
}

int creation_fork(struct creation *ns, size_t n, const struct creation_source *from,
		  char (*names)[64], struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = plan_fork(&ns[i], from, names[i], e);
	if (r == 0)
		r = add_together(ns, n, e);
	for (size_t i = 0; i < n && r < 0; i++)
		undo(&ns[i]);
	return r;
}

int creation_finish(struct creation *n, struct err *e)
{
	struct err ignored = { 0 };

	if (n->at < CREATION_ASKED && make_cold(n, NULL, e) < 0)
		return -1;
	if (creation_await(n, e) == 0 && creation_release(n, e) == 0)
		return 0;
	(void)creation_destroy(n, &ignored);
	return -1;
}

int creation_release(struct creation *n, struct err *e)
{
	if (!n->row.running && catalog_set_state(n->cay->catalog, n->row.id, "running", e) < 0)
		return -1;
	if (n->row.ephemeral)
		return 0;
	if (keep(n, e) < 0)
		return -1;
	(void)creation_move(n, CREATION_KEPT);
	return 0;
}

/* If all commands are short, no other process cleans up after a killed cay and warden. */
static void sweep_neighbours(const struct creation *n)
{
	char ids[SWEEP][ID_SIZE];
	int found = lock_records_dead(&n->cay->state, n->row.id, ids, SWEEP);

	for (int i = 0; i < found; i++) {
		const char *const words[] = { "reconcile", ids[i], NULL };

		background_start(n->cay, words);
	}
}

void creation_show(struct creation *n, bool shown)
{
	if (!needs_row(n))
		lock_record_show(n->from == FROM_POOL ? n->record_fd : n->lock_fd, shown);
}

bool creation_leave(struct creation *n)
{
	if (n->has_row)
		return false;
	creation_show(n, false); /* lists no longer show it */
	(void)creation_move(n, CREATION_LEFT);
	sweep_neighbours(n);
	return true;
}

int creation_link(const struct creation *n, const struct link_ops *ops, struct link **ret,
		  struct err *e)
{
	/* The protocol version that send_build() and the claim ask for. */
	struct link_given given = { .version = PROTO_CLIENT_OLDEST };

	given.fd = fcntl(n->warden_fd, F_DUPFD_CLOEXEC, 0);
	if (given.fd < 0)
		return err_sys(e, errno, "connect to sandbox '%s'", n->row.id);
	return link_adopt(&n->cay->loop, given, n->row.id, ops, NULL, ret, e);
}

/* The warden closes its end when it exits. */
static void await_end(int fd)
{
	char sink[4096];
	ssize_t n;

	do {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (poll(&p, 1, END_TIMEOUT_MS) == 0)
			return;
		n = read(fd, sink, sizeof sink);
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
}

static void end_warden(struct creation *n)
{
	char frame[FRAME_HEADER] = { [4] = MSG_C_DESTROY };

	if (n->warden_fd < 0)
		return;
	/* A warden that has not greeted yet takes no orders, but ends with our connection. */
	if (states[n->at].is_asked &&
	    send(n->warden_fd, frame, sizeof frame, MSG_NOSIGNAL) == (ssize_t)sizeof frame)
		await_end(n->warden_fd);
	fd_close(&n->warden_fd);
	while (n->warden_pid > 0 && waitpid(n->warden_pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int creation_destroy(struct creation *n, struct err *e)
{
	struct err second; /* discarded: the first failure is reported */
	int r;

	if (!states[n->at].has_files)
		return 0;
	end_warden(n);
	(void)creation_move(n, CREATION_UNDONE);
	if (n->from == FROM_POOL && claim_lock(n, e) < 0)
		return -1;
	/*
	 * Delete the row last: it reserves the uid slot of the files, and on a full disk the commit
	 * needs the space that the files take.
	 */
	r = state_remove(&n->cay->state, n->row.id, TAKE_FD(n->lock_fd), e);
	if (n->has_row && catalog_del_sandbox(n->cay->catalog, n->row.id, r < 0 ? &second : e) < 0)
		r = -1;
	return r;
}

void creation_done(struct creation *n)
{
	fd_close(&n->warden_fd);
	fd_close(&n->lock_fd);
	fd_close(&n->slot_fd);
	fd_close(&n->record_fd);
	buf_done(&n->recipe);
	free(n->layers);
	sandbox_row_done(&n->row);
	start_done(n->cay, &n->start);
}
