/* SPDX-License-Identifier: Apache-2.0 */
/* The namespace driver's part of a cell and of a generation. Internal to ns/. */
#pragma once

#include "base/cleanup.h"
#include "driver/driver.h"
#include "sys/cgroup/cgroup.h"

struct launched;

/* What the driver needs to make the next generation. */
struct cell_keep {
	int mount_ns; /* where the running one was assembled; the next starts from a copy */
	int outer_ns; /* user namespace that owns it; FD_NONE: ours */
	int user_ns;  /* user namespace of the workload */
	int owner_ns[CELL_MOUNTS]; /* id map of a mount with an owner of its own */
	int mount_fd[CELL_MOUNTS]; /* the mounts of the generation that init is in */
	pid_t ending[16]; /* helpers of earlier generations that are still cleaning up; 0: none */
	pid_t ready;	  /* helper that waits for the order to make the next one; 0: none */
	int ready_fd;	  /* socket to it */
};

struct generation {
	int mount_ns;		   /* for init to enter */
	int base_ns;		   /* where it was assembled */
	int root_fd;		   /* its root, for init to change to */
	int devpts_fd;		   /* where terminals are made in it */
	int mount_fd[CELL_MOUNTS]; /* by mount */
	int helper_fd; /* the helper stays until this is closed, because its cleanup takes long */
	unsigned number;
	bool left; /* enter was called: this is now the last generation, not the next */
};

struct ns_cell {
	struct cell pub;
	const struct cell_events *events;
	int pidfd;     /* of init */
	int stream_fd; /* to init, until the warden takes ownership */
	int root_fd;   /* O_PATH of the root inside */
	int devpts_fd; /* where terminals are made */
	int mount_ns;  /* of the generation that init is in */
	struct cgroup cgroup;
	bool has_cgroup;
	struct cell_keep keep;
	struct launched *launched; /* what verify compares with; NULL: everything is verified */
	int net_fds[NET_FDS];	   /* FD_NONE without a network */
};

static inline struct ns_cell *ns_cell(const struct cell *c)
{
	return container_of(c, struct ns_cell, pub);
}

/* cell.c */
void ns_cell_init(struct ns_cell *c);
void ns_cell_close(struct ns_cell *c);
struct generation *generation_new(void);
/* Close what it holds; it can be reused. */
void generation_close(struct generation *g);

/* The functions of the driver table, each in its own file. */
int ns_verify(struct cell *c, enum verify_stage stage, pid_t call, struct err *e);
int ns_claim(struct cell *c, const struct cell_spec *spec, bool renamed, struct err *e);
int ns_renew(struct cell *c, const struct cell_spec *spec, const struct cell_change *what,
	     struct generation **ret, struct err *e);
void ns_renew_ahead(struct cell *c, const struct cell_spec *spec);
int ns_seal(struct cell *c, const struct generation *left, const bool *which, struct err *e);
int ns_enter(struct cell *c, struct generation *g, struct err *e);
void ns_stay(struct cell *c, struct generation *g);
void ns_drop(struct cell *c, struct generation *g);
int ns_keep_fds(const struct cell *c, const struct generation *left, int *fds, int most);
int ns_as_owner(struct cell *c);
int ns_group_open(struct cell *c, const char *name, int *ret_fd);
int ns_group_limit(struct cell *c, const char *name, uint64_t bytes, int *ret_entry,
		   char why[CELL_WHY]);
int ns_group_kill(struct cell *c, const char *name);
void ns_group_count(struct cell *c, const char *name, struct group_counts *ret);
int ns_group_cpu(struct cell *c, const char *name, uint64_t *ret_us);
int ns_group_pids(struct cell *c, const char *name, long *pids, int most);
int ns_group_remove(struct cell *c, const char *name);
int ns_freeze(struct cell *c, bool on, int wait_ms);
int ns_others(struct cell *c, long *ret_pid);
int ns_pids(struct cell *c, long *pids, int most);
int ns_terminal(struct cell *c, int *ret_master, int *ret_slave);
/* End the helpers of renew and wait for them. */
void renew_reap(struct ns_cell *c);

extern const struct driver ns_driver;
