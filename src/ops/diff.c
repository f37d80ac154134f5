/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/diff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "diff/apply_memory.h"
#include "diff/guard.h"
#include "diff/start.h"
#include "ops/call_paths.h"
#include "sys/freeze/frozen_index.h"

struct job {
	const struct diff_spec *spec;
	struct diff_result *ret;
	struct diff_view a, b; /* b: the new side of a comparison of two */
	bool two;
	int host_fd;		 /* the host directory that is compared; or FD_NONE */
	int box_fd;		 /* directory of the single sandbox; FD_NONE if there is none */
	struct path_list wanted; /* absolute and normalized */
	struct path_list called; /* files that spec->call changed */
	const char *root;	 /* names in a patch are relative to this */
	uint64_t unread;
	char *unread_first;
	bool stopped; /* the callback stopped the comparison */
};

static void job_done(struct job *j)
{
	diff_view_done(&j->a);
	diff_view_done(&j->b);
	path_list_done(&j->wanted);
	path_list_done(&j->called);
	free(j->unread_first);
	fd_close(&j->box_fd);
	fd_close(&j->host_fd);
}
DEFINE_AUTO(struct job, job_done)

static bool is_shown(const struct job *j, const char *dest, const struct diff_entry *en)
{
	char full[2 * LIMIT_PATH];

	if (j->wanted.n == 0 && diff_is_identity(dest, en))
		return false;
	if (!j->spec->call)
		return true;
	(void)snprintf(full, sizeof full, "%s/%s", strcmp(dest, "/") == 0 ? "" : dest, en->path);
	return path_list_has(&j->called, full);
}

/* The prefix for names of a mount in the patch. */
static void patch_prefix(const struct job *j, const char *dest, char *out, size_t size)
{
	const char *under = strcmp(j->root, "/") == 0 ? dest + 1 : dest + strlen(j->root);

	out[0] = '\0';
	if (under[0] && strcmp(dest, j->root) != 0)
		(void)snprintf(out, size, "%s/", under + (under[0] == '/'));
}

static int write_patch(struct job *j, const struct diff_change *c, struct err *e)
{
	const struct guard g = { .dir_fd = j->host_fd, .diff = c->diff };
	const struct diff_entry *en = c->entry;
	struct diff_result *ret = j->ret;
	char prefix[2 * LIMIT_PATH];
	struct patch_counts n;

	if (!guard_in_patch(&g, en)) {
		ret->guarded += !S_ISDIR(en->new.mode);
		return 0;
	}
	patch_prefix(j, c->dest, prefix, sizeof prefix);
	if (patch_write(j->spec->patch, c->diff, en, prefix, &n, e) < 0)
		return -1;
	if (n.host_changed && !ret->host_changed_first[0])
		(void)str_copy(ret->host_changed_first, sizeof ret->host_changed_first,
			       str_of(en->path));
	diff_add_totals(&ret->totals, en, &n);
	return 0;
}

static int tell_change(struct job *j, struct diff_change *c, struct err *e)
{
	j->ret->changes++;
	if (j->spec->patch)
		return write_patch(j, c, e);
	if (j->spec->count) {
		if (patch_count(c->diff, c->entry, &c->n, e) < 0)
			return -1;
		c->counted = true;
		diff_add_totals(&j->ret->totals, c->entry, &c->n);
	}
	j->stopped = j->spec->fn && j->spec->fn(j->spec->ctx, c) != 0;
	return 0;
}

/* Selects the wanted paths that concern this mount. False: none. */
static bool scope_of(const struct job *j, const struct diff_mount *m, struct diff_scope *s,
		     const char **paths, const char **skip)
{
	size_t n = strcmp(m->dest, "/") == 0 ? 0 : strlen(m->dest);
	bool any = j->wanted.n == 0 && (!j->spec->patch || diff_path_below(m->dest, j->root));

	*s = (struct diff_scope){ .paths = paths, .skip = skip, .renames = !j->spec->no_renames };
	for (size_t i = 0; i < j->wanted.n; i++) {
		if (diff_path_below(m->dest, j->wanted.v[i]))
			any = true;
		else if (diff_path_below(j->wanted.v[i], m->dest))
			paths[s->npaths++] = j->wanted.v[i] + n + 1;
	}
	s->nskip = diff_view_inner(&j->a, m, skip);
	if (any)
		s->npaths = 0;
	return any || s->npaths;
}

