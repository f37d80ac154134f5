/* SPDX-License-Identifier: Apache-2.0 */
/* cay diff: what a sandbox changed, or how two of them differ. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/state/apply_memory.h"
#include "cli/state/diff_print.h"
#include "cli/state/diff_sum.h"
#include "diff/guard.h"
#include "diff/patch_show.h"
#include "diff/start.h"
#include "ops/call_paths.h"
#include "ops/diff_view.h"
#include "sys/freeze/frozen_index.h"

static struct {
	const char *call, *from;
	bool stat, patch, no_renames;
} o;

static struct opt opts[] = {
	{ "stat", 0, OPT_FLAG, NULL, "Also count lines, and sum up", &o.stat },
	{ "patch", 'p', OPT_FLAG, NULL, "A patch that git apply takes, binary files included",
	  &o.patch },
	{ "call", 0, OPT_TEXT, "CALL",
	  "Only files that this call changed: its number, or your id of it", &o.call },
	{ "from", 0, OPT_TEXT, "SNAPSHOT",
	  "Compare with this snapshot instead of what the sandbox started from", &o.from },
	{ "no-renames", 0, OPT_FLAG, NULL, "Show a renamed file as one deleted and one added",
	  &o.no_renames },
	{ 0 },
};

struct job {
	struct cmd_ctx *ctx;
	struct diff_view a, b; /* b: of a second sandbox */
	bool two;
	int host_fd;		 /* of the --dir that is compared; or FD_NONE */
	int box_fd;		 /* directory of the one sandbox, FD_NONE where it is none */
	struct path_list wanted; /* absolute, normal */
	struct path_list called; /* what --call changed */
	const char *root;	 /* what names in a patch are relative to */
	struct diff_totals totals;
	uint64_t shown, unread;
	char *unread_first, *changed_first;
	uint64_t guarded; /* not in the patch: diff/guard.h */
	FILE *patch;	  /* stdout, or what makes it harmless for a terminal */
};

static void job_done(struct job *j)
{
	diff_view_done(&j->a);
	diff_view_done(&j->b);
	path_list_done(&j->wanted);
	path_list_done(&j->called);
	free(j->unread_first);
	free(j->changed_first);
	if (j->patch && j->patch != stdout)
		(void)fclose(j->patch);
	fd_close(&j->box_fd);
	fd_close(&j->host_fd);
}
DEFINE_AUTO(struct job, job_done)

