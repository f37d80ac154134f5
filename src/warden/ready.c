/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/io.h"
#include "sys/files/prefetch.h"
#include "warden/features.h"
#include "warden/net/net.h"

enum { LOOK_S = 30 };

static void look_again(struct loop_timer *t);

static void look_later(struct warden *w)
{
	loop_timer_set(&w->loop, &w->ready_timer, LOOK_S * NS_PER_S, look_again);
}

/* An unlisted sandbox can be neither claimed nor found by a cleanup: end it. */
static void look_again(struct loop_timer *t)
{
	struct warden *w = container_of(t, struct warden, ready_timer);

	if (faccessat(w->ready_fd, w->spec.id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		warden_end(w, END_UNCLAIMED, "it is not listed as ready any more");
	else
		look_later(w);
}

/* The owner is not known yet, but the files that its commands will use are: prefetch them. */
static void look_up(const struct warden *w)
{
	static const char *const names[] = {
		"usr/bin/sh",	     "usr/bin/env",
		"usr/bin/bash",	     "usr/bin/true",
		"usr/bin/python3",   "bin/sh",
		"usr/sbin",	     "usr/local/bin",
		"usr/local/sbin",    "usr/lib/x86_64-linux-gnu/libc.so.6",
		"etc/nsswitch.conf", "tmp",
		"home/user",	     "dev/null"
	};

	prefetch_usual(warden_root(w));
	prefetch(warden_root(w), names, ARRAY_LEN(names));
}

int ready_open(struct warden *w, struct err *e)
{
	auto_close int entry = FD_NONE;

	w->ready_fd = open(w->ready_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w->ready_fd < 0)
		return err_sys(e, errno, "open '%s'", w->ready_dir);
	look_up(w);
	entry = openat(w->ready_fd, w->spec.id, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (entry < 0)
		return err_sys(e, errno, "list it in '%s'", w->ready_dir);
	w->state = SANDBOX_READY;
	look_later(w);
	return 0;
}

void ready_close(struct warden *w)
{
	if (w->ready_fd < 0)
		return;
	loop_timer_stop(&w->loop, &w->ready_timer);
	(void)unlinkat(w->ready_fd, w->spec.id, 0);
	failpoint("ready.unlisted");
	fd_close(&w->ready_fd);
}

/* One byte per claim; the file's size is the number of claims. */
static void count_claim(const struct warden *w)
{
	auto_close int fd = openat(w->ready_fd, ".claims",
				   O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)io_write_all(fd, ".", 1);
}

static int check_kind(const struct warden *w, struct str body, struct err *e)
{
	const char *slash = strrchr(w->ready_dir, '/');
	struct field f;

	while (field_next(&body, &f) > 0)
		if (f.tag == TAG_READY_DIR && slash && str_is(f.value, slash + 1))
			return 0;
	return err_set(e, ERR_CONFLICT, "the sandbox is of another kind");
}

static int take(struct warden *w, struct str body, struct err *e)
{
	struct field f;
	int r;

	while ((r = field_next(&body, &f)) > 0)
		if (f.tag != TAG_READY_DIR && build_take_late(w, f, e) < 0)
			return -1;
	return r < 0 ? err_set(e, ERR_INVALID, "bad claim: malformed fields") : 0;
}

/* Record the new times as the state of unchanged uppers. */
static int look_at_uppers(struct warden *w, struct err *e)
{
	for (int i = 0; i < w->spec.nmounts; i++)
		if (w->uppers[i] >= 0 && fstat(w->uppers[i], &w->fresh[i]) < 0)
			return err_sys(e, errno, "look at the layers");
	return 0;
}

static int begin(struct warden *w, struct str body, struct err *e)
{
	const char *made_as = w->spec.hostname;

	if (take(w, body, e) < 0)
		return -1;
	if (w->driver->claim(w->cell, &w->spec, strcmp(made_as, w->spec.hostname) != 0, e) < 0 ||
	    look_at_uppers(w, e) < 0 || walk_open(w, e) < 0 || build_trace(w, body, e) < 0)
		return -1;
	return net_claim(w, e) < 0 ? -1 : build_begin(w, e);
}

int ready_claim(struct warden *w, struct str body, struct err *e)
{
	if (check_kind(w, body, e) < 0)
		return -1;
	w->started_ns = clock_mono_ns();
	count_claim(w);
	ready_close(w);
	if (begin(w, body, e) == 0)
		return 0;
	warden_end(w, END_UNCLAIMED, "it could not be given to its owner");
	return -1;
}
