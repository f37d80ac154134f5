/* SPDX-License-Identifier: Apache-2.0 */
/* Options that limit a sandbox or a call: their rows and checks, and the spec made from them. */
#pragma once

#include <stdint.h>

#include "cli/cmd.h"
#include "ops/create/create_spec.h"

/* 0: no limit. */
struct limit_opts {
	uint64_t memory, disk, call_memory; /* bytes */
	uint64_t cpu_milli, pids, files, call_timeout_ms;
	uint64_t ttl_ms, idle_ms;
	const char *on_timeout; /* kill, pause; NULL: kill */
	bool best_effort;
};

/* clang-format off */
/* For commands that create a sandbox. */
#define LIMIT_OPTS_BUILD(l) \
	{ "memory", 'm', OPT_SIZE, "SIZE", \
	  "Memory of the whole sandbox, with tmpfs and swap (512M, 2G)", &(l).memory }, \
	{ "cpus", 0, OPT_NUMBER, "N", "CPU time: so many CPUs' worth (0.5, 2)", &(l).cpu_milli }, \
	{ "pids", 0, OPT_COUNT, "N", "Processes and threads", &(l).pids }, \
	{ "files", 0, OPT_COUNT, "N", "Open files of one process", &(l).files }, \
	{ "disk", 0, OPT_SIZE, "SIZE", "What may be written to disk since the last snapshot", &(l).disk }, \
	{ "call-timeout", 0, OPT_DURATION, "TIME", \
	  "End every command after this time, unless it has its own --timeout", \
	  &(l).call_timeout_ms }, \
	{ "ttl", 0, OPT_DURATION, "TIME", "Time to live of the sandbox (30m, 8h); see cay extend", \
	  &(l).ttl_ms }, \
	{ "idle", 0, OPT_DURATION, "TIME", "How long it may go without a command", &(l).idle_ms }, \
	{ "on-timeout", 0, OPT_TEXT, "kill|pause", \
	  "What happens when --ttl or --idle has passed; default: kill", &(l).on_timeout }

/* For commands that run a call. */
#define LIMIT_OPTS_RUN(l) \
	{ "call-memory", 0, OPT_SIZE, "SIZE", "Memory of this command alone", &(l).call_memory }, \
	{ "best-effort", 0, OPT_FLAG, NULL, \
	  "Go on, with a warning, where this host cannot enforce a limit", &(l).best_effort }
#define LIMIT_OPTS_EFFORT(l) \
	{ "best-effort", 0, OPT_FLAG, NULL, \
	  "Go on, with a warning, where this host cannot enforce a limit", &(l).best_effort }
/* clang-format on */

struct limits_spec limit_opts_spec(const struct limit_opts *l);
/* INVALID if the limit of a call is implausibly small; ops checks the other limits. */
int limit_opts_check_call(const struct limit_opts *l, struct err *e);
