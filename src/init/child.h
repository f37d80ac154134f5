/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child of init that becomes a command, or does a file operation. It takes on the
 * command's descriptors, session, identity and working directory, installs the listener by
 * which the warden sees what it executes, gives up its rights, and executes.
 *
 * One that is made ahead (MSG_STAND_BY) does what is the same for every command, says so, and
 * waits for the warden's order.
 */
#pragma once

#include "init/request.h"

/* What the child says when it cannot go on; one write to fail_fd. */
struct child_failure {
	int sys;
	enum run_stage stage;
	char text[248];
};

/* In init, before it makes the child: what would be the same in every child is done once. */
void child_prepare(const struct request *r);
/* Never returns. fail_fd is CLOEXEC. */
void child_run(struct request *r, int fail_fd) __attribute__((noreturn));
