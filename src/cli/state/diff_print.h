/* SPDX-License-Identifier: Apache-2.0 */
/* Changes for people and for programs. */
#pragma once

#include "cli/cmd.h"
#include "diff/patch.h"

struct diff_totals {
	uint64_t files, added, removed, binary;
	uint64_t bytes; /* by which the files grew or shrank, summed up */
	uint64_t omitted;
	uint64_t host_changed; /* not in the patch for that reason */
};

/* A, D, M, T, R, or m where neither content nor kind has changed. */
char diff_letter(const struct diff_entry *en);
/* One line: letter, path, and what has changed beside the content. dest: of the mount. */
void diff_print_line(const struct cmd_ctx *ctx, const char *dest, const struct diff_entry *en);
/* The same with numbers of lines, and the sums. */
int diff_print_stat(const struct cmd_ctx *ctx, const char *dest, const struct diff *d,
		    const struct diff_entry *en, struct diff_totals *t, struct err *e);
int diff_print_json(const char *dest, const struct diff *d, const struct diff_entry *en, bool stat,
		    struct err *e);
void diff_print_totals(FILE *f, const struct diff_totals *t);
void diff_add_totals(struct diff_totals *t, const struct patch_counts *n);
