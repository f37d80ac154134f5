/* SPDX-License-Identifier: Apache-2.0 */
/* The warden as a whole: create, fail, free. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "warden/call/call.h"
#include "warden/net/dial.h"
#include "warden/record.h"
#include "warden/warden.h"

void warden_fail(struct warden *w, const char *what, int err)
{
	/* Clients that still wait get an error: their command did not end by itself. */
	if (w->refusal.kind == ERR_NONE) {
		(void)err_sys(&w->refusal, err, "the sandbox ends: %s", what);
		if (err == ENOSPC)
			(void)err_hint(&w->refusal,
				       "the file system of the state directory is full");
	}
	if (w->state == SANDBOX_ENDING || w->state == SANDBOX_GONE)
		return;
	(void)snprintf(w->failure, sizeof w->failure, "%s: %s", what, strerror(err));
	warden_end(w, END_FAILED, w->failure);
}

void warden_trace_asker(struct warden *w)
{
	struct who who;

	if (!w->asking)
		return;
	who_set(&who, w->asking->pid, w->asking->uid);
	who_trace(&w->trace, &who);
}

int warden_trace_end(struct warden *w)
{
	int r = trace_end(&w->trace);

	if (r == 0)
		r = trace_flush(&w->trace);
	if (r < 0)
		warden_fail(w, "write the trace", -r);
	return r;
}

/* Write the events of this turn before sleeping, so that a follower sees them at once. */
static void on_turned(struct loop *l)
{
	struct warden *w = container_of(l, struct warden, loop);
	int r = w->trace.batch.len ? trace_flush(&w->trace) : 0;

	if (r < 0)
		warden_fail(w, "write the trace", -r);
}

static void on_idle(struct loop *l)
{
	walk_idle(container_of(l, struct warden, loop));
}

struct warden *warden_new(const struct driver *driver)
{
	struct warden *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->driver = driver;
	w->exec = execve;
	w->lock_fd = w->listen_fd = w->dir_fd = w->disk_fd = w->layers_fd = FD_NONE;
	w->roots = (struct layer_roots){ FD_NONE, FD_NONE };
	w->ready_fd = w->spare_group = FD_NONE;
	w->trace.fd = w->loop.epfd = FD_NONE;
	for (int i = 0; i < CELL_MOUNTS; i++)
		w->uppers[i] = w->lowers[i] = FD_NONE;
	w->started_ns = clock_mono_ns();
	return w;
}

int warden_open(struct warden *w)
{
	int r = loop_init(&w->loop);

	w->loop.turned = on_turned;
	w->loop.idle = on_idle;
	return r;
}

static void close_files(struct warden *w)
{
	int *const fds[] = { &w->listen_fd, &w->roots.state_fd, &w->roots.storage_fd, &w->layers_fd,
			     &w->ready_fd,  &w->spare_group,	&w->lock_fd };

	if (w->disk_fd != w->dir_fd)
		fd_close(&w->disk_fd);
	fd_close(&w->dir_fd);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fd_close(fds[i]);
	layers_close(w);
}

void warden_free(struct warden *w)
{
	if (!w)
		return;
	while (w->clients)
		client_free(w->clients);
	dial_forget(w, NULL);
	records_free(w);
	loop_del(&w->loop, &w->listen_io);
	walk_close(w);
	if (w->watch)
		watch_free(w->watch);
	trace_done(&w->trace);
	close_files(w);
	warden_free_spec(w);
	loop_done(&w->loop);
	free(w);
}
