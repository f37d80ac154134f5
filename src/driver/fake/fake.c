/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/fake/fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "t.h"

struct fake fake;

struct generation {
	unsigned number;
	bool left;
};

enum { INIT_PID = 1 << 29 }; /* a pid that no process has */

/* Count the call. Returns the errno with which it must fail, or 0. */
static int counted(enum fake_fn fn)
{
	fake.count[fn]++;
	return fake.fail[fn];
}

static int counted_err(enum fake_fn fn, const char *what, struct err *e)
{
	int err = counted(fn);

	return err ? err_sys(e, err, "%s", what) : 0;
}

static void make_uppers(const char *parent, const bool *same)
{
	char path[64];

	CHECK(io_mkdir(fake.spec->disk_fd, parent, 0700) == 0);
	for (int i = 0; i < fake.spec->nmounts; i++) {
		if (fake.spec->mounts[i].kind != MOUNT_OVERLAY || (same && same[i]))
			continue;
		(void)snprintf(path, sizeof path, "%s/%d", parent, i);
		CHECK(io_mkdir(fake.spec->disk_fd, path, 0755) == 0);
	}
}

static int create(const struct cell_spec *spec, const struct cell_events *events, struct cell **ret,
		  struct err *e)
{
	int pair[2];

	fake.cell = calloc(1, sizeof *fake.cell);
	CHECK(fake.cell);
	fake.cell->has = fake.driver.has;
	fake.cell->pid = INIT_PID;
	fake.spec = spec;
	fake.events = events;
	*ret = fake.cell;
	make_uppers("upper", NULL);
	if (spec->meanwhile.building && spec->meanwhile.building(spec->meanwhile.ctx, *ret, e) < 0)
		return -1;
	if (counted_err(FAKE_CREATE, "make a fake", e) < 0)
		return -1;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(fake_init_open(pair[1]) == 0);
	fake.stream_fd = pair[0];
	return 0;
}

static int stream(struct cell *c)
{
	(void)c;
	return TAKE_FD(fake.stream_fd);
}

static int verify(struct cell *c, enum verify_stage stage, pid_t call, struct err *e)
{
	(void)call;
	if (counted_err(FAKE_VERIFY, "verify a fake", e) < 0) {
		c->refused = true;
		return -1;
	}
	c->verified |= stage == VERIFY_ALL;
	return 0;
}

static int claim(struct cell *c, const struct cell_spec *spec, bool renamed, struct err *e)
{
	(void)c;
	(void)spec;
	(void)renamed;
	return counted_err(FAKE_CLAIM, "claim a fake", e);
}

static int renew(struct cell *c, const struct cell_spec *spec, const struct cell_change *what,
		 struct generation **ret, struct err *e)
{
	struct generation *g;

	(void)spec;
	if (counted_err(FAKE_RENEW, "renew a fake", e) < 0)
		return -1;
	g = calloc(1, sizeof *g);
	CHECK(g);
	g->number = c->generation + 1;
	make_uppers("next", what->same);
	fake.live++;
	*ret = g;
	return 0;
}

static void renew_ahead(struct cell *c, const struct cell_spec *spec)
{
	(void)c;
	(void)spec;
	(void)counted(FAKE_AHEAD);
}

static void swap(struct cell *c, struct generation *g)
{
	unsigned was = c->generation;

	c->generation = g->number;
	g->number = was;
	g->left = !g->left;
}

static int enter(struct cell *c, struct generation *g, struct err *e)
{
	if (!g->left)
		swap(c, g);
	if (counted_err(FAKE_ENTER, "enter a fake", e) < 0)
		return -1;
	if (fake.events->order(fake.events->w, MSG_ENTER, NULL, 0) < 0)
		return err_sys(e, EPIPE, "tell init to enter");
	return 0;
}

static void stay(struct cell *c, struct generation *g)
{
	(void)counted(FAKE_STAY);
	if (g->left)
		swap(c, g);
}

/* Runs in a child of the warden, so its count is lost. -EBUSY becomes 1: a file is still open. */
static int seal(struct cell *c, const struct generation *left, const bool *which, struct err *e)
{
	int err = fake.fail[FAKE_SEAL];

	(void)c;
	(void)left;
	(void)which;
	if (err == EBUSY)
		return 1;
	return err ? err_sys(e, err, "seal a fake") : 0;
}

static int keep_fds(const struct cell *c, const struct generation *left, int *fds, int most)
{
	(void)c;
	(void)left;
	(void)fds;
	(void)most;
	return 0;
}

static void drop(struct cell *c, struct generation *g)
{
	(void)c;
	(void)counted(FAKE_DROP);
	fake.live--;
	free(g);
}

