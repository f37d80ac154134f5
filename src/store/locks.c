/* SPDX-License-Identifier: Apache-2.0 */
#include "store/locks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "wire/frame.h"

/* One frame of these types; its length shows whether it is complete. */
enum record_type { HIDDEN = 1, SHOWN = 2 };
enum { TYPE_AT = 4 }; /* in the frame's header */
enum record_field { R_ID = 1, R_CREATED_NS, R_TEMPLATE, R_SLOT, R_PID, R_OPTIONS };

int lock_record_put(struct buf *b, const struct sandbox_row *row)
{
	size_t at = 0;
	int r = frame_begin(b, HIDDEN, 0, &at);

	if (r == 0)
		r = field_put_c(b, R_ID, row->id);
	if (r == 0)
		r = field_put_u64(b, R_CREATED_NS, row->created_ns);
	if (r == 0)
		r = field_put_c(b, R_TEMPLATE, row->template_);
	if (r == 0 && row->uid_slot >= 0)
		r = field_put_u64(b, R_SLOT, (uint64_t)row->uid_slot);
	if (r == 0)
		r = field_put_u64(b, R_PID, (uint64_t)getpid());
	if (r == 0 && row->spec)
		r = field_put_c(b, R_OPTIONS, row->spec);
	return r < 0 ? r : frame_end(b, at, 0);
}

static void lock_path(char out[sizeof "locks/" + ID_SIZE], const char *id)
{
	(void)snprintf(out, sizeof "locks/" + ID_SIZE, "locks/%s", id);
}

int lock_record_write(const struct state *s, const char *id, struct str record, int *ret_fd,
		      struct err *e)
{
	char path[sizeof "locks/" + ID_SIZE];
	auto_close int fd = FD_NONE;
	int r;

	lock_path(path, id);
	fd = openat(s->fd, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : io_write_all(fd, record.p, record.n);
	if (r < 0)
		return err_sys(e, -r, "write %s/%s", s->dir, path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* If this fails, a list lacks the sandbox, or shows it a few milliseconds too long. */
void lock_record_show(int fd, bool shown)
{
	const uint8_t type = shown ? SHOWN : HIDDEN;

	if (pwrite(fd, &type, 1, TYPE_AT) != 1)
		return;
}

static bool take_field(struct sandbox_row *row, struct field f)
{
	uint64_t v = 0;

	switch (f.tag) {
	case R_ID:
		return str_copy(row->id, sizeof row->id, f.value);
	case R_CREATED_NS:
		return field_u64(f, &row->created_ns) == 0;
	case R_TEMPLATE:
		return str_copy(row->template_, sizeof row->template_, f.value);
	case R_SLOT:
		if (field_u64(f, &v) < 0 || v >= UID_SLOTS)
			return false;
		row->uid_slot = (int)v;
		return true;
	case R_OPTIONS:
		if (row->spec)
			return false;
		row->spec = strndup(f.value.p, f.value.n);
		return row->spec != NULL;
	default:
		return true;
	}
}

static bool parse_record(struct str text, const char *id, struct sandbox_row *row)
{
	struct frame f;
	struct field field;
	struct str body;
	int r;

	if (frame_parse(text, &f) <= 0 || f.type != SHOWN)
		return false;
	body = f.body;
	while ((r = field_next(&body, &field)) > 0)
		if (!take_field(row, field))
			return false;
	return r == 0 && strcmp(row->id, id) == 0 && row->created_ns;
}

/* 1: held. 0: dead. -errno: there is no such file. *ret_size is its size. */
static int open_lock(int state_fd, const char *id, int *ret_fd, size_t *ret_size)
{
	char path[sizeof "locks/" + ID_SIZE];
	auto_close int fd = FD_NONE;
	struct stat st;
	int held;

	if (!state_id_ok(id))
		return -EINVAL;
	lock_path(path, id);
	fd = openat(state_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	*ret_size = (size_t)st.st_size;
	*ret_fd = TAKE_FD(fd);
	return held;
}

int lock_record_read(int state_fd, const char *id, struct sandbox_row *ret)
{
	struct sandbox_row row = { .uid_slot = -1, .ephemeral = true, .unlisted = true };
	auto_close int fd = FD_NONE;
	auto_free char *text = NULL;
	size_t size = 0;

	if (open_lock(state_fd, id, &fd, &size) <= 0 || size == 0 || size > LOCK_RECORD_MAX)
		return 0;
	text = malloc(size);
	if (!text)
		return -ENOMEM;
	if (pread(fd, text, size, 0) != (ssize_t)size ||
	    !parse_record((struct str){ text, size }, id, &row)) {
		sandbox_row_done(&row);
		return 0;
	}
	(void)snprintf(row.state, sizeof row.state, "running");
	*ret = row;
	return 1;
}

int state_list_ids(int state_fd, const char *dir, char (**ret)[ID_SIZE], size_t *ret_n)
{
	int fd = openat(state_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0, room = 0;
	int r = d ? 0 : -errno;

	if (!d)
		fd_close(&fd);
	for (struct dirent *x = d ? readdir(d) : NULL; x && r == 0; x = readdir(d)) {
		if (!state_id_ok(x->d_name))
			continue;
		if (n == room) {
			void *more = reallocarray(*ret, room + 64, 2 * sizeof **ret);

			if (!more) {
				r = -ENOMEM;
				break;
			}
			*ret = more;
			room = (room + 64) * 2;
		}
		(void)str_copy((*ret)[n++], ID_SIZE, str_of(x->d_name));
	}
	if (d)
		(void)closedir(d);
	*ret_n = n;
	return r;
}

/* True if a comes before b, counted from `after` on. */
static bool is_sooner(const char *a, const char *b, const char *after)
{
	bool a_late = strcmp(a, after) <= 0, b_late = strcmp(b, after) <= 0;

	return a_late != b_late ? b_late : strcmp(a, b) < 0;
}

/* Insert id into the n sorted ids, of which at most `most` stay. Returns the new n. */
static int keep_next(char (*ids)[ID_SIZE], int n, int most, const char *id, const char *after)
{
	int at = n;

	while (at > 0 && is_sooner(id, ids[at - 1], after))
		at--;
	if (at == most)
		return n;
	n = n < most ? n + 1 : n;
	memmove(ids[at + 1], ids[at], (size_t)(n - at - 1) * sizeof *ids);
	(void)str_copy(ids[at], ID_SIZE, str_of(id));
	return n;
}

int lock_records_dead(const struct state *s, const char *after, char (*ids)[ID_SIZE], int most)
{
	auto_free char(*names)[ID_SIZE] = NULL;
	size_t n = 0;
	int next = 0, dead = 0;

	if (state_list_ids(s->fd, "locks", &names, &n) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], after) != 0)
			next = keep_next(ids, next, most, names[i], after);
	for (int i = 0; i < next; i++) {
		auto_close int fd = FD_NONE;
		size_t size = 0;

		if (open_lock(s->fd, ids[i], &fd, &size) == 0 && size > 0)
			memmove(ids[dead++], ids[i], sizeof *ids);
	}
	return dead;
}
