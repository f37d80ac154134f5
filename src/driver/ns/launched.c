/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/launched.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { ENDING_MS = 100 };

struct launched *launched_new(const struct cell_spec *s)
{
	struct launched *b = calloc(1, sizeof *b);

	if (!b)
		return NULL;
	*b = (struct launched){
		.l = { .spec = s, .init_fd = FD_NONE, .userns_fd = FD_NONE, .netns_fd = FD_NONE },
		.posture = POSTURE_INIT,
	};
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		b->l.entries[i] = FD_NONE;
	return b;
}

static void let_go(struct launch *l)
{
	if (l->net.helper > 0)
		l->netns_fd = netns_take(&l->net);
	fd_close(&l->netns_fd);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		fd_close(&l->entries[i]);
}

void launched_free(struct launched *b)
{
	if (!b)
		return;
	let_go(&b->l);
	fd_close(&b->l.init_fd);
	posture_done(&b->posture);
	free(b);
}

int launched_watch(struct launched *b, const struct ns_cell *c, struct err *e)
{
	auto_close int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct posture *p = &b->posture;
	struct stat st;
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d", (int)c->pub.pid);
	p->l = &b->l;
	p->pid = c->pub.pid;
	p->group = c->has_cgroup ? c->cgroup.name : NULL;
	p->proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p->proc_fd < 0 || self < 0 || fstat(b->l.stream_fd, &st) < 0)
		return err_sys(e, errno, "look at the sandbox");
	p->stream = st.st_ino;
	return posture_open(p, self, e);
}

void launched_reported(struct launched *b, int root_fd)
{
	b->posture.root_fd = root_fd;
	let_go(&b->l);
}

static int verify_part(struct ns_cell *c, enum cell_look what, pid_t command, struct err *e)
{
	if (c->launched->looks & 1u << what)
		return 0;
	if (posture_check(&c->launched->posture, what, command, e) == 0) {
		c->launched->looks |= 1u << what;
		return 0;
	}
	/* A sandbox that is ending cannot be verified. */
	if (poll(&(struct pollfd){ .fd = c->pidfd, .events = POLLIN }, 1, ENDING_MS) == 1)
		return err_set(e, ERR_FAILED, "init ended while the sandbox was being built");
	c->pub.refused = true;
	return -1;
}

/*
 * The parts due at each stage. A rootless init hides its descriptors from us after its first order.
 */
static const enum cell_look orders[][LOOKS] = {
	[false] = { LOOK_BUILT, LOOK_OPEN, LOOK_INIT },
	[true] = { LOOK_BUILT, LOOK_INIT, LOOK_OPEN },
};
static const int due[][VERIFY_ALL + 1] = {
	[false] = { [VERIFY_BUILT] = 1, [VERIFY_ORDER] = 2, [VERIFY_HELLO] = 3, [VERIFY_ALL] = 3 },
	[true] = { [VERIFY_BUILT] = 1, [VERIFY_ORDER] = 1, [VERIFY_HELLO] = 2, [VERIFY_ALL] = 3 },
};

int ns_verify(struct cell *cell, enum verify_stage stage, pid_t call, struct err *e)
{
	struct ns_cell *c = ns_cell(cell);
	bool rootful;

	if (!c->launched)
		return 0;
	rootful = c->launched->l.spec->rootful;
	for (int i = 0; i < due[rootful][stage]; i++)
		if (verify_part(c, orders[rootful][i], stage == VERIFY_ALL ? call : 0, e) < 0)
			return -1;
	if (c->launched->looks != (1u << LOOKS) - 1)
		return 0;
	launched_free(c->launched);
	c->launched = NULL;
	c->pub.verified = true;
	return 0;
}
