/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the host that make the wall around a sandbox thicker or thinner, and its limits. */
#pragma once

#include <stdint.h>

#include "sys/probe.h"

/* Numbers are -1 where this kernel has no such setting. */
struct probe_knobs {
	long dmesg_restrict, ptrace_scope, bpf_disabled, io_uring_disabled, tiocsti;
	long ksm;
	bool swap;
	char core_helper[160]; /* what crashes on this host are told to, or empty */
	char modules[160];     /* risky families that can be loaded, with a blank between */
	bool core_socket;      /* it is a server's socket, not a program that is started */
};

struct probe_limits {
	uint64_t files, processes; /* hard limits of the caller; UINT64_MAX: none */
	long inotify_watches, inotify_instances, pid_max, net_namespaces;
	uint64_t memory_bytes; /* of the host */
	uint64_t core;	       /* hard limit on core files, likewise */
};

bool probe_has_swap(struct str swaps);
/* Families of modules.dep that no `install NAME /bin/false` of modprobe.d keeps out. */
void probe_risky_modules(struct str dep, struct str modprobe, char *out, size_t size);
/* What /proc/sys/kernel/core_pattern says. */
void probe_core(const char *pattern, struct probe_knobs *ret);
void probe_knobs(struct probe_knobs *ret, const char *release);
void probe_limits(struct probe_limits *ret);
