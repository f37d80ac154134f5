/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes a call starts: one seccomp listener per call, on execve and execveat. Renames
 * wait there too (watch_rename.h), and requests for user namespaces, which are refused. With the
 * trace of calls only, execs do not wait there, and the watch knows no process.
 *
 * The child that becomes the command installs the filter itself and sends the listener to the
 * warden. From then on the warden holds every exec of the call until the kernel has done it, and
 * writes what the kernel did (watch_pending.c). The warden never changes or refuses an exec that
 * would succeed: the trace observes, it is not a policy.
 *
 * The warden detects the exit of every known process by pidfd, and writes process.exit within about
 * 20 ms.
 *
 * Events, with pids as seen inside:
 *   process.exec  pid, ppid; path: the program that the kernel runs (/proc/PID/exe), for a script
 *                 its interpreter; asked: the path given to exec, if it differs; argv of the new
 *                 program; argv_cut: how many arguments are missing or shortened.
 *                 "certain":false if a debugger inside traced the process: then path and argv were
 *                 read from its memory before the exec, and the exec may have failed.
 *                 Its parent is the call.start event.
 *   process.exit  pid, and code, signal or "unknown":true. Its parent is the last process.exec of
 *                 that process.
 *   trace.gap     lost (a kind), count: events lost for lack of memory or descriptors.
 */
#pragma once

#include "base/limits.h"
#include "loop/loop.h"
#include "trace/log.h"

struct watch;	   /* one per sandbox: the table of processes */
struct watch_call; /* one per call */

/* root_fd: O_PATH of the sandbox's root, borrowed, to resolve program paths (openat2 IN_ROOT). */
int watch_new(struct loop *l, struct trace *t, int root_fd, struct watch **ret);
/* The sandbox has a new root. 0 or -errno. */
int watch_move(struct watch *w, int root_fd);
/*
 * Every process of the sandbox was killed, and the caller is about to wait for init: reap the
 * processes that are held in an exec. Init does not end before that.
 */
void watch_reap(struct watch *w);
/* Free its calls first. */
void watch_free(struct watch *w);
/*
 * Call guard once, with the thread of the first exec, while that exec waits. If guard returns
 * false, the exec fails with EPERM.
 */
void watch_guard(struct watch *w, bool (*guard)(void *ctx, int tid), void *ctx);

/* A rename that waits, and its thread. */
struct watch_rename {
	int tid; /* inside */
	int dirfd[2];
	unsigned flags;
	char path[2][LIMIT_PATH]; /* from, to; as the thread gave them */
};

/* What the watch needs from the warden. */
struct watch_rename_ops {
	/* Order init to make directories renameable. 0 or -errno. */
	int (*prepare)(void *ctx, const struct watch_rename *r);
	/* True if the directory is known to be renameable as it is. False is always safe. */
	bool (*is_pure)(void *ctx, const char *path, uint64_t ino);
	void *ctx;
	int init_pid; /* outside */
};

/* Without these operations, no directory of a lower layer is renameable. */
void watch_renames(struct watch *w, const struct watch_rename_ops *ops);
/* Init has completed the order; err: 0 or an errno, as init reports it. */
void watch_prepared(struct watch *w, int err);
/* True while init handles such an order: the uppers may be half changed. */
bool watch_is_renaming(const struct watch *w);
/* How many orders there have been. */
uint64_t watch_rename_orders(const struct watch *w);

/*
 * Call `refused` with the ctx of the call (watch_call_new) after each user namespace that was
 * refused to it.
 */
void watch_refusals(struct watch *w, void (*refused)(void *ctx));

/*
 * Takes the listener. parent: the call.start event. `idle` runs when the listener has hung up (no
 * process of the call is left) and every exit has been written; never from within watch_call_new().
 */
int watch_call_new(struct watch *w, uint32_t call, uint64_t parent, int listener_fd,
		   void (*idle)(void *ctx), void *ctx, struct watch_call **ret);
/* Set the call, if it was unknown when the listener arrived. Call it before the first exec. */
void watch_call_name(struct watch_call *c, uint32_t call, uint64_t parent);
void watch_call_free(struct watch_call *c);
/* Write the exits that have happened but are not written yet. */
void watch_call_collect(struct watch_call *c);
/* Send a signal to every known process of the call. */
void watch_call_kill(const struct watch_call *c, int sig);
/* The sandbox is dead: write the exits of all remaining processes. `idle` no longer runs. */
void watch_call_finish(struct watch_call *c);

/* Init reaped a process (pid as seen inside) with this exit status (wait(2)). */
void watch_reaped(struct watch *w, int inside_pid, int status);
/* The call that a process (pid outside) belongs to, directly or by its ancestors; or 0. */
uint32_t watch_call_of(const struct watch *w, int outside_pid);
