/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox is asked to be. All texts are borrowed; NULL: the default. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct text_list {
	const char *const *items;
	int n;
};

/* What of the host is shown inside. */
struct mount_spec {
	const char *path; /* outside, absolute */
	const char *dest; /* inside; NULL: the same */
};

/* 0: no limit. */
struct limits_spec {
	uint64_t memory, disk; /* bytes */
	uint64_t cpu_milli, pids, files, call_timeout_ms;
	uint64_t ttl_ms, idle_ms;
	const char *on_timeout; /* kill, pause */
	bool best_effort;	/* a limit that this host cannot enforce is a warning */
};

struct net_spec {
	struct str policy; /* compiled (ops/policy.h); empty: no network */
	/* What it was compiled of, for people. */
	const char *preset;
	struct text_list allow, deny;
};

struct create_spec {
	const char *template_; /* host, dir:PATH, snap:SNAPSHOT */
	const char *name, *hostname;
	const char *profile;		     /* dev, locked */
	const char *trace;		     /* full, calls */
	const struct mount_spec *dirs, *ros; /* that can be changed, as a copy; read-only */
	int ndirs, nros;
	/* Defaults of its calls. */
	struct text_list env, labels; /* K=V */
	const char *cwd, *user;
	struct limits_spec limits;
	struct net_spec net;
	const char *owner; /* id of the key that asks; NULL: the host's user */
	bool nested;	   /* sandboxes can be built inside; walls of this one are lower */
	bool ephemeral;	   /* it ends with its creator's connection */
};
