/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes a call starts: one seccomp listener per call, on execve and execveat. Renames
 * wait there too (watch_rename.h).
 *
 * The child that becomes the command installs the filter itself and sends the listener to the
 * warden. From then on the warden holds every exec below the call until the kernel has done it,
 * and writes what the kernel did (watch_pending.c). It never changes or refuses an exec that
 * would succeed: the trace observes, it is not a policy.
 *
 * The exit of every process seen is found by pidfd and written as process.exit, at the latest
 * some 20 ms after it.
 *
 * Events, pids as seen inside:
 *   process.exec  pid, ppid; path: the program that the kernel runs (/proc/PID/exe), of a script
 *                 its interpreter; asked: the path that the program was asked for by, where it
 *                 differs; argv as the new program has it; argv_cut: how many arguments are
 *                 missing or shortened. "certain":false where a debugger inside had the process:
 *                 path and argv are then those that stood in its memory before the exec, and the
 *                 exec may have failed. Its parent is the call.start event.
 *   process.exit  pid, and code, signal or "unknown":true. Its parent is the last
 *                 process.exec of that process.
 *   trace.gap     lost (a kind), count: events that there was no memory or descriptor for.
 */
#pragma once

#include "base/limits.h"
#include "loop/loop.h"
#include "trace/log.h"

struct watch;	   /* one per sandbox: the table of processes */
struct watch_call; /* one per call */

/* root_fd: O_PATH of the sandbox's root, borrowed, to resolve program paths (openat2 IN_ROOT). */
int watch_new(struct loop *l, struct trace *t, int root_fd, struct watch **ret);
/* The sandbox has another root now. 0 or -errno. */
int watch_move(struct watch *w, int root_fd);
/*
 * Every process of the sandbox was killed, and the caller is about to wait for init: reap those
 * that are held in an exec. Init does not end before that.
 */
void watch_reap(struct watch *w);
/* After its calls. */
void watch_free(struct watch *w);
/*
 * Is asked once, with the thread of the first exec that is seen, while it waits. Where it says
 * false that exec fails with EPERM.
 */
void watch_guard(struct watch *w, bool (*guard)(void *ctx, int tid), void *ctx);

/* A rename that a thread inside waits in. */
struct watch_rename {
	int tid; /* inside */
	int dirfd[2];
	unsigned flags;
	char path[2][LIMIT_PATH]; /* from, to; as the thread wrote them */
};

/* `prepare` orders init to make directories renameable; 0 or -errno. Without it, none are. */
void watch_renames(struct watch *w, int (*prepare)(void *ctx, const struct watch_rename *r),
		   void *ctx);
/* Init is done with the order; err: 0 or an errno, as it says. */
void watch_prepared(struct watch *w, int err);
/* True while init has such an order: the uppers may be half changed. */
bool watch_is_renaming(const struct watch *w);

/*
 * Takes the listener. parent: the call.start event. `idle` runs when the listener has hung up
 * (no process of the call is left) and every exit has been written; not from within
 * watch_call_new().
 */
int watch_call_new(struct watch *w, uint32_t call, uint64_t parent, int listener_fd,
		   void (*idle)(void *ctx), void *ctx, struct watch_call **ret);
/* Whose it is, where that was not known when the listener came, before its first exec. */
void watch_call_name(struct watch_call *c, uint32_t call, uint64_t parent);
void watch_call_free(struct watch_call *c);
/* Write the exits that have happened and are not written yet. */
void watch_call_collect(struct watch_call *c);
/* A signal to every process of the call that was seen. */
void watch_call_kill(const struct watch_call *c, int sig);
/* The sandbox is dead: write the exits of all that are left. `idle` does not run any more. */
void watch_call_finish(struct watch_call *c);

/* The exit status (wait(2)) of a process that init reaped, by pid as seen inside. */
void watch_reaped(struct watch *w, int inside_pid, int status);
/* The call that a process (pid outside) belongs to, also by its ancestors, or 0. */
uint32_t watch_call_of(const struct watch *w, int outside_pid);
