/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/trace_open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "link/wait.h"
#include "ops/ended.h"
#include "store/catalog.h"
#include "store/trace_files.h"
#include "wire/json_write.h"

void trace_open_done(struct trace_found *f)
{
	fd_close(&f->fd);
}

bool trace_open_is_alive(const struct trace_found *f)
{
	return state_is_alive(&f->cay->state, f->id);
}

static int open_first(struct trace_found *f, struct err *e)
{
	int fd = trace_file_find(f->cay->state.fd, f->id, 0, &f->start);

	if (fd == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, "sandbox '%s' has no trace", f->id);
	if (fd < 0)
		return err_sys(e, -fd, "cannot open the trace of '%s'", f->id);
	f->fd = fd;
	f->cut = f->start > 0;
	return 0;
}

/* The next segment is named after the offset where this one ends. */
static int next_segment(void *ctx)
{
	struct trace_found *f = ctx;
	off_t at = lseek(f->fd, 0, SEEK_CUR);
	int fd = at <= 0 ? -ENOENT
			 : trace_file_open(f->cay->state.fd, f->id, f->start + (uint64_t)at);

	if (fd < 0)
		return FD_NONE;
	fd_close(&f->fd);
	f->fd = fd;
	f->start += (uint64_t)at;
	return fd;
}

void trace_open_lines(struct trace_found *f, struct trace_lines *lines)
{
	trace_lines_init(lines, f->fd);
	lines->next = next_segment;
	lines->ctx = f;
}

/* If the warden does not answer, read what it has written so far. */
static void settle(struct trace_found *f)
{
	auto_done(link_free) struct link *l = NULL;
	struct waiter *w = &f->cay->wait;
	struct err why = { 0 };

	if (!trace_open_is_alive(f))
		return;
	if (link_connect(w, &f->cay->state, f->id, &l, &why) == 0 &&
	    link_sync_trace(l, w, &f->head.seq, f->head.hash, &why) == 0)
		f->has_head = true;
	else if (trace_open_is_alive(f))
		(void)snprintf(f->note, sizeof f->note, "the latest events may be missing: %s",
			       why.msg);
}

static int open_found(struct trace_found *f, const char *ref, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	struct err missing = { 0 };
	int r;

	if (cay_catalog(f->cay, e) < 0)
		return -1;
	if (catalog_find(f->cay->catalog, ref, &row, &missing) == 0) {
		memcpy(f->id, row.id, sizeof f->id);
		settle(f);
		return open_first(f, e);
	}
	r = missing.kind == ERR_NOT_FOUND ? ended_find(f->cay, ref, f->id, e) : 0;
	if (r > 0)
		return open_first(f, e);
	if (r == 0)
		*e = missing;
	return -1;
}

int op_trace_open(struct cay *c, const char *ref, struct trace_found *ret, struct err *e)
{
	struct trace_found f = { .cay = c, .fd = FD_NONE };

	if (ref[0] == '\0')
		return err_set(e, ERR_INVALID, "the name of the sandbox is empty");
	if (open_found(&f, ref, e) < 0) {
		trace_open_done(&f);
		return -1;
	}
	*ret = f;
	return 0;
}

void json_trace_verified(struct json *j, const struct trace_found *f,
			 const struct trace_summary *sum)
{
	json_obj(j);
	json_put_bool(j, "ok", true);
	json_put_c(j, "sandbox", f->id);
	json_put_u64(j, "events", sum->head.seq);
	json_put_c(j, "head", sum->head.hash);
	json_put_bool(j, "head_checked", f->has_head);
	json_put_u64(j, "dropped", sum->dropped);
	json_end(j);
}
