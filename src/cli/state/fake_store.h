/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: a fake store and fake wardens. fake.log records what the commands did, one word per
 * action.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/state/fake_snapshots.h"
#include "link/client_many.h"
#include "link/wait.h"
#include "ops/reconcile.h"
#include "store/catalog.h"
#include "t.h"

struct fake_sandbox {
	struct sandbox_row row;
	bool alive, gone, deaf; /* deaf: the warden refuses to end */
	int busy;		/* how often the lock is found held */
};

static struct {
	char dir[64];
	struct fake_sandbox boxes[8];
	int n;
	const struct call_row *calls;
	int ncalls;
	int removed; /* result of the next reconcile */
	bool broken; /* the state directory cannot be opened */
	char log[1024];
} fake;

static inline struct fake_sandbox *fake_add(const char *id, const char *name, const char *state,
					    const char *spec)
{
	struct fake_sandbox *b = &fake.boxes[fake.n++];

	*b = (struct fake_sandbox){ .alive = strcmp(state, "lost") != 0 };
	(void)snprintf(b->row.id, sizeof b->row.id, "%s", id);
	(void)snprintf(b->row.name, sizeof b->row.name, "%s", name);
	(void)snprintf(b->row.state, sizeof b->row.state, "%s", state);
	(void)snprintf(b->row.template_, sizeof b->row.template_, "host");
	b->row.spec = (char *)spec;
	b->row.created_ns = 1767322800ull * 1000000000ull;
	return b;
}

/* Creates a state directory for this test; fake_done removes it. */
static inline void fake_init(void)
{
	char sandboxes[80];

	(void)snprintf(fake.dir, sizeof fake.dir, "/tmp/cay-cli-test.XXXXXX");
	CHECK(mkdtemp(fake.dir));
	(void)snprintf(sandboxes, sizeof sandboxes, "%s/sandboxes", fake.dir);
	CHECK(mkdir(sandboxes, 0700) == 0);
}

static inline void fake_shell(const char *command, const char *path, const char *tail)
{
	auto_free char *line = NULL;

	CHECK(asprintf(&line, "%s %s%s", command, path, tail) > 0);
	CHECK(system(line) == 0);
}

static inline void fake_done(void)
{
	fake_shell("rm -rf", fake.dir, "");
}

static void fake_note(const char *what, const char *id)
{
	size_t n = strlen(fake.log);

	(void)snprintf(fake.log + n, sizeof fake.log - n, "%s:%s ", what, id);
}

static struct fake_sandbox *fake_box(const char *id)
{
	for (int i = 0; i < fake.n; i++)
		if (!fake.boxes[i].gone && strcmp(fake.boxes[i].row.id, id) == 0)
			return &fake.boxes[i];
	return NULL;
}

static void fake_copy(struct sandbox_row *to, const struct sandbox_row *from)
{
	*to = *from;
	to->spec = from->spec ? strdup(from->spec) : NULL;
}

