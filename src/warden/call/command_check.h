/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check the first command of a sandbox against the profile, just before its exec. The command waits
 * at its exec listener or at its gate. One check per sandbox is enough, because the same code makes
 * all commands.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/proto.h"

struct command_want {
	enum profile profile;
	uint32_t root, user;  /* uids 0 and 1000 inside, as seen from here; root UINT32_MAX: none */
	uint32_t first, last; /* range of the sandbox's uids, as seen from here */
	struct str ours;      /* the warden's own /proc/PID/status */
};

/* status: the text of the command's /proc/PID/status. */
int command_check(const struct command_want *w, struct str status, struct err *e);
