/* SPDX-License-Identifier: Apache-2.0 */
/* What cay apply and cay run --apply share: the changes below every --dir, planned and done. */
#pragma once

#include "cli/cmd.h"
#include "diff/apply_memory.h"
#include "ops/diff_view.h"

/* One --dir with its changes. */
struct takeover_dir {
	const struct diff_mount *mount;
	int fd; /* of the host's directory */
	char *host;
	struct diff diff;
	struct apply apply;
	struct apply_memory memory;
	struct apply_rules rules;
};

struct takeover {
	struct diff_view layers;
	int state_fd; /* borrowed */
	struct takeover_dir *dirs;
	int n;
};

struct takeover_opts {
	const char *to; /* another directory than the --dir; or NULL */
	const char *const *paths;
	int npaths;
	bool merge, git_config;
};

/* Plan everything. Nothing is written. */
int takeover_plan(struct takeover *t, struct cay *s, const struct sandbox_row *row,
		  const struct takeover_opts *o, struct err *e);
/* Steps and what is refused, over all directories. */
size_t takeover_steps(const struct takeover *t);
size_t takeover_refused(const struct takeover *t);
/* Whether some of it was refused that a merge could settle. */
bool takeover_may_merge(const struct takeover *t);
/* Whether some of it was left out that git_config would take. */
bool takeover_left_config(const struct takeover *t);
/* A line per change, then what is left out and refused; `refused`: only that, nothing was done. */
void takeover_print(const struct takeover *t, const struct cmd_ctx *ctx, bool refused, FILE *f);
/* Do it, directory by directory. *ret_conflicts: files with conflict markers. */
int takeover_run(struct takeover *t, size_t *ret_conflicts, struct err *e);
void takeover_done(struct takeover *t);
DEFINE_AUTO(struct takeover, takeover_done)
