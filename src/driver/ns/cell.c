/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of a cell and of a generation, and how they are exchanged. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "driver/ns/net.h"
#include "driver/ns/ns.h"

void ns_cell_init(struct ns_cell *c)
{
	*c = (struct ns_cell){ .pidfd = FD_NONE,
			       .stream_fd = FD_NONE,
			       .root_fd = FD_NONE,
			       .devpts_fd = FD_NONE,
			       .mount_ns = FD_NONE,
			       .cgroup = cgroup_none,
			       .keep = { .mount_ns = FD_NONE,
					 .outer_ns = FD_NONE,
					 .user_ns = FD_NONE,
					 .ready_fd = FD_NONE } };
	for (int i = 0; i < CELL_MOUNTS; i++)
		c->keep.owner_ns[i] = c->keep.mount_fd[i] = FD_NONE;
	for (int i = 0; i < NET_FDS; i++)
		c->net_fds[i] = FD_NONE;
}

void ns_cell_close(struct ns_cell *c)
{
	fd_close(&c->pidfd);
	fd_close(&c->stream_fd);
	fd_close(&c->root_fd);
	fd_close(&c->devpts_fd);
	fd_close(&c->mount_ns);
	fd_close(&c->keep.mount_ns);
	fd_close(&c->keep.outer_ns);
	fd_close(&c->keep.user_ns);
	for (int i = 0; i < CELL_MOUNTS; i++)
		fd_close(&c->keep.owner_ns[i]);
	for (int i = 0; i < CELL_MOUNTS; i++)
		fd_close(&c->keep.mount_fd[i]);
	net_done(c);
}

static void generation_init(struct generation *g)
{
	*g = (struct generation){ .mount_ns = FD_NONE,
				  .base_ns = FD_NONE,
				  .root_fd = FD_NONE,
				  .devpts_fd = FD_NONE,
				  .helper_fd = FD_NONE };
	for (int i = 0; i < CELL_MOUNTS; i++)
		g->mount_fd[i] = FD_NONE;
}

struct generation *generation_new(void)
{
	struct generation *g = calloc(1, sizeof *g);

	if (g)
		generation_init(g);
	return g;
}

void generation_close(struct generation *g)
{
	fd_close(&g->mount_ns);
	fd_close(&g->base_ns);
	fd_close(&g->root_fd);
	fd_close(&g->devpts_fd);
	for (int i = 0; i < CELL_MOUNTS; i++)
		fd_close(&g->mount_fd[i]);
	fd_close(&g->helper_fd);
}

void ns_drop(struct cell *c, struct generation *g)
{
	(void)c;
	if (!g)
		return;
	generation_close(g);
	free(g);
}

static void swap_fd(int *a, int *b)
{
	int was = *a;

	*a = *b;
	*b = was;
}

/* Exchange g with the generation that init is in. */
static void swap(struct ns_cell *c, struct generation *g)
{
	unsigned was = c->pub.generation;

	swap_fd(&c->mount_ns, &g->mount_ns);
	swap_fd(&c->keep.mount_ns, &g->base_ns);
	swap_fd(&c->root_fd, &g->root_fd);
	swap_fd(&c->devpts_fd, &g->devpts_fd);
	for (int i = 0; i < CELL_MOUNTS; i++)
		swap_fd(&c->keep.mount_fd[i], &g->mount_fd[i]);
	c->pub.generation = g->number;
	g->number = was;
	g->left = !g->left;
}

int ns_enter(struct cell *cell, struct generation *g, struct err *e)
{
	struct ns_cell *c = ns_cell(cell);
	int fds[2], r;

	if (!g->left)
		swap(c, g);
	fds[0] = fcntl(c->mount_ns, F_DUPFD_CLOEXEC, 3);
	fds[1] = fcntl(c->root_fd, F_DUPFD_CLOEXEC, 3);
	r = fds[0] < 0 || fds[1] < 0 ? -errno : c->events->order(c->events->w, MSG_ENTER, fds, 2);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	return r < 0 ? err_sys(e, -r, "tell init to enter") : 0;
}

void ns_stay(struct cell *cell, struct generation *g)
{
	if (g->left)
		swap(ns_cell(cell), g);
}

int ns_keep_fds(const struct cell *cell, const struct generation *left, int *fds, int most)
{
	const struct ns_cell *c = ns_cell(cell);
	int n = 0;

	if (most < CELL_MOUNTS + 4)
		return -ENOBUFS;
	fds[n++] = c->keep.outer_ns;
	fds[n++] = c->keep.mount_ns;
	/* The last process to close these waits until everything mounted there is detached. */
	fds[n++] = left->mount_ns;
	fds[n++] = left->base_ns;
	for (int i = 0; i < CELL_MOUNTS; i++)
		fds[n++] = left->mount_fd[i];
	return n;
}

int ns_as_owner(struct cell *cell)
{
	const struct ns_cell *c = ns_cell(cell);

	return c->keep.outer_ns >= 0 && setns(c->keep.outer_ns, CLONE_NEWUSER) < 0 ? -errno : 0;
}

int ns_terminal(struct cell *cell, int *ret_master, int *ret_slave)
{
	auto_close int master = openat(ns_cell(cell)->devpts_fd, "ptmx",
				       O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	int unlock = 0, slave;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	*ret_slave = slave;
	*ret_master = TAKE_FD(master);
	return 0;
}
