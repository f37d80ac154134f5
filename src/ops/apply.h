/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a sandbox's changes to the host directories that it was given. diff/apply.h explains how:
 * all or nothing.
 *
 *   op_apply_plan    compute what would be done and what is refused. Writes nothing.
 *   op_apply_run     carry out the plan
 *   op_apply_finish  finish or undo an interrupted run; call it before a plan
 */
#pragma once

#include "diff/apply_memory.h"
#include "ops/diff_view.h"

struct apply_spec {
	const char *sandbox; /* id, name or prefix of an id */
	const char *to;	     /* a host directory to use instead of the sandbox's own; or NULL */
	/*
	 * Only these paths and everything below them. Inside paths; relative ones start at the
	 * first directory.
	 */
	const char *const *paths;
	int npaths;
	bool merge;	 /* merge files that also changed on the host, and mark conflicts in them */
	bool git_config; /* also apply files that can make git or similar tools run a command */
};

/* One directory and its changes. */
struct apply_dir {
	const struct diff_mount *mount;
	int fd; /* of the host directory */
	char *host;
	struct diff diff;
	struct apply apply;
	struct apply_memory memory;
	struct apply_rules rules;
};

struct apply_planned {
	size_t steps,
		refused;  /* totals over all directories; if refused > 0, nothing can be applied */
	bool may_merge;	  /* a merge could resolve some refused changes */
	bool left_config; /* git_config would include some changes that were left out */
	/* The views that the plan was made from. */
	struct diff_view layers;
	struct apply_dir *dirs;
	int n;
};

int op_apply_plan(struct cay *c, const struct apply_spec *spec, struct apply_planned *ret,
		  struct err *e);
/* Legal on a zeroed struct. */
void apply_planned_done(struct apply_planned *p);
DEFINE_AUTO(struct apply_planned, apply_planned_done)

/*
 * Applies directory by directory. *ret_conflicts counts the files with conflict markers. CONFLICT
 * if a change was refused or the directory changed since the plan; that directory is then
 * untouched.
 */
int op_apply_run(struct apply_planned *p, size_t *ret_conflicts, struct err *e);
/* Returns 0, or CONFLICT with code apply.refused or apply.may_merge if a change was refused. */
int apply_check(const struct apply_planned *p, struct err *e);

/* One line of a plan. All texts are borrowed. */
struct apply_change {
	const char *dir;    /* host directory */
	const char *path;   /* relative to dir */
	const char *action; /* add, change, merge, CONFLICT, delete, chmod; left out, refused */
	const char *reason; /* why it was left out or refused; else NULL */
};

/* Calls fn for each line in order. refused: only the refused lines. */
void apply_each(const struct apply_planned *p, bool refused,
		void (*fn)(void *ctx, const struct apply_change *c), void *ctx);

struct apply_finish_spec {
	const char *sandbox; /* NULL: any sandbox, in the directory `to` */
	const char *to;	     /* as in apply_spec */
	bool undo;	     /* undo the run; else finish it */
	/* Called for each directory that had an interrupted run. */
	void (*fn)(void *ctx, const char *dir, size_t changes);
	void *ctx;
};

/* *ret_found counts the directories that had an interrupted run. */
int op_apply_finish(struct cay *c, const struct apply_finish_spec *spec, int *ret_found,
		    struct err *e);
