/* SPDX-License-Identifier: Apache-2.0 */
/* Copies directories in a child, while the caller's loop runs. */
#pragma once

#include "ops/cay.h"
#include "sys/freeze/freeze.h"

/* A host directory that a sandbox has as a --dir. */
struct start_dir {
	int mount; /* mount number */
	char path[LIMIT_PATH];
	uint32_t owner;
	char last[64]; /* its last copy, "0ID/N"; empty: none */
};

struct start_report {
	int err;		     /* 0, or -errno */
	bool same;		     /* all directories match their last copies; nothing was made */
	int at;			     /* index of the directory that failed */
	struct freeze_result result; /* sum over all directories */
};

/*
 * Compare the directories with their last copies, if each has one in the same start `may_be`
 * (empty: none has). If anything differs, copy all of them to layers/new-ID.
 */
int start_copy(struct cay *c, const struct start_dir *dirs, int n, const char *id,
	       const char *may_be, struct start_report *ret, struct err *e);
