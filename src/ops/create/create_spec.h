/* SPDX-License-Identifier: Apache-2.0 */
/* The request for a sandbox. All texts are borrowed; NULL means the default. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct request_key; /* store/requests.h */

struct text_list {
	const char *const *items;
	int n;
};

/* A host directory or file to show inside. */
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
	struct str policy; /* compiled policy (ops/policy.h); empty: no network */
	/* The sources of the policy, for display. */
	const char *preset;
	struct text_list allow, deny;
};

struct create_spec {
	const char *template_; /* host, dir:PATH, snap:SNAPSHOT */
	const char *name, *hostname;
	const char *profile;		     /* dev, locked */
	const char *trace;		     /* full, calls */
	const struct mount_spec *dirs, *ros; /* dirs: writable, as a copy; ros: read-only */
	int ndirs, nros;
	bool copy; /* freeze the dirs now, not at the first snapshot */
	/* Defaults for its calls. */
	struct text_list env, labels; /* K=V */
	const char *cwd, *user;
	struct limits_spec limits;
	struct net_spec net;
	const char *owner;		   /* id of the requesting API key; NULL: the host's user */
	const struct request_key *request; /* the client's key of the request, or NULL */
	bool nested;	/* allow sandboxes inside this one; weakens its isolation */
	bool ephemeral; /* it ends with its creator's connection */
};
