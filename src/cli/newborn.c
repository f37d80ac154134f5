/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/newborn.h"

#include <errno.h>
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
#include "base/random.h"
#include "cli/claim.h"
#include "cli/client.h"
#include "cli/keeper.h"
#include "cli/net_options.h"
#include "cli/recipe.h"
#include "cli/warden_start.h"
#include "store/pool.h"
#include "store/pools.h"
#include "store/snapshots.h"

enum { SLOT_TRIES = 8, SWEEP = 4, READY_TIMEOUT_MS = 30000, END_TIMEOUT_MS = 10000 };

static int put_identity(struct buf *b, const struct newborn *n, const char *hostname)
{
	char dir[LIMIT_PATH];
	const char *host = hostname ? hostname : n->row.name[0] ? n->row.name : n->row.id;
	int r = field_put_c(b, TAG_ID, n->row.id);

	(void)snprintf(dir, sizeof dir, "%s/sandboxes/%s", n->state.dir, n->row.id);
	if (r == 0)
		r = field_put_c(b, TAG_PATH, dir);
	if (r == 0 && n->disk[0])
		r = field_put_c(b, TAG_DISK_PATH, n->disk);
	if (r == 0)
		r = field_put_c(b, TAG_HOSTNAME, host);
	if (r == 0)
		r = field_put_c(b, TAG_PROGRAM, n->program);
	if (r == 0)
		r = field_put_c(b, TAG_TEXT, n->row.template_);
	if (r == 0 && n->row.name[0])
		r = field_put_c(b, TAG_NAME, n->row.name);
	if (r == 0 && n->warm)
		r = field_put_c(b, TAG_WARM, n->warm);
	if (r == 0)
		r = field_put_u64(b, TAG_EPHEMERAL, n->row.ephemeral);
	if (r == 0 && n->row.uid_slot >= 0)
		r = field_put_u64(b, TAG_UID_BASE,
				  UID_SLOT_BASE + (uint64_t)n->row.uid_slot * UID_SLOT_SIZE);
	return r;
}

static int send_build(const struct newborn *n, const char *hostname, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_FRAME_BODY + 4096);
	size_t at = 0;
	int r = frame_begin(&b, MSG_C_HELLO, 0, &at);

	if (r == 0)
		r = field_put_u64(&b, TAG_VERSION, PROTO_CLIENT_VERSION);
	if (r == 0)
		r = frame_end(&b, at, 0);
	if (r == 0)
		r = frame_begin(&b, MSG_C_BUILD, 0, &at);
	if (r == 0)
		r = put_identity(&b, n, hostname);
	if (r == 0)
		r = buf_add_str(&b, buf_str(&n->recipe));
	if (r == 0 && net_opts_put_host(buf_str(&n->recipe), &b, e) < 0)
		return -1;
	for (size_t i = 0; i < n->nlayers && r == 0; i++)
		r = field_put_c(&b, TAG_LAYER, n->layers[i]);
	if (r == 0)
		r = frame_end(&b, at, 0);
	if (r == 0)
		r = io_write_all(n->warden_fd, b.data, b.len);
	return r < 0 ? err_sys(e, -r, "tell the warden what to build") : 0;
}

int newborn_await_frame(int fd, int timeout_ms, struct buf *in, struct frame *f, struct err *e)
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

int newborn_await(struct newborn *n, struct err *e)
{
	auto_done(buf_done) struct buf in = BUF_INIT(64 * 1024);
	struct frame f;

	if (n->claimed)
		return 0;
	if (newborn_await_frame(n->warden_fd, READY_TIMEOUT_MS, &in, &f, e) < 0)
		return -1;
	if (f.type == MSG_C_ERROR)
		return client_take_error(&f, e);
	if (f.type != MSG_C_READY)
		return err_set(e, ERR_FAILED, "the warden answered something else");
	n->start_us = client_number(&f, TAG_START_US, 0);
	client_print_warnings(&f);
	return 0;
}

