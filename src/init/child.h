/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child of init that becomes a command or does a file operation. It takes the command's
 * descriptors, session, identity and working directory. It installs the listener through which the
 * warden sees its execs, drops its privileges, and executes.
 *
 * A spare (MSG_STAND_BY) does the part that is the same for every command, reports ready, and waits
 * for the warden's order.
 */
#pragma once

#include "init/request.h"

/* Commands may make their own namespaces and mounts (--nested). Set once, before the first one. */
extern bool child_nested;

/* The child's report if it cannot continue; one write to fail_fd. */
struct child_failure {
	int sys;
	enum run_stage stage;
	char text[248];
};

/* In init, before it makes the child: do once the work that would be the same in every child. */
void child_prepare(const struct request *r);
/* Never returns. fail_fd is CLOEXEC. */
void child_run(struct request *r, int fail_fd) __attribute__((noreturn));
