/* SPDX-License-Identifier: Apache-2.0 */
#include "store/end_note.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "store/trace_files.h"
#include "wire/json_write.h"

enum { NOTE_MAX = 16 * 1024, LOG_TAIL = 2048 };

/* True if its trace was last written before this system started. */
static bool is_older_than_boot(const struct state *s, const char *id)
{
	auto_close int fd = FD_NONE;
	struct timespec up = { 0 };
	struct stat st;
	uint64_t start, written_ns, up_ns;

	fd = trace_file_last(s->fd, id, &start);
	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	up_ns = (uint64_t)up.tv_sec * NS_PER_S + (uint64_t)up.tv_nsec;
	written_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	return written_ns + up_ns < clock_real_ns();
}

/* The last line of the warden's stderr log. */
static struct str last_line(int dir, char text[LOG_TAIL])
{
	auto_close int fd =
		openat(dir, "warden.log", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	ssize_t n = end < 0 ? 0 : pread(fd, text, LOG_TAIL, end > LOG_TAIL ? end - LOG_TAIL : 0);
	const char *nl;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	nl = n > 0 ? memrchr(text, '\n', (size_t)n) : NULL;
	return nl ? (struct str){ nl + 1, (size_t)(text + n - nl - 1) }
		  : (struct str){ text, n > 0 ? (size_t)n : 0 };
}

static int put_note(const struct state *s, const char *id, int dir, struct buf *out)
{
	char time[CLOCK_TEXT_SIZE], text[LOG_TAIL];
	struct str log = last_line(dir, text);
	struct json j;

	clock_text(clock_real_ns(), time);
	json_init(&j, out);
	json_obj(&j);
	json_put_c(&j, "time", time);
	json_put_c(&j, "cause", "lost");
	json_put_c(&j, "reason",
		   is_older_than_boot(s, id) ? "the machine was restarted" : "its warden died");
	if (log.n)
		json_put_str(&j, "log", log);
	json_end(&j);
	return json_done(&j);
}

void end_note_write(const struct state *s, const char *id)
{
	auto_done(buf_done) struct buf note = BUF_INIT(NOTE_MAX);
	auto_close int dir = FD_NONE, trace = FD_NONE;
	struct err ignored = { 0 };
	uint64_t start;

	/* A sandbox that never started, such as a ready one of a pool, has no trace and no end. */
	trace = trace_file_last(s->fd, id, &start);
	if (trace < 0 || state_sandbox_open(s, id, &dir, &ignored) < 0 ||
	    faccessat(dir, END_NOTE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	if (put_note(s, id, dir, &note) == 0)
		(void)io_replace_file(dir, END_NOTE ".new", END_NOTE, buf_str(&note));
}

json_t *end_note_make(const struct state *s, const char *id)
{
	auto_done(buf_done) struct buf note = BUF_INIT(NOTE_MAX);
	auto_close int dir = FD_NONE;
	struct err ignored = { 0 };

	if (state_sandbox_open(s, id, &dir, &ignored) < 0 || put_note(s, id, dir, &note) < 0)
		return NULL;
	return json_loadb(note.data, note.len, 0, NULL);
}

json_t *end_note_read(const struct state *s, const char *id)
{
	auto_done(buf_done) struct buf text = BUF_INIT(NOTE_MAX);
	char path[sizeof "sandboxes//" END_NOTE + ID_SIZE];
	int r;

	if (!state_id_ok(id))
		return NULL;
	(void)snprintf(path, sizeof path, "sandboxes/%s/" END_NOTE, id);
	r = io_read_file(s->fd, path, &text);
	if (r == -ENOENT) {
		(void)snprintf(path, sizeof path, "ended/%s." END_NOTE, id);
		r = io_read_file(s->fd, path, &text);
	}
	return r < 0 ? NULL : json_loadb(text.data ? text.data : "", text.len, 0, NULL);
}
