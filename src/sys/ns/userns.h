/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces and their id maps. All return a descriptor or 0, or -errno. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum { USERNS_IDS = 65536 };

/* One line of a map: `count` ids from `inside` map to those from `outside`. */
struct idmap {
	uint32_t inside, outside, count;
};

/* A user namespace without processes; the same map for users and groups. Needs root. */
int userns_new(const struct idmap *map, int n);
/*
 * The same, owned by a user of its own. The kernel charges per-user resources (inotify, namespaces,
 * queues, signals) to the owner of a namespace too. If root owned all, one sandbox could use up the
 * share of all others and of the host.
 */
int userns_new_owned(const struct idmap *map, int n, uid_t owner);
/*
 * Limit the namespace to a part of the owner's inotify watches. Call inside the namespace, with a
 * writable /proc/sys.
 */
int userns_bound_watches(int knobs_fd);
/* The same for namespaces below it, which a sandbox with --nested may make. */
int userns_bound_nesting(int knobs_fd);
/*
 * A map that swaps `owner` and `user`, and keeps all other ids of the range. Ids outside the range
 * map to nobody. Returns the number of lines used.
 */
int userns_swap(struct idmap map[5], uint32_t base, uint32_t owner, uint32_t user);

/* Map the only id that an unprivileged process may map: proc_fd is /proc/PID. */
int userns_map_self(int proc_fd, uint32_t inside, uid_t uid, gid_t gid);