static int make_dir(struct newborn *n, struct err *e)
{
	char name[64];

	if (state_id_new(n->row.id, e) < 0 || state_lock(&n->state, n->row.id, &n->lock_fd, e) < 0)
		return -1;
	n->made = true;
	(void)snprintf(name, sizeof name, "sandboxes/%s", n->row.id);
	if (mkdirat(n->state.fd, name, 0700) < 0) {
		int err = errno;

		(void)err_sys(e, err, "make '%s/%s'", n->state.dir, name);
		return err == ENOSPC ? err_hint(e, "the file system of the state directory is full")
				     : -1;
	}
	failpoint("create.dir");
	return pool_add(&n->state, n->row.id, n->disk, sizeof n->disk, e);
}

/* Anew each time: another process may have merged some of it. */
static int read_stack(struct newborn *n, struct err *e)
{
	free(n->layers);
	n->layers = NULL;
	n->nlayers = 0;
	if (!n->row.top[0])
		return 0;
	return catalog_stack(n->catalog, n->row.top, &n->layers, &n->nlayers, e);
}

/* All that is the same whatever is to be built: the warden starts while we find that out. */
static int hatch(struct newborn *n, struct err *e)
{
	char warden[LIMIT_PATH + 32];

	if (warden_find(warden, sizeof warden, n->program, e) < 0 || make_dir(n, e) < 0)
		return -1;
	if (geteuid() == 0 &&
	    state_take_slot(&n->state, UID_SLOTS, &n->row.uid_slot, &n->slot_fd, e) < 0)
		return -1;
	return warden_start(n, warden, e);
}

/*
 * One that ends with its command has a row only where somebody else could ask for what it holds:
 * its name, or layers of a snapshot.
 */
static int add_row(struct newborn *n, struct err *e)
{
	if (n->row.ephemeral && !n->row.name[0] && !n->row.top[0])
		return 0;
	if (!n->catalog && catalog_open(&n->state, &n->catalog, e) < 0)
		return -1;
	n->row.recipe = n->row.ephemeral ? STR_NONE : buf_str(&n->recipe);
	n->row.layers = (const char(*)[ID_SIZE])n->layers;
	n->row.nlayers = n->nlayers;
	return catalog_add_sandbox(n->catalog, &n->row, n->row.uid_slot >= 0, e);
}

/* It has no row: what nobody else may have or take away is noted by itself. */
static int hold(struct newborn *n, struct err *e)
{
	if (n->row.uid_slot >= 0 && catalog_check_slot(n->catalog, n->row.uid_slot, e) < 0)
		return -1;
	return catalog_hold_layers(n->catalog, n->row.id, n->layers, n->nlayers, e);
}

static int make(struct newborn *n, const char *hostname, struct err *e)
{
	int r = n->warden_fd < 0 ? hatch(n, e) : 0;

	if (r == 0)
		r = read_stack(n, e);
	if (r == 0 && n->warm)
		r = hold(n, e);
	if (r == 0)
		r = send_build(n, hostname, e);
	n->asked = r == 0;
	return r < 0 || n->warm ? r : add_row(n, e);
}

static void undo(struct newborn *n)
{
	struct err ignored = { 0 };

	(void)newborn_destroy(n, &ignored);
	fd_close(&n->slot_fd);
	n->row.uid_slot = -1;
}

static int keep(struct newborn *n, struct err *e)
{
	char frame[FRAME_HEADER] = { [4] = MSG_C_KEEP };

	if (send(n->warden_fd, frame, sizeof frame, MSG_NOSIGNAL) != (ssize_t)sizeof frame)
		return err_sys(e, errno, "tell the warden to keep the sandbox");
	return 0;
}

/*
 * The lock on a range of uids is what parts the living. A range that a row keeps for the files
 * of a dead sandbox is no obstacle: the files lie where no sandbox sees them.
 */
static int add_late(struct newborn *n, struct err *e)
{
	if (!n->catalog && catalog_open(&n->state, &n->catalog, e) < 0)
		return -1;
	if (catalog_add_sandbox(n->catalog, &n->row, n->row.uid_slot >= 0, e) == 0)
		return 0;
	return e->sys == EADDRINUSE ? catalog_add_sandbox(n->catalog, &n->row, false, e) : -1;
}

static int add_claimed(struct newborn *n, struct err *e)
{
	int r = add_row(n, e);

	return r < 0 && e->sys == EADDRINUSE ? add_late(n, e) : r;
}

