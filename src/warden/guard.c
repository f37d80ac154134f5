/* SPDX-License-Identifier: Apache-2.0 */
/* The look at the first command. What is not what it must be ends the sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/io.h"
#include "sys/userns.h"
#include "warden/command_check.h"
#include "warden/warden.h"

enum { STATUS_MAX = 64 * 1024 };

/* Our own status: what is inherited from us never changes. */
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
	warden_end(w, w->refusal.msg);
}

bool guard_first_exec(void *ctx, int pid)
{
	struct warden *w = ctx;
	struct err e = { 0 };

	if (look(w, pid, &e) == 0) {
		w->guarded = true;
		return true;
	}
	/* Killed while it waited: there is nothing to be seen, and nothing that could run. */
	if (e.sys == ENOENT || e.sys == ESRCH)
		return true;
	guard_refuse(w, &e);
	return false;
}
