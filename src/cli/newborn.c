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
#include "base/io.h"
#include "base/limits.h"
#include "base/random.h"
#include "cli/client.h"
#include "cli/sandboxes.h"
#include "cli/warden_start.h"
#include "image/template.h"
#include "store/pool.h"
#include "store/snapshots.h"

enum {
	SLOT_TRIES = 8,
	SWEEP = 4,
	READY_TIMEOUT_MS = 30000,
	END_TIMEOUT_MS = 10000
};

static int put_mount(struct buf *b, enum mount_kind kind, const char *dest, char *const *lower,
		     int nlower, const uid_t *owner)
{
	auto_done(buf_done) struct buf m = BUF_INIT(LIMIT_FRAME_BODY);
	int r = field_put_u64(&m, M_KIND, kind);

	if (r == 0)
		r = field_put_c(&m, M_DEST, dest);
	for (int i = 0; i < nlower && r == 0; i++)
		r = field_put_c(&m, M_LOWER, lower[i]);
	if (r == 0 && owner)
		r = field_put_u64(&m, M_OWNER, *owner);
	return r < 0 ? r : field_put(b, TAG_MOUNT, buf_str(&m));
}

static int put_mounts(struct buf *b, const struct template *t, const struct sandbox_plan *p)
{
	int r = 0;

	for (int i = 0; i < t->nmounts && r == 0; i++) {
		const struct template_mount *m = &t->mounts[i];

		r = put_mount(b, m->kind, m->dest, m->lower, m->nlower, NULL);
	}
	for (int i = 0; i < p->nmounts && r == 0; i++) {
		const struct sandbox_mount *m = &p->mounts[i];

		r = put_mount(b, m->ro ? MOUNT_RO : MOUNT_OVERLAY, m->dest, &m->path, 1, &m->owner);
	}
	return r;
}

static int put_defaults(struct buf *b, const struct sandbox_opts *o, const struct sandbox_plan *p)
{
	const char *cwd = o->cwd ? o->cwd : p->first_dir;
	int r = field_put_c(b, TAG_USER, o->user ? o->user : "1000");

	for (int i = 0; i < p->nenv && r == 0; i++)
		r = field_put_c(b, TAG_ENV, p->env[i]);
	for (int i = 0; i < p->nlabels && r == 0; i++)
		r = field_put_c(b, TAG_LABEL, p->labels[i]);
	if (r == 0 && cwd)
		r = field_put_c(b, TAG_CWD, cwd);
	if (r == 0)
		r = net_opts_put_build(&p->net_policy, b);
	return r < 0 ? r : limit_opts_put_build(&o->limits, b);
}

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
	if (r == 0)
		r = field_put_u64(b, TAG_EPHEMERAL, n->row.ephemeral);
	if (r == 0 && n->row.uid_slot >= 0)
		r = field_put_u64(b, TAG_UID_BASE,
				  UID_SLOT_BASE + (uint64_t)n->row.uid_slot * UID_SLOT_SIZE);
	return r;
}

/* What is not the sandbox's own alone. A later one may be made of the same. */
static int put_recipe(struct buf *b, const struct sandbox_opts *o, const struct sandbox_plan *p,
		      const struct template *t)
{
	int r = field_put_u64(b, TAG_TRACE, p->trace);

	if (r == 0)
		r = field_put_u64(b, TAG_PROFILE, p->profile);
	if (r == 0)
		r = put_mounts(b, t, p);
	return r < 0 ? r : put_defaults(b, o, p);
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
	for (size_t i = 0; i < n->nlayers && r == 0; i++)
		r = field_put_c(&b, TAG_LAYER, n->layers[i]);
	if (r == 0)
		r = frame_end(&b, at, 0);
	if (r == 0)
		r = io_write_all(n->warden_fd, b.data, b.len);
	return r < 0 ? err_sys(e, -r, "tell the warden what to build") : 0;
}

/* One frame from the warden, whole; it is small. *ret_used: the bytes that it took. */
static int await_frame(int fd, int timeout_ms, struct buf *in, struct frame *f, struct err *e)
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

	if (await_frame(n->warden_fd, READY_TIMEOUT_MS, &in, &f, e) < 0)
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

static int make(struct newborn *n, const char *hostname, struct err *e)
{
	bool root = geteuid() == 0;
	int r = n->warden_fd < 0 ? hatch(n, e) : 0;

	if (r == 0)
		r = read_stack(n, e);
	if (r == 0)
		r = send_build(n, hostname, e);
	n->asked = r == 0;
	/* One that ends with its command has a row only where somebody else could ask for what it
	 * holds: its name, or layers of a snapshot. */
	if (r < 0 || (n->row.ephemeral && !n->row.name[0] && !n->row.top[0]))
		return r;
	if (!n->catalog && catalog_open(&n->state, &n->catalog, e) < 0)
		return -1;
	n->row.recipe = n->row.ephemeral ? STR_NONE : buf_str(&n->recipe);
	n->row.layers = (const char(*)[ID_SIZE])n->layers;
	n->row.nlayers = n->nlayers;
	return catalog_add_sandbox(n->catalog, &n->row, root, e);
}

static void undo(struct newborn *n)
{
	struct err ignored = { 0 };

	(void)newborn_destroy(n, &ignored);
	fd_close(&n->slot_fd);
	n->row.uid_slot = -1;
}

static int make_it(struct newborn *n, const char *hostname, struct err *e)
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

static int begin(struct newborn *n, bool ephemeral, struct err *e)
{
	*n = (struct newborn){ NEWBORN_INIT };
	n->row.ephemeral = ephemeral;
	n->row.uid_slot = -1;
	return state_open(&n->state, e);
}