static int as_owner(struct cell *c)
{
	(void)c;
	return -fake.fail[FAKE_AS_OWNER];
}

static int group_open(struct cell *c, const char *name, int *ret_fd)
{
	int err = counted(FAKE_GROUP_OPEN);

	(void)c;
	(void)name;
	if (err)
		return -err;
	*ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(*ret_fd >= 0);
	return 0;
}

static int group_limit(struct cell *c, const char *name, uint64_t bytes, int *ret_entry,
		       char why[CELL_WHY])
{
	int err = counted(FAKE_GROUP_LIMIT);

	(void)c;
	(void)name;
	(void)bytes;
	*ret_entry = FD_NONE;
	(void)snprintf(why, CELL_WHY, "it is a fake");
	return -err;
}

static int group_kill(struct cell *c, const char *name)
{
	(void)c;
	(void)name;
	return -counted(FAKE_GROUP_KILL);
}

static void group_count(struct cell *c, const char *name, struct group_counts *ret)
{
	(void)c;
	(void)name;
	*ret = (struct group_counts){ 0 };
}

static int group_cpu(struct cell *c, const char *name, uint64_t *ret_us)
{
	(void)c;
	(void)name;
	*ret_us = fake.cpu_us;
	return 0;
}

static int group_pids(struct cell *c, const char *name, long *pids, int most)
{
	(void)c;
	(void)name;
	(void)pids;
	(void)most;
	return 0;
}

static int group_remove(struct cell *c, const char *name)
{
	(void)c;
	(void)name;
	return -counted(FAKE_GROUP_REMOVE);
}

static int freeze(struct cell *c, bool on, int wait_ms)
{
	(void)c;
	(void)wait_ms;
	return -counted(on ? FAKE_FREEZE : FAKE_THAW);
}

static int others(struct cell *c, long *ret_pid)
{
	int err = counted(FAKE_OTHERS);

	(void)c;
	*ret_pid = fake.other_pid;
	return err ? -err : fake.others;
}

static int pids(struct cell *c, long *list, int most)
{
	(void)c;
	(void)list;
	(void)most;
	return 0;
}

/* Not a real terminal: two connected ends. */
static int terminal(struct cell *c, int *ret_master, int *ret_slave)
{
	int pair[2], err = counted(FAKE_TERMINAL);

	(void)c;
	if (err)
		return -err;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	*ret_master = pair[0];
	*ret_slave = pair[1];
	return 0;
}

static int root(const struct cell *c)
{
	(void)c;
	return FD_NONE;
}

static const int *net_fds(const struct cell *c)
{
	static const int none[NET_FDS] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE, FD_NONE };

	(void)c;
	return none;
}

static void kill_all(struct cell *c)
{
	(void)c;
	(void)counted(FAKE_KILL);
}

static void reap(struct cell *c)
{
	(void)counted(FAKE_REAP);
	c->pid = 0;
}

static int destroy(struct cell *c, struct err *e)
{
	int r = counted_err(FAKE_DESTROY, "destroy a fake", e);

	fd_close(&fake.stream_fd);
	fake_init_close();
	free(c);
	fake.cell = NULL;
	return r;
}

static const struct driver good = {
	.name = "fake",
	.boundary = "none",
	.has = HAS_FDS | HAS_RENEW | HAS_UPPER | HAS_NETWORK | HAS_FREEZE | HAS_TERMINAL |
	       HAS_PORTS | HAS_CLAIM | HAS_GROUPS | HAS_MEMORY | HAS_CPU | HAS_PIDS | HAS_SPARE,
	.create = create,
	.verify = verify,
	.claim = claim,
	.renew = renew,
	.renew_ahead = renew_ahead,
	.enter = enter,
	.stay = stay,
	.seal = seal,
	.keep_fds = keep_fds,
	.drop = drop,
	.as_owner = as_owner,
	.group_open = group_open,
	.group_limit = group_limit,
	.group_kill = group_kill,
	.group_count = group_count,
	.group_cpu = group_cpu,
	.group_pids = group_pids,
	.group_remove = group_remove,
	.freeze = freeze,
	.others = others,
	.pids = pids,
	.terminal = terminal,
	.stream = stream,
	.root = root,
	.net_fds = net_fds,
	.kill = kill_all,
	.reap = reap,
	.destroy = destroy,
};

void fake_begin(struct loop *loop)
{
	fake = (struct fake){ .driver = good, .loop = loop, .stream_fd = FD_NONE };
	fake.init.version = PROTO_INIT_VERSION;
}

void fake_end(void)
{
	fake_init_close();
}