int state_open(struct state *s, struct err *e)
{
	if (fake.broken)
		return err_sys(e, EACCES, "state directory '/nowhere'");
	(void)snprintf(s->dir, sizeof s->dir, "%s", fake.dir);
	s->fd = open(fake.dir[0] ? fake.dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->fd < 0 ? err_sys(e, errno, "state") : 0;
}

void state_done(struct state *s)
{
	fd_close(&s->fd);
}

bool state_id_ok(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");

	return n >= 8 && n <= ID_MAX && !id[n];
}

bool state_name_ok(const char *name)
{
	return name[0] && strlen(name) <= 63 && !strpbrk(name, " /:");
}

int state_lock(const struct state *s, const char *id, int *ret_fd, struct err *e)
{
	struct fake_sandbox *b = fake_box(id);

	(void)s;
	if (b && (b->alive || b->busy-- > 0))
		return err_set(e, ERR_CONFLICT, "sandbox '%s' is alive", id);
	*ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return 0;
}

bool state_is_alive(const struct state *s, const char *id)
{
	struct fake_sandbox *b = fake_box(id);

	(void)s;
	return b && b->alive;
}

int state_sandbox_open(const struct state *s, const char *id, int *ret_fd, struct err *e)
{
	char path[64];

	(void)snprintf(path, sizeof path, "sandboxes/%s", id);
	*ret_fd = openat(s->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? err_set(e, ERR_NOT_FOUND, "no directory") : 0;
}

int state_remove(const struct state *s, const char *id, int lock_fd, struct err *e)
{
	(void)s;
	(void)e;
	fake_note("remove", id);
	CHECK(fcntl(lock_fd, F_GETFD) >= 0);
	close(lock_fd);
	if (fake.dir[0]) {
		char tail[64];

		(void)snprintf(tail, sizeof tail, "/sandboxes/%s", id);
		fake_shell("rm -rf", fake.dir, tail);
	}
	return 0;
}

int catalog_open(const struct state *s, struct catalog **ret, struct err *e)
{
	(void)s;
	(void)e;
	*ret = (struct catalog *)&fake;
	return 0;
}

void catalog_close(struct catalog *c)
{
	CHECK((void *)c == (void *)&fake);
}

int catalog_add_sandbox(struct catalog *c, struct sandbox_row *row, bool want_uid_slot,
			struct err *e)
{
	(void)c;
	(void)row;
	(void)want_uid_slot;
	(void)e;
	return 0;
}

int catalog_batch_begin(struct catalog *c, struct err *e)
{
	(void)c;
	(void)e;
	return 0;
}

int catalog_batch_end(struct catalog *c, int r, struct err *e)
{
	(void)c;
	(void)e;
	return r;
}

int catalog_del_sandbox(struct catalog *c, const char *id, struct err *e)
{
	struct fake_sandbox *b = fake_box(id);

	(void)c;
	(void)e;
	fake_note("del", id);
	if (b)
		b->gone = true;
	return 0;
}

int catalog_find(struct catalog *c, const char *ref, struct sandbox_row *ret, struct err *e)
{
	(void)c;
	for (int i = 0; i < fake.n; i++) {
		const struct fake_sandbox *b = &fake.boxes[i];

		if (b->gone ||
		    (strcmp(b->row.name, ref) != 0 && strncmp(b->row.id, ref, strlen(ref)) != 0))
			continue;
		fake_copy(ret, &b->row);
		return 0;
	}
	(void)err_set(e, ERR_NOT_FOUND, "sandbox '%s' not found", ref);
	return err_hint(e, "cay ls lists them");
}

int catalog_each(struct catalog *c, int (*fn)(void *ctx, const struct sandbox_row *row), void *ctx,
		 struct err *e)
{
	(void)c;
	(void)e;
	for (int i = 0; i < fake.n; i++)
		if (!fake.boxes[i].gone && fn(ctx, &fake.boxes[i].row))
			break;
	return 0;
}

void sandbox_row_done(struct sandbox_row *row)
{
	free(row->spec);
	row->spec = NULL;
}

int catalog_index_calls(struct catalog *c, const struct state *s, const char *id, struct err *e)
{
	(void)c;
	(void)s;
	(void)e;
	fake_note("index", id);
	return 0;
}

int catalog_each_call(struct catalog *c, const char *id,
		      int (*fn)(void *ctx, const struct call_row *row), void *ctx, struct err *e)
{
	(void)c;
	(void)id;
	(void)e;
	for (int i = 0; i < fake.ncalls; i++)
		if (fn(ctx, &fake.calls[i]))
			break;
	return 0;
}

int reconcile_all(struct catalog *c, const struct state *s, int most, int *ret_removed,
		  struct err *e)
{
	(void)c;
	(void)s;
	(void)e;
	CHECK(most == 0);
	fake_note("reconcile", "all");
	for (int i = 0; i < fake.n; i++)
		if (!fake.boxes[i].alive)
			(void)snprintf(fake.boxes[i].row.state, sizeof fake.boxes[i].row.state,
				       "%s", "lost");
	*ret_removed = fake.removed;
	return 0;
}

/* Only one link exists at a time. */
static const char *fake_linked;

int link_connect(struct waiter *w, const struct state *s, const char *id, struct link **ret,
		 struct err *e)
{
	(void)w;
	if (!state_is_alive(s, id))
		return err_set(e, ERR_UNAVAILABLE, "sandbox '%s' does not answer", id);
	fake_linked = id;
	*ret = (struct link *)&fake_linked;
	return 0;
}

void link_free(struct link *l)
{
	CHECK(!l || (void *)l == (void *)&fake_linked);
}

int link_sync_trace(struct link *l, struct waiter *w, uint64_t *ret_seq, char ret_hash[65],
		    struct err *e)
{
	(void)l;
	(void)w;
	(void)ret_seq;
	(void)ret_hash;
	return err_set(e, ERR_UNAVAILABLE, "there is no warden");
}

int link_calls(struct link *l, struct waiter *w, uint32_t call,
	       int (*fn)(void *ctx, const struct link_call_row *r), void *ctx, struct err *e)
{
	(void)l;
	(void)w;
	(void)call;
	(void)fn;
	(void)ctx;
	return err_set(e, ERR_UNAVAILABLE, "there is no warden");
}

int link_ps(struct link *l, struct waiter *w, int (*fn)(void *ctx, const struct link_process *p),
	    void *ctx, struct err *e)
{
	static const struct link_process ps[] = {
		{ 1, 0, 0, 'S', 1500, 800, 0, "cay-init" },
		{ 7, 1, 3, 'R', 2500000, 20480, 1000, "sh -c \033]0;evil\007" },
	};

	(void)l;
	(void)w;
	(void)e;
	for (size_t i = 0; i < 2 && fn(ctx, &ps[i]) == 0; i++)
		;
	return 0;
}

int link_info(struct link *l, struct waiter *w, struct sandbox_status *ret, struct err *e)
{
	(void)l;
	(void)w;
	(void)e;
	*ret = (struct sandbox_status){ .state = "running",
					.init_pid = 4242,
					.calls_running = 1,
					.calls_total = 7,
					.rss_kb = 2048,
					.ttl_left_ms = UINT64_MAX,
					.idle_left_ms = UINT64_MAX };
	return 0;
}

static int fake_info(const struct state *s, const char *id, struct sandbox_status *ret)
{
	if (!state_is_alive(s, id))
		return -1;
	*ret = (struct sandbox_status){ .state = "running",
					.init_pid = 4242,
					.calls_running = 1,
					.calls_total = 7,
					.rss_kb = 2048,
					.ttl_left_ms = UINT64_MAX,
					.idle_left_ms = UINT64_MAX };
	return 0;
}

void client_info_many(const struct state *s, struct client_question *qs, int n, int timeout_ms)
{
	(void)timeout_ms;
	for (int i = 0; i < n; i++)
		qs[i].known = qs[i].id && fake_info(s, qs[i].id, &qs[i].state) == 0;
}

int link_end_sandbox(struct waiter *w, const struct state *s, const char *id, struct err *e)
{
	struct fake_sandbox *b = fake_box(id);

	(void)w;
	(void)s;
	if (b->deaf)
		return err_set(e, ERR_UNAVAILABLE, "sandbox '%s' does not answer", id);
	fake_note("destroy", id);
	b->alive = false;
	return 0;
}

int reconcile_one(struct catalog *c, const struct state *s, const char *id, struct err *e)
{
	(void)c;
	(void)s;
	(void)e;
	fake_note("reconcile", id);
	return 0;
}
