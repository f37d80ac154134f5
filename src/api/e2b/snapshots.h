/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots as E2B's clients know them: templates that only their key sees. Key and name are in the
 * snapshot's note, so keys can use the same names, and snapshots of the command line stay hidden.
 */
#pragma once

#include "ops/job/job.h"
#include "store/snapshots.h"

enum { SNAPSHOT_REF = ID_SIZE + 8, SNAPSHOT_NAME = 64 };

/* The name of a snapshot for this owner (NULL: the host's user); NULL: the owner may not see it. */
const char *snapshot_name_for(const struct snapshot_row *row, const char *owner);
/* The note that says whose it is. */
enum { SNAPSHOT_NOTE = ID_SIZE + SNAPSHOT_NAME + 8 };
void snapshot_note_write(char out[SNAPSHOT_NOTE], const char *owner, const char *name);
/* By id or name, with or without ":default"; owner NULL: anybody's. 1, 0 if there is none, -1. */
int snapshot_find(struct job_run *r, const char *owner, const char *ref, char ret_id[ID_SIZE],
		  struct err *e);
/*
 * LIMIT if this key may keep no more; NULL: no key. Not exact for requests at the same time: each
 * may see the last free place.
 */
int snapshot_check_quota(struct job_run *r, const char *owner, struct err *e);
