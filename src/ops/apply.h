/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a sandbox's changes over into the directories of the host that it was given (diff/apply.h
 * says how, all or nothing):
 *
 *   op_apply_plan    what would be done, and what may not be done. Writes nothing.
 *   op_apply_run     do what was planned
 *   op_apply_finish  finish or undo what an earlier run was cut off in; best before a plan
 */
#pragma once

#include "diff/apply_memory.h"
#include "ops/diff_view.h"

struct apply_spec {
	const char *sandbox; /* id, name or prefix of an id */
	const char *to;	     /* another directory of the host than the sandbox's own; or NULL */
	/* Only these and what lies below; inside, relative ones begin at the first directory. */
	const char *const *paths;
	int npaths;
	bool merge;	 /* files that changed on the host too; conflicts are marked in them */
	bool git_config; /* also what can make git and its like run a command */
};

/* One directory with its changes. */
struct apply_dir {
	const struct diff_mount *mount;
	int fd; /* of the host's directory */
	char *host;
	struct diff diff;
	struct apply apply;
	struct apply_memory memory;
	struct apply_rules rules;
};

struct apply_planned {
	size_t steps, refused; /* over all directories; with some refused nothing can be done */
	bool may_merge;	       /* some of it was refused that a merge could resolve */
	bool left_config;      /* some of it was left out that git_config would take */
	/* What the plan is made of. */
	struct diff_view layers;
	struct apply_dir *dirs;
	int n;
};

int op_apply_plan(struct cay *c, const struct apply_spec *spec, struct apply_planned *ret,
		  struct err *e);
/* Legal on one that is zero. */
void apply_planned_done(struct apply_planned *p);
DEFINE_AUTO(struct apply_planned, apply_planned_done)

/*
 * Directory by directory. *ret_conflicts: files with conflict markers. CONFLICT where something was
 * refused, or has changed since the plan: then nothing was done to that directory.
 */
int op_apply_run(struct apply_planned *p, size_t *ret_conflicts, struct err *e);
/* 0; or CONFLICT, code apply.refused or apply.may_merge, where something was refused. */
int apply_check(const struct apply_planned *p, struct err *e);

/* One line of a plan. Borrowed. */
struct apply_change {
	const char *dir;    /* the host's */
	const char *path;   /* below it */
	const char *action; /* add, change, merge, CONFLICT, delete, chmod; left out, refused */
	const char *reason; /* of what is left out or refused; else NULL */
};

/* All of them in order. refused: only those. */
void apply_each(const struct apply_planned *p, bool refused,
		void (*fn)(void *ctx, const struct apply_change *c), void *ctx);

struct apply_finish_spec {
	const char *sandbox; /* NULL: any, in the directory `to` */
	const char *to;	     /* as above */
	bool undo;	     /* else it is finished */
	/* For each directory in which there was something. */
	void (*fn)(void *ctx, const char *dir, size_t changes);
	void *ctx;
};

/* *ret_found: in how many directories there was something. */
int op_apply_finish(struct cay *c, const struct apply_finish_spec *spec, int *ret_found,
		    struct err *e);
