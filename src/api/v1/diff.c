/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox changed: as a list, or as a patch for git apply. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "api/v1/work.h"
#include "base/io.h"
#include "ops/diff.h"
#include "ops/json.h"

enum { CHANGE_MOST = 64 * 1024, BATCH = 256 * 1024 };

/* Changes go to a file, because there may be millions. */
struct writing {
	int fd;
	struct buf b;
	bool some;
	int err;
};

static int flush(struct writing *w)
{
	if (!w->err)
		w->err = io_write_all(w->fd, w->b.data, w->b.len);
	buf_clear(&w->b);
	return w->err;
}

static int put_change(void *ctx, const struct diff_change *c)
{
	struct writing *w = ctx;
	struct json j;

	if (w->some)
		w->err = buf_add_c(&w->b, ",");
	w->some = true;
	json_init(&j, &w->b);
	json_diff_change(&j, c);
	if (!w->err)
		w->err = json_done(&j);
	return w->err || (w->b.len > BATCH && flush(w) < 0);
}

/* A sandbox or snapshot that the client may see, by its id. */
static int find_side(struct job_run *r, const struct v1_ask *a, const char *key, char ret[ID_SIZE],
		     const char **ret_ref, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	const char *ref = v1_text(a->in.query, key);

	if (!ref)
		return 0;
	*ret_ref = ret;
	if (v1_find_sandbox(r, a, ref, &row, e) == 0) {
		(void)str_copy(ret, ID_SIZE, str_of(row.id));
		return 0;
	}
	if (e->kind != ERR_NOT_FOUND)
		return -1;
	*e = (struct err){ 0 };
	return v1_find_snapshot(r, a, ref, ret, e) < 0 ? err_field(e, "%s", key) : 0;
}

static int reply_patch(struct job_run *r, struct diff_spec *spec, int *fd, struct err *e)
{
	struct diff_result res;
	int copy = fcntl(*fd, F_DUPFD_CLOEXEC, 0), k;

	spec->patch = copy >= 0 ? fdopen(copy, "w") : NULL;
	if (!spec->patch) {
		if (copy >= 0)
			(void)close(copy);
		return err_sys(e, errno, "write the patch");
	}
	k = op_diff(r->cay, spec, &res, e);
	if (fclose(spec->patch) != 0 && k == 0)
		k = err_sys(e, errno, "write the patch");
	if (k < 0)
		return -1;
	/* git apply accepts a patch that lacks these files, so the gap must be an error here. */
	if (res.totals.host_changed) {
		(void)err_set(e, ERR_CONFLICT,
			      "%llu changed files are not in the patch, such as '%.200s': the host "
			      "changed them since, and what the sandbox started from was not kept",
			      (unsigned long long)res.totals.host_changed, res.host_changed_first);
		return err_code(e, "diff.host_changed", NULL);
	}
	return v1_reply_file(r, 200, "text/x-patch", fd, e);
}

static int reply_list(struct job_run *r, struct diff_spec *spec, int *fd, struct err *e)
{
	struct writing w = { .fd = *fd, .b = BUF_INIT(BATCH + CHANGE_MOST) };
	struct diff_result res;
	int k;

	spec->fn = put_change;
	spec->ctx = &w;
	k = buf_add_c(&w.b, "{\"items\":[") < 0 ? err_sys(e, ENOMEM, "write the changes")
						: op_diff(r->cay, spec, &res, e);
	spec->ctx = NULL;
	if (k == 0 && w.err == 0)
		w.err = buf_printf(&w.b,
				   "],\"next\":null,\"totals\":{\"files\":%llu,"
				   "\"added_lines\":%llu,\"removed_lines\":%llu}}",
				   (unsigned long long)res.changes,
				   (unsigned long long)res.totals.added,
				   (unsigned long long)res.totals.removed);
	if (k == 0 && (w.err || flush(&w) < 0))
		k = err_sys(e, -w.err, "write the changes");
	buf_done(&w.b);
	return k < 0 ? -1 : v1_reply_file(r, 200, "application/json", fd, e);
}

int v1_job_diff(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	auto_free const char **paths = NULL;
	auto_close int fd = FD_NONE;
	char from[ID_SIZE], to[ID_SIZE];
	struct diff_spec spec = { 0 };
	const char *format;

	if (v1_about(r, &a, e) < 0 || find_side(r, &a, "from", from, &spec.from, e) < 0 ||
	    find_side(r, &a, "to", to, &spec.to, e) < 0 ||
	    v1_texts(a.in.query, "path", &paths, &spec.npaths, e) < 0 || v1_tmp(r, &fd, e) < 0)
		return -1;
	if (spec.from && spec.to) {
		(void)err_set(e, ERR_INVALID, "from and to are both given");
		return err_field(e, "to");
	}
	format = v1_text(a.in.query, "format");
	spec.sandbox = a.row.id;
	spec.paths = paths;
	spec.call = v1_text(a.in.query, "call");
	spec.no_renames = v1_is(a.in.query, "no_renames");
	spec.count = format && strcmp(format, "stat") == 0;
	if (format && strcmp(format, "patch") == 0)
		return reply_patch(r, &spec, &fd, e);
	return reply_list(r, &spec, &fd, e);
}
