/* SPDX-License-Identifier: Apache-2.0 */
/* What one process of a command may have, and how soon it is killed when memory is short. */
#pragma once

#include "init/request.h"

/* Init itself may have as many files open as it can, and remembers what a command starts with. */
void rlimits_begin(void);
/* 0, or -errno with *what naming the limit. soft = hard: nobody inside can raise one again. */
int rlimits_apply(const struct request *r, const char **what);

/*
 * Processes of a sandbox are killed before others of the host, and a command before init. Only
 * while a process is dumpable may it open its own file, so init keeps a descriptor. Where that
 * cannot be had the kernel's order stays as it is.
 */
void oom_order_begin(void);
/* Around the birth of a command: it inherits what its parent has. */
void oom_order_command(void);
void oom_order_init(void);
