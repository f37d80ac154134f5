/* SPDX-License-Identifier: Apache-2.0 */
/* Host settings that strengthen or weaken the isolation of sandboxes, and the host's limits. */
#pragma once

#include <stdint.h>

#include "sys/probe/probe.h"

/* Numbers are -1 if this kernel has no such setting. */
struct probe_knobs {
	long dmesg_restrict, ptrace_scope, bpf_disabled, io_uring_disabled, tiocsti;
	long ksm;
	bool swap;
	char core_helper[160]; /* the host's core dump handler, or empty */
	char modules[160];     /* risky module families that can be loaded, separated by blanks */
	bool core_socket;      /* the handler is a socket, not a program */
};

struct probe_limits {
	uint64_t files, processes; /* hard limits of the caller; UINT64_MAX: none */
	long inotify_watches, inotify_instances, pid_max, net_namespaces;
	uint64_t memory_bytes; /* of the host */
	uint64_t core;	       /* hard limit on core files; UINT64_MAX: none */
};

bool probe_has_swap(struct str swaps);
/* Families in modules.dep that no `install NAME /bin/false` in modprobe.d blocks. */
void probe_risky_modules(struct str dep, struct str modprobe, char *out, size_t size);
/* Parse /proc/sys/kernel/core_pattern. */
void probe_core(const char *pattern, struct probe_knobs *ret);
void probe_knobs(struct probe_knobs *ret, const char *release);
void probe_limits(struct probe_limits *ret);
