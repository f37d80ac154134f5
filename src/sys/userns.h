/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces and their id maps. All return a descriptor or 0, or -errno. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum { USERNS_IDS = 65536 };

/* One line of a map: `count` ids from `inside` on are those from `outside` on. */
struct idmap {
	uint32_t inside, outside, count;
};

/* A user namespace that nobody is in, with the same map for users and groups. Needs root. */
int userns_new(const struct idmap *map, int n);
/*
 * The same, belonging to a user who is nobody else. What the kernel counts per user (inotify,
 * namespaces, queues, signals) it counts for the owner of a namespace too: root's own share would
 * be used up by one sandbox for all others and for the host.
 */
int userns_new_owned(const struct idmap *map, int n, uid_t owner);
/* A share of the owner's inotify; called within the namespace, with a /proc/sys that can be
 * written. */
int userns_bound_watches(int knobs_fd);
/*
 * The map by which the files of `owner` appear as those of `user` inside, and the other way
 * round, and all others as they are; ids outside the range are nobody's. Returns lines used.
 */
int userns_swap(struct idmap map[5], uint32_t base, uint32_t owner, uint32_t user);

/* Map the one id that an unprivileged process may: dir_fd is /proc/PID. */
int userns_map_self(int proc_fd, uint32_t inside, uid_t uid, gid_t gid);