/* Where one is ready its owner is all that it lacks. */
static int take_ready(struct newborn *n, const char *hostname, struct err *e)
{
	if (n->warm || n->warden_fd >= 0 || !claim(n, 1, hostname))
		return 0;
	if (add_claimed(n, e) == 0)
		return 1;
	undo(n);
	return -1;
}

static int make_cold(struct newborn *n, const char *hostname, struct err *e)
{
	for (int i = 0;; i++) {
		if (make(n, hostname, e) == 0)
			return 0;
		undo(n);
		/* The range of a sandbox that was lost, and whose files are still there: another.
		 */
		if (e->sys != EADDRINUSE || i == SLOT_TRIES)
			return -1;
	}
}

static int make_it(struct newborn *n, const char *hostname, struct err *e)
{
	int r = take_ready(n, hostname, e);

	return r == 0 ? make_cold(n, hostname, e) : r < 0 ? -1 : 0;
}

static int begin(struct newborn *n, bool ephemeral, struct err *e)
{
	bool early = n->early;

	*n = (struct newborn){ NEWBORN_INIT };
	n->row.ephemeral = ephemeral;
	n->row.uid_slot = -1;
	if (state_open(&n->state, e) < 0)
		return -1;
	/* Where some are ready, whether one is to be built is known when the template is found. */
	n->early = early && !warm_exists(&n->state);
	return 0;
}

int newborn_plan(struct newborn *n, const struct sandbox_opts *o, bool ephemeral, struct err *e)
{
	auto_done(sandbox_plan_done) struct sandbox_plan plan = { 0 };

	if (begin(n, ephemeral, e) < 0 || sandbox_opts_resolve(o, &n->state, &plan, e) < 0)
		return -1;
	(void)snprintf(n->row.template_, sizeof n->row.template_, "%s", plan.template_);
	(void)snprintf(n->row.name, sizeof n->row.name, "%s", o->name ? o->name : "");
	plan.seen_ns = clock_real_ns();
	if ((n->early && hatch(n, e) < 0) || recipe_write(n, o, &plan, e) < 0) {
		undo(n);
		return -1;
	}
	n->row.spec = sandbox_plan_spec(o, &plan);
	return 0;
}

int newborn_create(struct newborn *n, const struct sandbox_opts *o, bool ephemeral, struct err *e)
{
	n->early = true;
	return newborn_plan(n, o, ephemeral, e) < 0 ? -1 : make_it(n, o->hostname, e);
}

int newborn_ready(struct newborn *n, struct str recipe, const char *top, const char *warm,
		  struct err *e)
{
	if (begin(n, false, e) < 0 || catalog_open(&n->state, &n->catalog, e) < 0)
		return -1;
	n->warm = warm;
	(void)str_copy(n->row.top, sizeof n->row.top, str_of(top));
	if (buf_add_str(&n->recipe, recipe) < 0)
		return err_sys(e, ENOMEM, "make a sandbox ready");
	if (make_it(n, NULL, e) < 0)
		return -1;
	if (newborn_await(n, e) == 0 && keep(n, e) == 0) {
		n->made = false;
		return 0;
	}
	undo(n);
	return -1;
}

static void borrow(struct newborn *n, const struct state *s)
{
	*n = (struct newborn){ NEWBORN_INIT };
	n->row.uid_slot = -1;
	n->state = *s;
	n->borrowed = true;
}

int newborn_hatch(struct newborn *n, const struct state *s, struct err *e)
{
	borrow(n, s);
	if (hatch(n, e) == 0)
		return 0;
	undo(n);
	return -1;
}

static int plan_fork(struct newborn *n, struct catalog *c, const struct newborn_origin *from,
		     const char *name, struct err *e)
{
	n->catalog = c;
	if (catalog_recipe_row(n->catalog, from->recipe_of, &n->recipe, &n->row, e) < 0)
		return -1;
	(void)str_copy(n->row.top, sizeof n->row.top, str_of(from->top));
	(void)snprintf(n->row.name, sizeof n->row.name, "%s", name);
	return 0;
}

