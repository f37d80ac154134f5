/* SPDX-License-Identifier: Apache-2.0 */
/* cay apply: a sandbox's changes below its --dir, taken over into the host's directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "cli/context.h"
#include "cli/output.h"
#include "cli/state/takeover.h"

static struct {
	const char *to;
	bool dry_run, merge, git_config, resume, undo;
} o;

static struct opt opts[] = {
	{ "to", 0, OPT_TEXT, "DIR", "Write into this directory instead of the one given with --dir",
	  &o.to },
	{ "dry-run", 0, OPT_FLAG, NULL, "Show what would be done", &o.dry_run },
	{ "merge", 0, OPT_FLAG, NULL,
	  "Merge files that changed on the host too; conflicts are marked in them, exit code 1",
	  &o.merge },
	{ "git-config", 0, OPT_FLAG, NULL,
	  "Also configuration and hooks of git, and .hg, .jj, .svn: they can run commands on the host",
	  &o.git_config },
	{ "resume", 0, OPT_FLAG, NULL, "Finish a run that was cut off, and do nothing else",
	  &o.resume },
	{ "undo", 0, OPT_FLAG, NULL, "Undo a run that was cut off", &o.undo },
	{ 0 },
};

/*
 * A run that was cut off in this directory is finished or undone. 1: there was one. memory: of
 * the sandbox id, which is told where it was that one's, or NULL.
 */
static int settle_dir(const char *path, const struct state *st, struct apply_memory *memory,
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
	if ((o.undo ? apply_undo(a, e) : apply_resume(a, e)) < 0)
		return err_ctx(e, "'%s'", path);
	fprintf(stderr, "cay: a run that was cut off in '%s' is %s: %zu changes\n", path,
		o.undo ? "undone" : "finished", a->n);
	return 1;
}

static int settle_mount(const struct diff_mount *m, const struct sandbox_row *row,
			const struct cay *s, struct err *e)
{
	auto_done(apply_done) struct apply a = { .stage_fd = FD_NONE };
	auto_done(apply_memory_done) struct apply_memory memory = { .dir_fd = FD_NONE };
	auto_close int sandbox_fd = FD_NONE;
	const char *path = o.to ? o.to : m->host;
	int r;

	if (state_sandbox_open(&s->state, row->id, &sandbox_fd, e) < 0 ||
	    apply_memory_load(&memory, sandbox_fd, m->index, e) < 0)
		return -1;
	r = settle_dir(path, &s->state, o.to ? NULL : &memory, row->id, &a, e);
	if (r <= 0 || o.undo || o.to || strcmp(a.id, row->id) != 0)
		return r;
	/* Of a run that was finished the sandbox remembers as much as of any other. */
	a.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (apply_memory_add(&memory, &a, NULL, e) < 0)
		r = -1;
	fd_close(&a.dir_fd);
	return r;
}

static int settle_all(const struct diff_view *l, const struct sandbox_row *row, const struct cay *s,
		      struct err *e)
{
	int found = 0;

	for (int i = 0; i < l->n; i++) {
		int r = l->mounts[i].host ? settle_mount(&l->mounts[i], row, s, e) : 0;

		if (r < 0)
			return -1;
		found += r;
	}
	return found;
}

static int settle_only(const char *path, struct err *e)
{
	auto_done(apply_done) struct apply a = { .stage_fd = FD_NONE };
	struct state st;
	int r;

	if (state_open(&st, e) < 0)
		return -1;
	r = settle_dir(path, &st, NULL, "", &a, e);
	state_done(&st);
	return r < 0 ? -1 : r ? 0 : err_set(e, ERR_NOT_FOUND, "nothing was cut off in '%s'", path);
}

static int plan_and_do(struct cmd_ctx *ctx, struct cay *s, const struct sandbox_row *row,
		       struct err *e)
{
	auto_done(takeover_done) struct takeover t = { 0 };
	const struct takeover_opts how = {
		.to = o.to,
		.paths = (const char *const *)ctx->args + 1,
		.npaths = ctx->nargs - 1,
		.merge = o.merge,
		.git_config = o.git_config,
	};
	size_t refused, conflicts = 0;

	if (takeover_plan(&t, s, row, &how, e) < 0)
		return -1;
	refused = takeover_refused(&t);
	if (!refused && !o.dry_run && takeover_run(&t, &conflicts, e) < 0)
		return -1;
	takeover_print(&t, ctx, refused && !o.dry_run, stdout);
	if (takeover_left_config(&t) && !ctx->json && !ctx->quiet)
		fputs("cay: what can run commands was left out; read it, then: cay apply --git-config\n",
		      stderr);
	if (!refused) {
		if (!takeover_steps(&t) && !ctx->json && !ctx->quiet)
			fputs("nothing to apply\n", stderr);
		return conflicts ? 1 : 0;
	}
	(void)err_set(e, ERR_CONFLICT, "%zu change%s cannot be applied; nothing was changed",
		      refused, refused == 1 ? "" : "s");
	return err_hint(e, o.merge || !takeover_may_merge(&t)
				   ? "name the paths to apply, or settle these by hand"
				   : "name the paths to apply, or try --merge");
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	auto_done(diff_view_done) struct diff_view l = { 0 };
	bool settle = o.resume || o.undo;
	int r;

	if (o.resume && o.undo)
		return cmd_usage(ctx, e, "--resume or --undo, not both");
	/* What was cut off may be of a sandbox that is gone by now. */
	if (settle && o.to && ctx->nargs == 0)
		return settle_only(o.to, e);
	if (cmd_need_args(ctx, 1, settle ? 1 : -1, "SANDBOX", e) < 0 || cli_open(&s, e) < 0 ||
	    catalog_find(s.catalog, ctx->args[0], &row, e) < 0 ||
	    diff_view_open(&s, &row, &l, e) < 0)
		return -1;
	if (settle || !o.dry_run) {
		r = settle_all(&l, &row, &s, e);
		if (r < 0)
			return -1;
		if (settle)
			return r ? 0 : err_set(e, ERR_NOT_FOUND, "nothing was cut off");
	}
	return plan_and_do(ctx, &s, &row, e);
}

const struct cmd cmd_apply = {
	.name = "apply",
	.synopsis = "[options] SANDBOX [PATH...]",
	.summary = "Take a sandbox's changes over into the directory given with --dir",
	.details =
		"All or nothing: where a file of the host has changed since the sandbox was made, "
		"where something is a device, socket or pipe, or cannot be read, the list of these "
		"is shown and nothing is done. New files belong to the owner of the directory, "
		"setuid bits and attributes are not taken over. Of a repository's .git only history "
		"is, as regular files; so too in nested and bare repositories. Nothing of .hg, .jj and "
		".svn is. --git-config takes these, except symbolic links in .git. A run that was cut off is finished by the next one, or "
		"with --resume, or undone with --undo.",
	.examples = "cay apply work --dry-run\n"
		    "cay apply work\n"
		    "cay apply work src/main.c docs\n"
		    "cay apply work --merge\n"
		    "cay apply --undo --to .",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
