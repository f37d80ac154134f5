/* SPDX-License-Identifier: Apache-2.0 */
/* Verify a new sandbox and its first command. A difference ends the sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/io.h"
#include "sys/ns/userns.h"
#include "warden/call/command_check.h"
#include "warden/features.h"

enum { STATUS_MAX = 64 * 1024, HELLO_TIMEOUT_MS = 10000 };

/* Our own status: the inherited values never change. */
static struct buf ours = BUF_INIT(STATUS_MAX);

void guard_look_ahead(void)
{
	if (ours.len == 0 && io_read_file(AT_FDCWD, "/proc/self/status", &ours) < 0)
		buf_clear(&ours);
}

static int look(const struct warden *w, int pid, struct err *e)
{
	auto_done(buf_done) struct buf theirs = BUF_INIT(STATUS_MAX);
	uint32_t base = w->spec.uid_base, own = getuid();
	struct command_want want = {
		.profile = w->profile, .root = UINT32_MAX, .user = own, .first = own, .last = own
	};
	char path[32];
	int r;

	guard_look_ahead();
	(void)snprintf(path, sizeof path, "/proc/%d/status", pid);
	r = ours.len ? io_read_file(AT_FDCWD, path, &theirs) : -EIO;
	if (r < 0)
		return err_sys(e, -r, "look at the first command");
	if (w->rootful)
		want = (struct command_want){ .profile = w->profile,
					      .root = base,
					      .user = base + w->spec.user,
					      .first = base,
					      .last = base + USERNS_IDS - 1 };
	want.ours = buf_str(&ours);
	return command_check(&want, buf_str(&theirs), e);
}

void guard_refuse(struct warden *w, const struct err *e)
{
	if (w->refusal.kind == ERR_NONE)
		w->refusal = *e;
	(void)trace_begin(&w->trace, "sandbox.refused", 0, w->created_event);
	trace_text(&w->trace, "detail", str_of(e->msg));
	warden_trace_end(w);
	warden_end(w, END_FAILED, w->refusal.msg);
}

/* A driver without HAS_VERIFY has nothing to verify from outside. */
static int verify(struct warden *w, enum verify_stage stage, pid_t call, struct err *e)
{
	return warden_has(w, HAS_VERIFY) ? w->driver->verify(w->cell, stage, call, e) : 0;
}

int guard_look(struct warden *w, enum verify_stage stage, struct err *e)
{
	return verify(w, stage, 0, e);
}

bool guard_is_whole(const struct warden *w)
{
	return w->cell && (!(w->cell->has & HAS_VERIFY) || w->cell->verified);
}

static int no_answer(struct err *e)
{
	return err_set(e, ERR_TIMEOUT, "init does not answer");
}

/* Wait for init's hello: by then init has completed its own setup. The frame is read later. */
static int await_hello(int fd, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int r;

	do
		r = poll(&p, 1, HELLO_TIMEOUT_MS);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return no_answer(e);
	/* The end of a stream is readable too. */
	if (r < 0 || !(p.revents & POLLIN) || p.revents & POLLHUP)
		return err_set(e, ERR_FAILED, "init ended while the sandbox was being built");
	return 0;
}

int guard_whole(struct warden *w, struct err *e)
{
	if (verify(w, VERIFY_BUILT, 0, e) < 0 || await_hello(w->init.fd, e) < 0)
		return -1;
	return verify(w, VERIFY_ALL, 0, e);
}

static void give_up(struct warden *w, const struct err *e)
{
	if (w->cell->refused)
		guard_refuse(w, e);
	else
		guard_lost_init(w, e->msg);
}

bool guard_first_order(struct warden *w)
{
	struct err e = { 0 };

	if (!w->cell->verify_first || guard_is_whole(w))
		return true;
	if (verify(w, VERIFY_BUILT, 0, &e) == 0 && await_hello(w->init.fd, &e) == 0 &&
	    verify(w, VERIFY_ORDER, 0, &e) == 0)
		return true;
	give_up(w, &e);
	return false;
}

void guard_look_later(struct warden *w, enum verify_stage stage)
{
	struct err e = { 0 };

	if (w->state == SANDBOX_RUNNING && verify(w, stage, 0, &e) < 0)
		give_up(w, &e);
}

static void on_no_hello(struct loop_timer *t)
{
	struct warden *w = container_of(t, struct warden, hello_timer);
	struct err e = { 0 };

	(void)no_answer(&e);
	guard_lost_init(w, e.msg);
}

void guard_await_hello(struct warden *w)
{
	loop_timer_set(&w->loop, &w->hello_timer, HELLO_TIMEOUT_MS * NS_PER_MS, on_no_hello);
}

void guard_lost_init(struct warden *w, const char *why)
{
	if (w->state != SANDBOX_RUNNING)
		return;
	(void)err_set(&w->refusal, ERR_FAILED, "%s", why);
	warden_end(w, END_FAILED, w->refusal.msg);
}

/* Verify init for the last time, then the command that it made. */
static int look_at_all(struct warden *w, int pid, struct err *e)
{
	if (!warden_has(w, HAS_VERIFY))
		return 0;
	return verify(w, VERIFY_ALL, pid, e) < 0 ? -1 : look(w, pid, e);
}

/* Ask the kernel: a file missing during verification does not prove that the process is gone. */
static bool is_gone(int pid)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d", pid);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

bool guard_first_exec(void *ctx, int pid)
{
	struct warden *w = ctx;
	struct err e = { 0 };

	if (look_at_all(w, pid, &e) == 0) {
		w->guarded = true;
		return true;
	}
	/* Killed while it waited, so it cannot run. The next command is the first. */
	if (is_gone(pid)) {
		if (w->watch)
			watch_guard(w->watch, guard_first_exec, w);
		return true;
	}
	guard_refuse(w, &e);
	return false;
}