/* The mounts of a recipe; one of the plan must not cover any of them. */
static int copy_mounts(struct buf *to, struct str recipe, const struct sandbox_plan *p,
		       struct err *e)
{
	struct field f, m;

	while (field_next(&recipe, &f) > 0) {
		struct str body = f.value;

		if (f.tag != TAG_MOUNT)
			continue;
		while (field_next(&body, &m) > 0)
			for (int i = 0; m.tag == M_DEST && i < p->nmounts; i++) {
				struct str dest = str_of(p->mounts[i].dest);

				if (str_starts(m.value, dest) &&
				    (m.value.n == dest.n || m.value.p[dest.n] == '/'))
					return err_set(e, ERR_INVALID,
						       "'%.200s' would cover what the snapshot has "
						       "at '%.*s'",
						       p->mounts[i].path, (int)m.value.n,
						       m.value.p);
			}
		if (field_put(to, TAG_MOUNT, f.value) < 0)
			return err_sys(e, ENOMEM, "read a recipe");
	}
	return 0;
}

/* Files and mounts of the snapshot, everything else as it is asked for now. */
static int from_snapshot(struct newborn *n, const struct sandbox_opts *o, struct sandbox_plan *p,
			 struct err *e)
{
	auto_done(buf_done) struct buf recipe = BUF_INIT(LIMIT_FRAME_BODY);
	struct template none = { 0 };
	struct snapshot_row row = { 0 };
	int r;

	if (catalog_open(&n->state, &n->catalog, e) < 0 ||
	    catalog_find_snapshot(n->catalog, p->template_, &row, e) < 0)
		return -1;
	p->seen_ns = spec_seen_ns(row.spec);
	r = catalog_recipe(n->catalog, row.sandbox, &recipe, e);
	if (r == 0)
		r = copy_mounts(&n->recipe, buf_str(&recipe), p, e);
	(void)str_copy(n->row.top, sizeof n->row.top, str_of(row.top));
	snapshot_row_done(&row);
	if (r == 0 && put_recipe(&n->recipe, o, p, &none) < 0)
		r = err_sys(e, ENOMEM, "tell the warden what to build");
	return r;
}

static int write_recipe(struct newborn *n, const struct sandbox_opts *o, struct sandbox_plan *p,
			struct err *e)
{
	struct template t = { 0 };
	int r;

	if (strncmp(p->template_, "snap:", 5) == 0)
		return from_snapshot(n, o, p, e);
	if (template_resolve(n->state.dir, p->template_, &t, e) < 0)
		return -1;
	r = put_recipe(&n->recipe, o, p, &t);
	template_done(&t);
	return r < 0 ? err_sys(e, -r, "tell the warden what to build") : 0;
}

int newborn_create(struct newborn *n, const struct sandbox_opts *o, bool ephemeral, struct err *e)
{
	auto_done(sandbox_plan_done) struct sandbox_plan plan = { 0 };

	if (begin(n, ephemeral, e) < 0 || sandbox_opts_resolve(o, &n->state, &plan, e) < 0)
		return -1;
	(void)snprintf(n->row.template_, sizeof n->row.template_, "%s", plan.template_);
	(void)snprintf(n->row.name, sizeof n->row.name, "%s", o->name ? o->name : "");
	plan.seen_ns = clock_real_ns();
	if (hatch(n, e) < 0 || write_recipe(n, o, &plan, e) < 0) {
		undo(n);
		return -1;
	}
	n->row.spec = sandbox_plan_spec(o, &plan);
	return make_it(n, o->hostname, e);
}

int newborn_hatch(struct newborn *n, const struct state *s, struct err *e)
{
	*n = (struct newborn){ NEWBORN_INIT };
	n->row.uid_slot = -1;
	n->state = *s;
	n->borrowed = true;
	if (hatch(n, e) == 0)
		return 0;
	undo(n);
	return -1;
}

int newborn_fork(struct newborn *n, struct catalog *c, const char *recipe_of, const char *top,
		 const char *name, struct err *e)
{
	n->catalog = c;
	if (catalog_recipe(c, recipe_of, &n->recipe, e) < 0 ||
	    catalog_recipe_row(c, recipe_of, &n->row, e) < 0) {
		undo(n);
		return -1;
	}
	(void)str_copy(n->row.top, sizeof n->row.top, str_of(top));
	(void)snprintf(n->row.name, sizeof n->row.name, "%s", name ? name : "");
	return make_it(n, NULL, e);
}

int newborn_release(struct newborn *n, struct err *e)
{
	char frame[FRAME_HEADER] = { [4] = MSG_C_KEEP };

	if (catalog_set_state(n->catalog, n->row.id, "running", e) < 0)
		return -1;
	if (!n->row.ephemeral &&
	    send(n->warden_fd, frame, sizeof frame, MSG_NOSIGNAL) != (ssize_t)sizeof frame)
		return err_sys(e, errno, "tell the warden to keep the sandbox");
	return 0;
}

/*
 * The lock on a range of uids is what parts the living. A range that a row keeps for the files
 * of a dead sandbox is no obstacle: the files lie where no sandbox sees them.
 */
static int add_late(struct newborn *n, struct err *e)
{
	if (catalog_open(&n->state, &n->catalog, e) < 0)
		return -1;
	if (catalog_add_sandbox(n->catalog, &n->row, n->row.uid_slot >= 0, e) == 0)
		return 0;
	return e->sys == EADDRINUSE ? catalog_add_sandbox(n->catalog, &n->row, false, e) : -1;
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
	if (n->state.fd >= 0 && !n->borrowed)
		state_done(&n->state);
}
