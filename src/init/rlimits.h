/* SPDX-License-Identifier: Apache-2.0 */
/* Resource limits of a command's processes, and their order for the OOM killer. */
#pragma once

#include "init/request.h"

/* Raise init's own limit of open files to the maximum, and remember a command's initial limit. */
void rlimits_begin(void);
/* 0, or -errno with *what naming the limit. soft = hard: no process inside can raise it again. */
int rlimits_apply(const struct request *r, const char **what);

/*
 * The OOM killer kills a sandbox's processes before others of the host, and a command before init.
 * A process can open its own file only while it is dumpable, so init keeps a descriptor. If that
 * fails, the kernel's default order stays.
 */
void oom_order_begin(void);
/* Call before and after making a command, which inherits its parent's value. */
void oom_order_command(void);
void oom_order_init(void);