/* Those that were ready are acknowledged together: with one write that has to last. */
static int add_together(struct newborn *ns, size_t n, struct catalog *c, struct err *e)
{
	int r = 0;

	if (!claim(ns, n, NULL))
		return 0;
	if (catalog_batch_begin(c, e) < 0)
		return -1;
	for (size_t i = 0; i < n && r == 0; i++)
		r = ns[i].claimed ? add_claimed(&ns[i], e) : 0;
	return catalog_batch_end(c, r, e);
}

int newborn_fork(struct newborn *ns, size_t n, const struct state *s, struct catalog *c,
		 const struct newborn_origin *from, char (*names)[64], struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < n; i++)
		if (ns[i].warden_fd < 0)
			borrow(&ns[i], s);
	for (size_t i = 0; i < n && r == 0; i++)
		r = plan_fork(&ns[i], c, from, names[i], e);
	if (r == 0)
		r = add_together(ns, n, c, e);
	for (size_t i = 0; i < n && r < 0; i++)
		undo(&ns[i]);
	return r;
}

int newborn_finish(struct newborn *n, struct err *e)
{
	struct err ignored = { 0 };

	if (!n->claimed && make_cold(n, NULL, e) < 0)
		return -1;
	if (newborn_await(n, e) == 0 && newborn_release(n, e) == 0)
		return 0;
	(void)newborn_destroy(n, &ignored);
	return -1;
}

int newborn_release(struct newborn *n, struct err *e)
{
	if (!n->row.running && catalog_set_state(n->catalog, n->row.id, "running", e) < 0)
		return -1;
	return n->row.ephemeral ? 0 : keep(n, e);
}

int newborn_register(struct newborn *n, struct err *e)
{
	if (!n->catalog && add_late(n, e) < 0)
		return -1;
	return newborn_release(n, e);
}

/* Where all commands are short nobody else would look after the dead. */
static void sweep_now_and_then(struct newborn *n)
{
	enum { ONE_IN = 64 };
	struct err ignored = { 0 };
	uint8_t dice;

	if (random_bytes(&dice, sizeof dice) < 0 || dice % ONE_IN != 0)
		return;
	if (catalog_open(&n->state, &n->catalog, &ignored) == 0)
		(void)catalog_reconcile(n->catalog, &n->state, SWEEP, NULL, &ignored);
}

bool newborn_leave(struct newborn *n)
{
	if (n->catalog)
		return false;
	n->made = false;
	sweep_now_and_then(n);
	return true;
}

/* The warden closes its end when it is gone. */
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

static void end_warden(struct newborn *n)
{
	char frame[FRAME_HEADER] = { [4] = MSG_C_DESTROY };

	if (n->warden_fd < 0)
		return;
	/* One that has not been greeted takes no orders, but ends when we are gone. */
	if (n->asked &&
	    send(n->warden_fd, frame, sizeof frame, MSG_NOSIGNAL) == (ssize_t)sizeof frame)
		await_end(n->warden_fd);
	fd_close(&n->warden_fd);
	while (n->warden_pid > 0 && waitpid(n->warden_pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int newborn_destroy(struct newborn *n, struct err *e)
{
	struct err second; /* the first failure is told */
	int r;

	if (!n->made)
		return 0;
	n->made = false;
	end_warden(n);
	if (n->claimed && claim_lock(n, e) < 0)
		return -1;
	/* The row goes last: it holds the uid slot of the files, and on a full disk needs their
	 * room. */
	r = state_remove(&n->state, n->row.id, TAKE_FD(n->lock_fd), e);
	if (n->catalog && catalog_del_sandbox(n->catalog, n->row.id, r < 0 ? &second : e) < 0)
		r = -1;
	return r;
}

void newborn_done(struct newborn *n)
{
	fd_close(&n->warden_fd);
	fd_close(&n->lock_fd);
	fd_close(&n->slot_fd);
	if (n->catalog && !n->borrowed)
		catalog_close(n->catalog);
	buf_done(&n->recipe);
	free(n->layers);
	sandbox_row_done(&n->row);
	if (n->state.fd < 0 || n->borrowed)
		return;
	/* Whoever could have claimed one sees to it that others can. */
	if (!n->warm)
		keeper_tend(&n->state);
	state_done(&n->state);
}
