/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/frame.h"
#include "wire/json_write.h"

/* A line fits into a pipe that poll(2) calls writable (PIPE_BUF). */
enum { LINE_MOST = 1024 };

/* ---- records ---- */

struct text_field {
	size_t at, size;
};
#define TEXT_FIELD(name) \
	{ \
		offsetof(struct access_record, name), sizeof((struct access_record *)0)->name \
	}
/* The tag of a field is its place here, from 1 on; numbers follow texts. */
static const struct text_field texts[] = { TEXT_FIELD(request), TEXT_FIELD(method),
					   TEXT_FIELD(route),	TEXT_FIELD(key),
					   TEXT_FIELD(sandbox), TEXT_FIELD(address) };
static const size_t numbers[] = { offsetof(struct access_record, status),
				  offsetof(struct access_record, us),
				  offsetof(struct access_record, bytes_in),
				  offsetof(struct access_record, bytes_out),
				  offsetof(struct access_record, dropped) };

int access_record_put(struct buf *out, const struct access_record *r)
{
	uint16_t tag = 1;
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(texts) && err == 0; i++)
		err = field_put_c(out, tag++, (const char *)r + texts[i].at);
	for (size_t i = 0; i < ARRAY_LEN(numbers) && err == 0; i++) {
		uint64_t n;

		memcpy(&n, (const char *)r + numbers[i], sizeof n);
		err = field_put_u64(out, tag++, n);
	}
	return err;
}

static bool is_printable(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < ' ' || s.p[i] > '~')
			return false;
	return true;
}

int access_record_read(struct str body, struct access_record *ret)
{
	struct access_record r = { 0 };
	struct field f;
	int more;

	while ((more = field_next(&body, &f)) == 1) {
		size_t i = (size_t)f.tag - 1, n = i - ARRAY_LEN(texts);
		uint64_t number;

		if (i < ARRAY_LEN(texts)) {
			if (!is_printable(f.value) ||
			    !str_copy((char *)&r + texts[i].at, texts[i].size, f.value))
				return -EBADMSG;
		} else if (n >= ARRAY_LEN(numbers) || field_u64(f, &number) < 0) {
			return -EBADMSG;
		} else {
			memcpy((char *)&r + numbers[n], &number, sizeof number);
		}
	}
	if (more < 0)
		return -EBADMSG;
	*ret = r;
	return 0;
}

/* ---- the file ---- */

int access_log_open(struct access_log *l, struct err *e)
{
	int fd;

	if (strcmp(l->path, "-") == 0)
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	else
		fd = open(l->path,
			  O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
	if (fd < 0)
		return err_sys(e, errno, "open the access log '%s'", l->path);
	access_log_close(l);
	l->fd = fd;
	return 0;
}

void access_log_close(struct access_log *l)
{
	fd_close(&l->fd);
	l->torn = false;
}

/* False: the line is lost. */
static bool write_line(struct access_log *l, struct buf *line)
{
	struct pollfd p = { .fd = l->fd, .events = POLLOUT };
	ssize_t n;

	if (buf_add_c(line, "\n") < 0 || poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return false;
	n = write(l->fd, line->data, line->len);
	if (n > 0 && (size_t)n < line->len)
		l->torn = true;
	return n == (ssize_t)line->len;
}

static int put_head(struct json *j, struct buf *line, struct access_log *l)
{
	char now[CLOCK_TEXT_SIZE];
	/* A torn line must not make the next one unreadable. */
	int r = l->torn ? buf_add_c(line, "\n") : 0;

	l->torn = false;
	clock_text(clock_real_ns(), now);
	json_init(j, line);
	json_obj(j);
	json_put_c(j, "time", now);
	return r;
}

static bool write_dropped(struct access_log *l)
{
	auto_done(buf_done) struct buf line = BUF_INIT(LINE_MOST);
	struct json j;

	if (put_head(&j, &line, l) < 0)
		return false;
	json_put_u64(&j, "dropped", l->dropped);
	json_end(&j);
	if (json_done(&j) < 0 || !write_line(l, &line))
		return false;
	l->dropped = 0;
	return true;
}

void access_log_write(struct access_log *l, const struct access_record *r)
{
	auto_done(buf_done) struct buf line = BUF_INIT(LINE_MOST);
	struct json j;

	if (!l->path)
		return;
	l->dropped += r->dropped;
	if ((l->dropped && !write_dropped(l)) || put_head(&j, &line, l) < 0) {
		l->dropped++;
		return;
	}
	json_put_c(&j, "request", r->request);
	json_put_c(&j, "method", r->method);
	json_put_c(&j, "route", r->route);
	json_put_u64(&j, "status", r->status);
	json_put_ms(&j, "ms", r->us);
	json_put_u64(&j, "bytes_in", r->bytes_in);
	json_put_u64(&j, "bytes_out", r->bytes_out);
	json_put_text(&j, "key", r->key);
	json_put_text(&j, "sandbox", r->sandbox);
	json_put_text(&j, "address", r->address);
	json_end(&j);
	if (json_done(&j) < 0 || !write_line(l, &line))
		l->dropped++;
}
