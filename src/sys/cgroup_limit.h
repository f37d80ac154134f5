/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits on the groups of a sandbox, in whichever hierarchy has the controller.
 *
 * v2: the controller must be enabled for the children of the caller's own group, which the
 * kernel allows only where that group has no processes of its own. Where all of them are we
 * and our parent, both step aside into a leaf; where others are there too, the limit cannot
 * be enforced, and we do not move what is not ours.
 *
 * v1: cay-ID is made in the controller's own hierarchy; the first process of the sandbox
 * enters by itself (cgroup_entries), all others are born there. A limit of one call is a
 * group call-N below it, which the call's first process enters.
 */
#pragma once

#include "sys/cgroup.h"

enum { CGROUP_WHY = 280 };

/* "memory", "pids", "cpu" */
const char *cgroup_controller_name(enum cgroup_controller c);

/*
 * value: bytes of memory (with swap and tmpfs), processes and threads, or thousandths of one
 * CPU. On failure `why` says what stands in the way.
 */
int cgroup_limit(struct cgroup *g, enum cgroup_controller c, uint64_t value, char why[CGROUP_WHY]);

/*
 * Memory of one call. The v2 leaf exists. *ret_entry: what the call's first process must write
 * "0" to, or FD_NONE where it is born in the group.
 */
int cgroup_limit_call(struct cgroup *g, const char *leaf, uint64_t bytes, int *ret_entry,
		      char why[CGROUP_WHY]);

/* cgroup.procs of the v1 groups there are, for the first process; FD_NONE where none is needed. */
int cgroup_entries(const struct cgroup *g, int ret[CGROUP_CONTROLLERS]);

/* What the kernel has counted so far. */
struct cgroup_counts {
	uint64_t oom_kills; /* processes killed for lack of memory */
	uint64_t oom_call;  /* more than 0: the call's own memory limit was reached */
	uint64_t pids_hits; /* forks refused */
};
/* leaf: of one call, or NULL. Where calls cannot be told apart the numbers are the sandbox's. */
void cgroup_count(const struct cgroup *g, const char *leaf, struct cgroup_counts *ret);

/* The halves; each on the descriptor of a group. Also what tests call. */
int cgroup_v2_enable(int own_fd, enum cgroup_controller c, char why[CGROUP_WHY]);
int cgroup_v2_write(int fd, enum cgroup_controller c, uint64_t value, char why[CGROUP_WHY]);
int cgroup_v1_write(int fd, enum cgroup_controller c, uint64_t value, char why[CGROUP_WHY]);
/* What differs between them. */
struct cgroup_writer {
	int (*memory)(int fd, const char *bytes);
	int (*cpu)(int fd, uint64_t milli);
};
int cgroup_write_with(const struct cgroup_writer *w, int fd, enum cgroup_controller c,
		      uint64_t value, char why[CGROUP_WHY]);
/* The number after a key in a file of lines "key number", or 0. */
uint64_t cgroup_read_key(int fd, const char *file, const char *key);