/*
 * Loads what was applied to a directory of the single sandbox, and the saved copies of its original
 * files.
 */
static int load_memory(const struct job *j, const struct diff_mount *m, struct apply_memory *ret,
		       struct err *e)
{
	if (j->two || j->box_fd < 0 || !m->host)
		return 0;
	return apply_memory_load(ret, j->box_fd, m->index, e);
}

/* Looks up the state of a host file at the time of the freeze. */
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

/* The position of the host directory among the layers, and when the sandboxes first saw it. */
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

static int compare_mount(struct job *j, const struct diff_mount *m, const struct diff_mount *other,
			 const struct diff_scope *scope, struct err *e)
{
	auto_done(apply_memory_done) struct apply_memory memory = { .dir_fd = FD_NONE };
	auto_done(diff_done) struct diff d = { 0 };
	auto_done(frozen_index_done) struct frozen_index index = FROZEN_INDEX_INIT;
	struct diff_start start;

	/* If the sandbox removed applied files since, overlayfs made no whiteout: add them. */
	if (diff_compare(j->two ? &m->now : &m->base, &other->now, scope, &d, e) < 0 ||
	    load_memory(j, m, &memory, e) < 0 ||
	    (memory.dir_fd >= 0 && apply_memory_add_deleted(&memory, scope, &d, e) < 0))
		return err_ctx(e, "below '%s'", m->dest);
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
	for (size_t i = 0; i < d.n && !j->stopped; i++) {
		struct diff_change c = { .dest = m->dest, .diff = &d, .entry = &d.v[i] };

		if (is_shown(j, m->dest, c.entry) && tell_change(j, &c, e) < 0)
			return -1;
	}
	return 0;
}

static void warn_lone(struct job *j, const struct diff_mount *m)
{
	char text[200];

	(void)snprintf(text, sizeof text, "'%.160s' is in one of the two only", m->dest);
	warnings_add(&j->ret->warnings, "diff.lone", str_of(text));
}

static int compare_all(struct job *j, struct err *e)
{
	auto_free const char **paths = calloc(j->wanted.n + 1, sizeof *paths);
	auto_free const char **skip = calloc((size_t)j->a.n + 1, sizeof *skip);
	struct diff_scope scope;

	if (!paths || !skip)
		return err_sys(e, ENOMEM, "compare");
	for (int i = 0; i < j->a.n && !j->stopped; i++) {
		const struct diff_mount *m = &j->a.mounts[i];
		const struct diff_mount *other = j->two ? diff_view_at(&j->b, m->dest) : m;

		if (!scope_of(j, m, &scope, paths, skip))
			continue;
		if (!other)
			warn_lone(j, m);
		else if (compare_mount(j, m, other, &scope, e) < 0)
			return -1;
	}
	for (int i = 0; j->two && i < j->b.n; i++)
		if (!diff_view_at(&j->a, j->b.mounts[i].dest) &&
		    scope_of(j, &j->b.mounts[i], &scope, paths, skip))
			warn_lone(j, &j->b.mounts[i]);
	return 0;
}

static int open_box(struct job *j, struct cay *c, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	struct err ignored = { 0 };

	/* Snapshots have no memory of applied changes. */
	if (catalog_find(c->catalog, j->spec->sandbox, &row, &ignored) < 0)
		return 0;
	return state_sandbox_open(&c->state, row.id, &j->box_fd, e);
}

static int add_path(struct job *j, const char *word, struct err *e)
{
	char *path = NULL;

	if (diff_view_path(&j->a, word, &path, e) < 0)
		return -1;
	return path_list_add(&j->wanted, path) < 0 ? err_sys(e, ENOMEM, "a path") : 0;
}

