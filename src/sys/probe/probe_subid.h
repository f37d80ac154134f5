/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of subordinate ids of an unprivileged user (subuid(5)). */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "sys/probe/probe.h"

struct probe_subid {
	char user[64]; /* name of the caller, or its number */
	uint64_t uids, gids;
	bool newuidmap, newgidmap; /* installed */
};

/* Sum of the ranges for this name or number. */
uint64_t subid_count(struct str text, const char *name, uid_t uid);
/* The name of a uid in the text of a passwd(5). */
bool subid_user(struct str passwd, uid_t uid, char *out, size_t size);
void probe_subid(struct probe_subid *ret);
