/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the program on disk can take over: it is run with --check, which reads its options and
 * files and ends. Does not block.
 */
#pragma once

#include <sys/types.h>

#include "loop/loop.h"

struct restart {
	struct loop *loop; /* the owner sets these three */
	void (*checked)(struct restart *r, bool good);
	void *user;
	pid_t pid; /* of the check; 0: none runs */
	int pidfd;
	struct loop_io io;
	struct loop_timer patience;
};

/* Calls checked() later. argv: of the server. 0 or -errno; -EALREADY while a check runs. */
int restart_check(struct restart *r, const char *program, char *const *argv);
/* End a check that runs. */
void restart_done(struct restart *r);
