/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/trace_open.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "link/wait.h"
#include "store/catalog.h"

#define ENDED_SUFFIX ".jsonl"

static void close_dir(DIR *d)
{
	(void)closedir(d);
}
DEFINE_AUTO_PTR(DIR, close_dir)

void trace_open_done(struct trace_found *f)
{
	fd_close(&f->fd);
}

bool trace_open_is_alive(const struct trace_found *f)
{
	return state_is_alive(&f->cay->state, f->id);
}

/* ID.jsonl whose id begins with ref: 1 and the id. */
static int ended_matches(const char *name, struct str ref, char id[ID_SIZE])
{
	size_t n = strlen(name), suffix = sizeof ENDED_SUFFIX - 1;
	struct str stem = { name, n > suffix ? n - suffix : 0 };

	return n > suffix && strcmp(name + n - suffix, ENDED_SUFFIX) == 0 &&
	       str_starts(stem, ref) && str_copy(id, ID_SIZE, stem) && state_id_ok(id);
}

/* Among the ended ones, by id or unique prefix. 1 and f->id, 0 where there is none, -1. */
static int find_ended(struct trace_found *f, const char *ref, struct err *e)
{
	auto_close int fd = openat(f->cay->state.fd, "ended", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_done(close_dir) DIR *d = NULL;
	const struct dirent *ent;
	char id[ID_SIZE];
	int found = 0;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd >= 0)
		d = fdopendir(fd);
	if (!d)
		return err_sys(e, errno, "cannot look for ended sandboxes");
	(void)TAKE_FD(fd);
	while ((ent = readdir(d))) {
		if (!ended_matches(ent->d_name, str_of(ref), id))
			continue;
		found = strcmp(id, ref) == 0 ? -1 : found + 1;
		memcpy(f->id, id, sizeof id);
		if (found < 0)
			return 1;
	}
	if (found > 1)
		return err_set(e, ERR_INVALID, "'%s' is ambiguous: %d ended sandboxes begin so",
			       ref, found);
	return found;
}

static int open_ended(struct trace_found *f, struct err *e)
{
	char path[sizeof "ended/" + ID_SIZE + sizeof ENDED_SUFFIX];

	(void)snprintf(path, sizeof path, "ended/%s" ENDED_SUFFIX, f->id);
	f->fd = openat(f->cay->state.fd, path, O_RDONLY | O_CLOEXEC);
	if (f->fd >= 0)
		return 0;
	if (errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "sandbox '%s' has no trace", f->id);
	return err_sys(e, errno, "cannot open the trace of '%s'", f->id);
}

/* It may end at any time: what is no longer in its place is among the ended ones. */
static int open_current(struct trace_found *f, struct err *e)
{
	char path[sizeof "sandboxes/" + ID_SIZE + sizeof "/trace.jsonl"];

	(void)snprintf(path, sizeof path, "sandboxes/%s/trace.jsonl", f->id);
	f->fd = openat(f->cay->state.fd, path, O_RDONLY | O_CLOEXEC);
	if (f->fd >= 0)
		return 0;
	if (errno == ENOENT)
		return open_ended(f, e);
	return err_sys(e, errno, "cannot open the trace of '%s'", f->id);
}

/* A warden that does not answer does not keep anybody from reading what it wrote. */
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
		return open_current(f, e);
	}
	r = missing.kind == ERR_NOT_FOUND ? find_ended(f, ref, e) : 0;
	if (r > 0)
		return open_ended(f, e);
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
