/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first command of a sandbox, caught by its listener or waiting at its gate just before its
 * exec: has it become what the profile demands? Once per sandbox; all others are made by the same
 * code.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/proto.h"

struct command_want {
	enum profile profile;
	uint32_t root, user;  /* uid 0 and 1000 inside, seen from here; root: UINT32_MAX, none */
	uint32_t first, last; /* every uid of the sandbox, seen from here */
	struct str ours;      /* our own /proc/PID/status */
};

/* status: the text of the command's /proc/PID/status. */
int command_check(const struct command_want *w, struct str status, struct err *e);
