/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/watch/watch_rename.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "sys/filter/listener.h"
#include "sys/process/raw.h"
#include "warden/watch/watch_exec.h"

enum { ORDERS_MOST = 256, PATIENCE_S = 60 };

struct rename_order {
	struct rename_order *next;
	struct watch_call *call; /* NULL: no thread waits any more */
	uint64_t id;		 /* id of the notification */
	struct watch_rename what;
};

/* Arguments of the system call. */
struct rename_req {
	int tid, dirfd[2];
	uint64_t path[2]; /* addresses in the task */
	unsigned flags;
};

bool rename_is(const struct seccomp_notif *n)
{
#ifdef SYS_rename
	if (n->data.nr == SYS_rename)
		return true;
#endif
	return n->data.nr == SYS_renameat || n->data.nr == SYS_renameat2;
}

static void rename_req_of(const struct seccomp_notif *n, struct rename_req *q)
{
	const uint64_t *a = (const uint64_t *)n->data.args;

	*q = (struct rename_req){ .tid = (int)n->pid,
				  .dirfd = { (int)a[0], (int)a[2] },
				  .path = { a[1], a[3] } };
	if (n->data.nr == SYS_renameat2)
		q->flags = (unsigned)a[4];
	else if (n->data.nr != SYS_renameat)
		*q = (struct rename_req){ .tid = (int)n->pid,
					  .dirfd = { AT_FDCWD, AT_FDCWD },
					  .path = { a[0], a[1] } };
}

static int read_paths(const struct rename_req *q, struct watch_rename *r)
{
	struct exec_mem mem __attribute__((uninitialized));
	struct exec_req at = { .tid = q->tid, .path = q->path[0], .argv = q->path[1] };
	int err;

	exec_mem_init(&mem, &at);
	err = exec_read_path(&mem, &at, r->path[0]);
	if (err < 0)
		return err;
	at.path = q->path[1];
	return exec_read_path(&mem, &at, r->path[1]);
}

