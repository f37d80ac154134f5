/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits on a sandbox's groups, in whichever hierarchy has the controller.
 *
 * v2: the controller must be enabled for the children of the caller's own group. The kernel allows
 * that only if the group has no processes of its own. If it holds only us and our parent, both move
 * into a leaf. If it holds other processes, the limit cannot be enforced: we do not move processes
 * that are not ours.
 *
 * v1: cay-ID is made in the controller's hierarchy. The sandbox's first process enters it itself
 * (cgroup_entries); all others start there. A limit of one call is a group call-N below it, which
 * the call's first process enters.
 */
#pragma once

#include "sys/cgroup/cgroup.h"

enum { CGROUP_WHY = 280 };

/* "memory", "pids", "cpu" */
const char *cgroup_controller_name(enum cgroup_controller c);

/*
 * value: bytes of memory (with swap and tmpfs), number of processes and threads, or thousandths of
 * one CPU. On failure `why` gives the reason.
 */
int cgroup_limit(struct cgroup *g, enum cgroup_controller c, uint64_t value, char why[CGROUP_WHY]);

/*
 * Limit the memory of one call. The v2 leaf exists. *ret_entry: the file that the call's first
 * process must write "0" to, or FD_NONE if the process starts in the group.
 */
int cgroup_limit_call(struct cgroup *g, const char *leaf, uint64_t bytes, int *ret_entry,
		      char why[CGROUP_WHY]);

/* cgroup.procs of the v1 groups, for the first process; FD_NONE if not needed. */
int cgroup_entries(const struct cgroup *g, int ret[CGROUP_CONTROLLERS]);

/* The kernel's counts so far. */
struct cgroup_counts {
	uint64_t oom_kills; /* processes that the OOM killer killed */
	uint64_t oom_call;  /* above 0: the call reached its own memory limit */
	uint64_t pids_hits; /* forks refused */
};
/* leaf: of one call, or NULL. Without a group per call, the numbers are the whole sandbox's. */
/* Processor time that a leaf has used. -ENOENT if the kernel does not count it. */
int cgroup_cpu(const struct cgroup *g, const char *leaf, uint64_t *ret_us);
void cgroup_count(const struct cgroup *g, const char *leaf, struct cgroup_counts *ret);

/* The v2 and v1 halves, on a group's descriptor. Tests call them too. */
int cgroup_v2_enable(int own_fd, enum cgroup_controller c, char why[CGROUP_WHY]);
int cgroup_v2_write(int fd, enum cgroup_controller c, uint64_t value, char why[CGROUP_WHY]);
int cgroup_v1_write(int fd, enum cgroup_controller c, uint64_t value, char why[CGROUP_WHY]);
/* The differences between v1 and v2. */
struct cgroup_writer {
	int (*memory)(int fd, const char *bytes);
	int (*cpu)(int fd, uint64_t milli);
};
int cgroup_write_with(const struct cgroup_writer *w, int fd, enum cgroup_controller c,
		      uint64_t value, char why[CGROUP_WHY]);
/* The number after a key in a file of lines "key number", or 0. */
uint64_t cgroup_read_key(int fd, const char *file, const char *key);
