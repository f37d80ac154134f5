/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of a seccomp listener (seccomp_command.h makes one). */
#pragma once

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

/* Buffers of the kernel's sizes, which may exceed those of our headers. */
struct listener_bufs {
	struct seccomp_notif_sizes sizes;
	struct seccomp_notif *notif;
	struct seccomp_notif_resp *resp;
};

int listener_bufs_init(struct listener_bufs *b);
void listener_bufs_done(struct listener_bufs *b);

/* The two tasks alternate: let them wake each other on one CPU if the kernel can (6.6). */
void listener_sync_wake_up(int fd);
/*
 * Receive the next waiting call in b->notif. 0 or -errno; -ENOENT if its task was killed. -EINTR if
 * nothing waits: the kernel has no non-blocking RECV, and a compromised init can keep a copy of the
 * listener and receive the call that poll() announced to us.
 */
enum { LISTENER_RECEIVE_MS = 20 };
int listener_receive(int fd, struct listener_bufs *b);
/* True if the task still waits. */
bool listener_is_valid(int fd, uint64_t id);
/* Let the kernel execute the system call. 0, or -ENOENT if the task was killed. */
int listener_continue(int fd, struct listener_bufs *b, uint64_t id);
/* Make the system call fail with err (positive). */
int listener_refuse(int fd, struct listener_bufs *b, uint64_t id, int err);