static bool is_overlay_dir(int fd)
{
	struct statfs fs;
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && fstatfs(fd, &fs) == 0 &&
	       fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* Most renamed directories were made in this generation: init need not check them. */
static bool is_known_pure(const struct watch *w, int fd)
{
	char path[LIMIT_PATH];
	struct stat st;

	return w->rename_ops.is_pure && fstat(fd, &st) == 0 &&
	       exec_name(fd, str_of(w->prefix), path) == 0 &&
	       w->rename_ops.is_pure(w->rename_ops.ctx, path, st.st_ino);
}

/* Only a directory of an overlay can fail with EXDEV, and only if nothing else is wrong. */
static bool needs_order(struct watch *w, const struct rename_req *q, const struct watch_rename *r)
{
	bool exchange = q->flags & RAW_RENAME_EXCHANGE;
	auto_close int from = FD_NONE, to = FD_NONE;
	struct stat st;

	from = exec_open(w->root_fd, str_of(w->prefix), q->tid, q->dirfd[0], r->path[0]);
	if (from < 0 || (!exchange && (!is_overlay_dir(from) || is_known_pure(w, from))))
		return false;
	to = exec_open(w->root_fd, str_of(w->prefix), q->tid, q->dirfd[1], r->path[1]);
	if (exchange)
		return to >= 0 && (is_overlay_dir(from) || is_overlay_dir(to));
	if (to < 0)
		return true;
	return !(q->flags & RAW_RENAME_NOREPLACE) && fstat(to, &st) == 0 && S_ISDIR(st.st_mode);
}

static void go_on(struct watch *w, struct rename_order *o)
{
	if (o->call)
		(void)listener_continue(o->call->listener, &w->bufs, o->id);
	free(o);
}

static struct rename_order *take_first(struct watch *w)
{
	struct rename_order *o = w->renames;

	w->renames = o->next;
	w->nrenames--;
	return o;
}

/* Init does not answer: no rename waits for init again until it answers. */
static void on_patience(struct loop_timer *t)
{
	struct watch *w = container_of(t, struct watch, rename_timer);

	w->rename_stuck = true;
	while (w->renames)
		go_on(w, take_first(w));
}

/* Send init the first order in the list whose thread still waits. */
static void order_next(struct watch *w)
{
	while (w->renames && !w->rename_busy) {
		const struct rename_order *o = w->renames;

		if (o->call && listener_is_valid(o->call->listener, o->id) &&
		    w->rename_ops.prepare(w->rename_ops.ctx, &o->what) == 0) {
			w->rename_busy = true;
			w->rename_orders++;
			loop_timer_set(w->loop, &w->rename_timer, PATIENCE_S * NS_PER_S,
				       on_patience);
			return;
		}
		go_on(w, take_first(w));
	}
}

static bool may_order(const struct watch *w)
{
	return w->rename_ops.prepare && !w->rename_stuck && w->nrenames < ORDERS_MOST;
}

/* Without execs to learn from, init shows which pid namespace is the sandbox's. */
static int tid_inside(struct watch *w, int tid)
{
	if (!w->view.depth && w->rename_ops.init_pid > 0) {
		int pid;
		auto_close int pidfd = proc_open(w->rename_ops.init_pid, &pid);

		proc_view_learn(&w->view, pidfd);
	}
	return proc_inside(&w->view, tid);
}

/* False if the rename needs no order, or cannot be helped. */
static bool rename_enqueue(struct watch_call *c, const struct rename_req *q)
{
	struct watch *w = c->watch;
	struct rename_order **end = &w->renames;
	auto_free struct rename_order *o = NULL;

	if (!may_order(w))
		return false;
	o = malloc(sizeof *o);
	if (!o || read_paths(q, &o->what) < 0 || !needs_order(w, q, &o->what))
		return false;
	o->next = NULL;
	o->call = c;
	o->id = w->bufs.notif->id;
	o->what.tid = tid_inside(w, q->tid);
	o->what.flags = q->flags;
	memcpy(o->what.dirfd, q->dirfd, sizeof o->what.dirfd);
	if (o->what.tid <= 0)
		return false;
	while (*end)
		end = &(*end)->next;
	*end = TAKE_PTR(o);
	w->nrenames++;
	order_next(w);
	return true;
}

void rename_begin(struct watch_call *c)
{
	struct watch *w = c->watch;
	uint64_t id = w->bufs.notif->id;
	struct rename_req q;

	rename_req_of(w->bufs.notif, &q);
	if (!rename_enqueue(c, &q))
		(void)listener_continue(c->listener, &w->bufs, id);
}

void watch_renames(struct watch *w, const struct watch_rename_ops *ops)
{
	w->rename_ops = *ops;
}

/*
 * For a target that is not empty the kernel would return EXDEV, and programs would then copy into
 * it. An error gives a sandbox nothing, so trusting init is safe here.
 */
static void answer(struct watch *w, struct rename_order *o, int err)
{
	if (err == ENOTEMPTY && o->call) {
		(void)listener_refuse(o->call->listener, &w->bufs, o->id, ENOTEMPTY);
		o->call = NULL;
	}
	go_on(w, o);
}

void watch_prepared(struct watch *w, int err)
{
	if (!w->rename_busy)
		return;
	loop_timer_stop(w->loop, &w->rename_timer);
	w->rename_busy = false;
	if (w->renames && !w->rename_stuck)
		answer(w, take_first(w), err);
	w->rename_stuck = false;
	order_next(w);
}

uint64_t watch_rename_orders(const struct watch *w)
{
	return w->rename_orders;
}

bool watch_is_renaming(const struct watch *w)
{
	return w->rename_busy && !w->rename_stuck;
}

void rename_forget(struct watch_call *c)
{
	for (struct rename_order *o = c->watch->renames; o; o = o->next)
		if (o->call == c)
			o->call = NULL;
}

void rename_done(struct watch *w)
{
	loop_timer_stop(w->loop, &w->rename_timer);
	while (w->renames)
		free(take_first(w));
}
