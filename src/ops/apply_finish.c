/* SPDX-License-Identifier: Apache-2.0 */
/* Finishes or undoes interrupted runs of apply. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ops/apply.h"

/*
 * Handles one directory. Returns 1 if it had an interrupted run. memory belongs to sandbox id and
 * is updated if the run was that sandbox's; or NULL.
 */
static int finish_dir(const char *path, const struct state *st,
		      const struct apply_finish_spec *spec, struct apply_memory *memory,
		      const char *id, struct apply *a, struct err *e)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	apply_init(a, fd, st->fd, "");
	if (faccessat(fd, APPLY_DIR "/journal", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (apply_lock(a, e) < 0)
		return err_ctx(e, "'%s'", path);
	if (!a->has_journal)
		return 0;
	if (memory && strcmp(a->id, id) == 0) {
		a->undone = apply_memory_undone;
		a->undone_ctx = memory;
	}
	if ((spec->undo ? apply_undo(a, e) : apply_resume(a, e)) < 0)
		return err_ctx(e, "'%s'", path);
	if (spec->fn)
		spec->fn(spec->ctx, path, a->n);
	return 1;
}

static int finish_mount(const struct diff_mount *m, const char *id, const struct state *st,
			const struct apply_finish_spec *spec, struct err *e)
{
	auto_done(apply_done) struct apply a = { .stage_fd = FD_NONE };
	auto_done(apply_memory_done) struct apply_memory memory = { .dir_fd = FD_NONE };
	auto_close int sandbox_fd = FD_NONE;
	const char *path = spec->to ? spec->to : m->host;
	int r;

	if (state_sandbox_open(st, id, &sandbox_fd, e) < 0 ||
	    apply_memory_load(&memory, sandbox_fd, m->index, e) < 0)
		return -1;
	r = finish_dir(path, st, spec, spec->to ? NULL : &memory, id, &a, e);
	if (r <= 0 || spec->undo || spec->to || strcmp(a.id, id) != 0)
		return r;
	/* The sandbox remembers a finished run like any other run. */
	a.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (apply_memory_add(&memory, &a, NULL, e) < 0)
		r = -1;
	fd_close(&a.dir_fd);
	return r;
}

static int finish_all(struct cay *c, const struct apply_finish_spec *spec, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	auto_done(diff_view_done) struct diff_view view = { 0 };
	int found = 0;

	if (cay_catalog(c, e) < 0 || catalog_find(c->catalog, spec->sandbox, &row, e) < 0 ||
	    diff_view_open(c, &row, &view, e) < 0)
		return -1;
	for (int i = 0; i < view.n; i++) {
		int r = !view.mounts[i].host
				? 0
				: finish_mount(&view.mounts[i], row.id, &c->state, spec, e);

		if (r < 0)
			return -1;
		found += r;
	}
	return found;
}

int op_apply_finish(struct cay *c, const struct apply_finish_spec *spec, int *ret_found,
		    struct err *e)
{
	auto_done(apply_done) struct apply a = { .stage_fd = FD_NONE };
	int r = spec->sandbox ? finish_all(c, spec, e)
			      : finish_dir(spec->to, &c->state, spec, NULL, "", &a, e);

	if (r < 0)
		return -1;
	*ret_found = r;
	return 0;
}