static bool below(const char *path, const char *top)
{
	size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool is_shown(const struct job *j, const char *dest, const struct diff_entry *en)
{
	char full[2 * LIMIT_PATH];

	if (j->wanted.n == 0 && diff_is_identity(dest, en))
		return false;
	if (!o.call)
		return true;
	(void)snprintf(full, sizeof full, "%s/%s", strcmp(dest, "/") == 0 ? "" : dest, en->path);
	return path_list_has(&j->called, full);
}

static int show_patch(struct job *j, const char *prefix, const struct diff *d,
		      const struct diff_entry *en, struct err *e)
{
	const struct guard g = { .dir_fd = j->host_fd, .diff = d };
	struct patch_counts n;

	if (!guard_in_patch(&g, en)) {
		j->guarded += !S_ISDIR(en->new.mode);
		return 0;
	}
	if (patch_write(j->patch, d, en, prefix, &n, e) < 0)
		return -1;
	if (n.host_changed && !j->changed_first)
		j->changed_first = strdup(en->path);
	diff_add_totals(&j->totals, &n);
	return 0;
}

static int show(struct job *j, const char *dest, const struct diff *d, const struct diff_entry *en,
		struct err *e)
{
	char prefix[2 * LIMIT_PATH] = "";
	const char *under = strcmp(j->root, "/") == 0 ? dest + 1 : dest + strlen(j->root);

	j->shown++;
	if (j->ctx->quiet)
		return 0;
	if (o.patch) {
		if (under[0] && strcmp(dest, j->root) != 0)
			(void)snprintf(prefix, sizeof prefix, "%s/", under + (under[0] == '/'));
		return show_patch(j, prefix, d, en, e);
	}
	if (j->ctx->json)
		return diff_print_json(dest, d, en, o.stat, e);
	if (o.stat)
		return diff_print_stat(j->ctx, dest, d, en, &j->totals, e);
	diff_print_line(j->ctx, dest, en);
	return 0;
}

/* What of the wanted paths concerns this mount. False: nothing. */
static bool scope_of(const struct job *j, const struct diff_mount *m, struct diff_scope *s,
		     const char **paths, const char **skip)
{
	size_t n = strcmp(m->dest, "/") == 0 ? 0 : strlen(m->dest);
	bool any = j->wanted.n == 0 && (!o.patch || below(m->dest, j->root));

	*s = (struct diff_scope){ .paths = paths, .skip = skip, .renames = !o.no_renames };
	for (size_t i = 0; i < j->wanted.n; i++) {
		if (below(m->dest, j->wanted.v[i]))
			any = true;
		else if (below(j->wanted.v[i], m->dest))
			paths[s->npaths++] = j->wanted.v[i] + n + 1;
	}
	for (int i = 0; i < j->a.n; i++)
		if (&j->a.mounts[i] != m && below(j->a.mounts[i].dest, m->dest))
			skip[s->nskip++] = j->a.mounts[i].dest + n + 1;
	if (any)
		s->npaths = 0;
	return any || s->npaths;
}

/* What cay apply did to a --dir of the one sandbox, and the copies of what it started from. */
static int load_memory(const struct job *j, const struct diff_mount *m, struct apply_memory *ret,
		       struct err *e)
{
	if (j->two || j->box_fd < 0 || !m->host)
		return 0;
	return apply_memory_load(ret, j->box_fd, m->index, e);
}

/* What a file of the host was when it was frozen. */
static bool was_then(void *ctx, const char *path, struct stack_node *n)
{
	struct frozen_key key;

	if (!frozen_index_find(ctx, path, &key))
		return false;
	n->ino = key.ino;
	n->ctime_ns = key.ctime_ns;
	n->size = key.size;
	return true;
}

/* Where the host's directory begins among the layers, and when the sandboxes first saw it. */
static struct diff_start start_of(const struct job *j, const struct diff_mount *m,
				  const struct diff_mount *other, struct apply_memory *memory,
				  struct frozen_index *index)
{
	bool known = memory->dir_fd >= 0;

	return (struct diff_start){
		.old_host = j->two ? m->now.n - m->base.n : 0,
		.new_host = other->now.n - other->base.n,
		.was = m->frozen ? was_then : NULL,
		.was_ctx = index,
		.old_ns = m->host && !(m->frozen && j->two) ? j->a.base_ns : UINT64_MAX,
		.new_ns = other->host && !other->frozen ? (j->two ? j->b.base_ns : j->a.base_ns)
							: UINT64_MAX,
		.is_ours = known ? apply_memory_is_ours : NULL,
		.was_ours = known ? apply_memory_was_ours : NULL,
		.open_copy = known ? apply_memory_open_copy : NULL,
		.ctx = memory,
	};
}

static int compare(struct job *j, const struct diff_mount *m, const struct diff_mount *other,
		   const struct diff_scope *scope, struct err *e)
{
	auto_done(apply_memory_done) struct apply_memory memory = { .dir_fd = FD_NONE };
	auto_done(diff_done) struct diff d = { 0 };
	auto_done(frozen_index_done) struct frozen_index index = FROZEN_INDEX_INIT;
	const char *dest = m->dest;
	struct diff_start start;

	/* What was applied is below now, and the kernel has not noticed that it was removed since.
	 */
	if (diff_compare(j->two ? &m->now : &m->base, &other->now, scope, &d, e) < 0 ||
	    load_memory(j, m, &memory, e) < 0 ||
	    (memory.dir_fd >= 0 && apply_memory_add_deleted(&memory, scope, &d, e) < 0))
		return err_ctx(e, "below '%s'", dest);
	fd_close(&j->host_fd);
	if (m->host)
		j->host_fd = open(m->host, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (m->frozen && d.n && !j->two && frozen_index_read_fd(&index, m->index_fd) < 0)
		return err_set(e, ERR_FAILED, "the index of what was frozen of '%s' is damaged",
			       m->host);
	start = start_of(j, m, other, &memory, &index);
	diff_find_start(&d, &start);
	j->unread += d.unread;
	if (!j->unread_first)
		j->unread_first = TAKE_PTR(d.unread_first);
	for (size_t i = 0; i < d.n; i++)
		if (is_shown(j, dest, &d.v[i]) && show(j, dest, &d, &d.v[i], e) < 0)
			return -1;
	return 0;
}

static void say_lone(const struct diff_mount *m)
{
	fputs("cay: '", stderr);
	out_safe_to(stderr, str_of(m->dest));
	fputs("' is in one of the two only\n", stderr);
}

static int compare_all(struct job *j, struct err *e)
{
	auto_free const char **paths = calloc(j->wanted.n + 1, sizeof *paths);
	auto_free const char **skip = calloc((size_t)j->a.n + 1, sizeof *skip);

	if (!paths || !skip)
		return err_sys(e, ENOMEM, "compare");
	for (int i = 0; i < j->a.n; i++) {
		const struct diff_mount *m = &j->a.mounts[i];
		const struct diff_mount *other = j->two ? diff_view_at(&j->b, m->dest) : m;
		struct diff_scope scope;

		if (!scope_of(j, m, &scope, paths, skip))
			continue;
		if (j->two && !other) {
			say_lone(m);
			continue;
		}
		if (compare(j, m, other, &scope, e) < 0)
			return -1;
	}
	for (int i = 0; j->two && i < j->b.n; i++) {
		struct diff_scope scope;

		if (!diff_view_at(&j->a, j->b.mounts[i].dest) &&
		    scope_of(j, &j->b.mounts[i], &scope, paths, skip))
			say_lone(&j->b.mounts[i]);
	}
	return 0;
}

static int open_box(struct job *j, struct cay *s, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	struct err ignored = { 0 };

	/* A snapshot remembers nothing of the kind. */
	if (catalog_find(s->catalog, j->ctx->args[0], &row, &ignored) < 0)
		return 0;
	return state_sandbox_open(&s->state, row.id, &j->box_fd, e);
}

/*
 * A word that could be either, and is the name of nothing: who has mistyped a sandbox must not be
 * told that there is no difference.
 */
static int check_path(const struct job *j, const char *word, struct err *e)
{
	auto_free char *path = NULL;
	const struct diff_mount *m;
	struct stack_node node;
	const char *rest;

	if (diff_view_path(&j->a, word, &path, e) < 0)
		return -1;
	m = diff_view_find(&j->a, path, &rest);
	if (!m || !rest[0] || stack_find(&m->now, rest, &node) != 0 ||
	    stack_find(&m->base, rest, &node) != 0)
		return 0;
	err_set(e, ERR_NOT_FOUND, "'%s' is neither a sandbox, nor a snapshot, nor a path inside",
		word);
	return err_hint(e,
			"list them with: cay ls, cay snapshots; a path that is gone: cay diff %s "
			"-- %s",
			j->ctx->args[0], word);
}

/* The second word is a sandbox or snapshot where one is called so, else a path. */
static int open_sides(struct job *j, struct cay *s, int *ret_first_path, struct err *e)
{
	struct cmd_ctx *ctx = j->ctx;
	struct err ignored = { 0 };
	bool maybe = ctx->nargs > 1 && !strchr(ctx->args[1], '/') && ctx->args[1][0] != '.' &&
		     !(ctx->has_dashes && ctx->dashes_at <= 1);

	*ret_first_path = 1;
	if (o.from) {
		j->two = true;
		return diff_view_open_any(s, o.from, &j->a, e) < 0 ||
				       diff_view_open_any(s, ctx->args[0], &j->b, e) < 0
			       ? -1
			       : 0;
	}
	if (diff_view_open_any(s, ctx->args[0], &j->a, e) < 0)
		return -1;
	if (maybe && diff_view_open_any(s, ctx->args[1], &j->b, &ignored) < 0) {
		/* Ambiguous, or it cannot be read. */
		if (ignored.kind != ERR_NOT_FOUND && ignored.kind != ERR_INVALID) {
			*e = ignored;
			return -1;
		}
		maybe = false;
		if (check_path(j, ctx->args[1], e) < 0)
			return -1;
	}
	if (!maybe)
		return open_box(j, s, e);
	j->two = true;
	*ret_first_path = 2;
	return 0;
}

static int take_paths(struct job *j, int first, struct err *e)
{
	for (int i = first; i < j->ctx->nargs; i++) {
		char *path = NULL;

		if (diff_view_path(&j->a, j->ctx->args[i], &path, e) < 0)
			return -1;
		if (path_list_add(&j->wanted, path) < 0)
			return err_sys(e, ENOMEM, "a path");
	}
	/* Names in a patch: from the project on, where the patch is about that only. */
	j->root = j->a.first_dir ? j->a.first_dir : "/";
	for (size_t i = 0; i < j->wanted.n; i++)
		if (!below(j->wanted.v[i], j->root))
			j->root = "/";
	return 0;
}

static void say_notes(const struct job *j)
{
	if (o.patch && j->totals.omitted)
		fprintf(stderr,
			"cay: %llu changes are not in the patch, or not all of them: git keeps no "
			"owners, attributes, devices, files above 1 GiB, nor modes but x\n",
			(unsigned long long)j->totals.omitted);
	if (j->guarded)
		fprintf(stderr,
			"cay: %llu changes are not in the patch: they are of .git, or could make git or "
			"its like run a command; cay apply --dry-run lists them\n",
			(unsigned long long)j->guarded);
	if (j->unread) {
		fprintf(stderr,
			"cay: warning: %llu files or directories could not be read, such as '",
			(unsigned long long)j->unread);
		out_safe_to(stderr, str_of(j->unread_first));
		fputs("'\n", stderr);
	}
}

/* A patch without these is no error of git apply's, so it must be one of ours. */
static int fail_changed(const struct job *j, struct err *e)
{
	(void)err_set(e, ERR_CONFLICT,
		      "%llu changed files are not in the patch, such as '%.200s': the host changed "
		      "them since, and what the sandbox started from was not kept",
		      (unsigned long long)j->totals.host_changed,
		      j->changed_first ? j->changed_first : "?");
	return err_hint(e, "copy them with cay cp, and merge them by hand");
}

static int open_patch(struct job *j, struct err *e)
{
	j->patch = isatty(STDOUT_FILENO) ? patch_show_open(stdout) : stdout;
	return j->patch ? 0 : err_sys(e, ENOMEM, "show the patch");
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };
	auto_done(job_done) struct job j = { .ctx = ctx, .box_fd = FD_NONE, .host_fd = FD_NONE };
	int first;

	if (cmd_need_args(ctx, 1, -1, "SANDBOX", e) < 0)
		return -1;
	if (o.patch && (o.stat || ctx->json))
		return cmd_usage(ctx, e, "--patch goes with neither --stat nor --json");
	if (cli_open(&s, e) < 0 || open_sides(&j, &s, &first, e) < 0 ||
	    take_paths(&j, first, e) < 0 || (o.patch && open_patch(&j, e) < 0))
		return -1;
	if (o.call && call_paths_load(&s, ctx->args[0], o.call, &j.called, e) < 0)
		return -1;
	if (compare_all(&j, e) < 0)
		return -1;
	if (o.stat && !ctx->json && !ctx->quiet)
		diff_print_totals(stdout, &j.totals);
	if (j.patch)
		(void)fflush(j.patch);
	say_notes(&j);
	if (j.totals.host_changed)
		return fail_changed(&j, e);
	return ctx->quiet && j.shown ? 1 : 0;
}

const struct cmd cmd_diff = {
	.name = "diff",
	.synopsis = "[options] SANDBOX [SANDBOX|SNAPSHOT] [--] [PATH...]",
	.summary = "Show what a sandbox changed, or how two of them differ",
	.details =
		"Without a second sandbox the comparison is with what the sandbox started from. "
		"A added, D deleted, M changed, R renamed, T of another kind, m only mode, owner or "
		"attributes. Times do not count. Paths are inside the sandbox; relative ones begin at "
		"its first --dir. --patch is about that directory, with names from there on, unless "
		"paths are named. A patch never undoes what the host did to a file since: it is against "
		"what the sandbox started from, so that git apply finds the conflict; where that is "
		"not known the file is left out, and the exit code is 1. On a terminal control "
		"characters in a patch are shown as escapes. Works while commands run, and on lost sandboxes. With -q nothing is "
		"shown and the exit code is 1 where something differs.",
	.examples = "cay diff work\n"
		    "cay diff work --stat src\n"
		    "cay diff work --patch | git apply\n"
		    "cay diff work --from before-upgrade\n"
		    "cay diff work --call 3 --json\n"
		    "cay diff try-1 try-2",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
