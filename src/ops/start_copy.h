/* SPDX-License-Identifier: Apache-2.0 */
/* Copying directories in a child, while the caller's loop goes on. */
#pragma once

#include "ops/cay.h"
#include "sys/freeze/freeze.h"

/* A directory of the host that a sandbox has as a --dir. */
struct start_dir {
	int mount; /* its number */
	char path[LIMIT_PATH];
	uint32_t owner;
	char last[64]; /* the last copy of it, "0ID/N"; empty: none */
};

struct start_report {
	int err;		     /* 0, or -errno */
	bool same;		     /* all are as in their last copies; nothing was made */
	int at;			     /* of the directories: where it failed */
	struct freeze_result result; /* of all together */
};

/*
 * Compare the directories with their last copies, where each has one of the same start `may_be`
 * (empty: none has); if something differs, copy them all to layers/new-ID.
 */
int start_copy(struct cay *c, const struct start_dir *dirs, int n, const char *id,
	       const char *may_be, struct start_report *ret, struct err *e);