/*
 * The word could be a path or a sandbox, and exists as neither. A mistyped sandbox must be an
 * error, not an empty diff.
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
	return err_code(e, "diff.no_such", word);
}

/* Resolves spec->to_or_path: 1 if it is a sandbox or snapshot, 0 if it is a path. */
static int open_to_or_path(struct job *j, struct cay *c, struct err *e)
{
	const char *word = j->spec->to_or_path;
	struct err none = { 0 };

	if (diff_view_open_any(c, word, &j->b, &none) == 0)
		return 1;
	/* Ambiguous or unreadable: report it. */
	if (none.kind != ERR_NOT_FOUND && none.kind != ERR_INVALID) {
		*e = none;
		return -1;
	}
	return check_path(j, word, e) < 0 ? -1 : add_path(j, word, e);
}

static int open_sides(struct job *j, struct cay *c, struct err *e)
{
	const struct diff_spec *s = j->spec;
	const char *old = s->from ? s->from : s->sandbox;
	const char *new = s->from ? s->sandbox : s->to;
	int r;

	if (!!s->from + !!s->to + !!s->to_or_path > 1)
		return err_set(e, ERR_INVALID, "there are three sides to compare");
	if (diff_view_open_any(c, old, &j->a, e) < 0)
		return -1;
	if (s->to_or_path)
		r = open_to_or_path(j, c, e);
	else
		r = !new ? 0 : diff_view_open_any(c, new, &j->b, e) < 0 ? -1 : 1;
	j->two = r > 0;
	return r == 0 ? open_box(j, c, e) : r < 0 ? -1 : 0;
}

static int take_paths(struct job *j, struct err *e)
{
	for (int i = 0; i < j->spec->npaths; i++)
		if (add_path(j, j->spec->paths[i], e) < 0)
			return -1;
	/*
	 * Names in a patch start at the project directory if the patch covers only that directory.
	 */
	j->root = j->a.first_dir ? j->a.first_dir : "/";
	for (size_t i = 0; i < j->wanted.n; i++)
		if (!diff_path_below(j->wanted.v[i], j->root))
			j->root = "/";
	return 0;
}

static void warn_unread(struct job *j)
{
	char text[200];

	if (!j->unread)
		return;
	(void)snprintf(text, sizeof text,
		       "%llu files or directories could not be read, such as '%.120s'",
		       (unsigned long long)j->unread, j->unread_first ? j->unread_first : "?");
	warnings_add(&j->ret->warnings, "diff.unread", str_of(text));
}

int op_diff(struct cay *c, const struct diff_spec *spec, struct diff_result *ret, struct err *e)
{
	auto_free struct diff_result *result = calloc(1, sizeof *result);
	auto_done(job_done) struct job j = {
		.spec = spec, .ret = result, .box_fd = FD_NONE, .host_fd = FD_NONE
	};

	if (!result)
		return err_sys(e, ENOMEM, "compare");
	if (cay_catalog(c, e) < 0 || open_sides(&j, c, e) < 0 || take_paths(&j, e) < 0 ||
	    (spec->call && call_paths_load(c, spec->sandbox, spec->call, &j.called, e) < 0) ||
	    compare_all(&j, e) < 0)
		return -1;
	warn_unread(&j);
	*ret = *result;
	return 0;
}

int diff_sum(const struct diff_view *old, const struct diff_view *new, struct diff_totals *ret,
	     struct err *e)
{
	auto_free const char **skip = calloc((size_t) new->n + 1, sizeof *skip);
	struct diff_totals sum = { 0 };

	if (!skip)
		return err_sys(e, ENOMEM, "compare");
	for (int i = 0; i < new->n; i++) {
		const struct diff_mount *m = &new->mounts[i], *was = diff_view_at(old, m->dest);
		auto_done(diff_done) struct diff d = { 0 };
		struct diff_scope scope = { .skip = skip };

		if (!was)
			continue;
		scope.nskip = diff_view_inner(new, m, skip);
		if (diff_compare(&was->now, &m->now, &scope, &d, e) < 0 ||
		    diff_add_all(&sum, m->dest, &d, e) < 0)
			return -1;
	}
	*ret = sum;
	return 0;
}
