/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that tell programs how much memory and how many processors they have. Without these files,
 * programs size themselves by the host, and the kernel then kills them at the sandbox's limit.
 *
 *   /sys/devices/system/cpu    always: lscpu fails without it
 *   /proc/meminfo              with --memory
 *   /proc/cpuinfo, /proc/stat  with --cpus
 *   /proc/cgroups              with either
 *   /sys/fs/cgroup             with either, in the layout of the host, because runtimes look for
 *                              mounts of the type that /proc/self/cgroup makes them expect
 *
 * All are our own files on a read-only tmpfs, with one exception: if the controllers are v2,
 * /sys/fs/cgroup is the sandbox's own group, read-only. If they are v1, our files cover the mounts
 * of type cgroup, so that the sandbox sees nothing of the host's groups.
 */
#pragma once

#include "driver/ns/launch.h"

/* The number of processors that the sandbox shows, and that init is bound to. */
unsigned facts_cpus(const struct cell_spec *s);
/* True if a limit must be visible inside. */
bool facts_limited(const struct cell_spec *s);
/* Bind this process and its children to as many processors as --cpus allows. */
void facts_pin(const struct cell_spec *s);

/* Make a file, with its directories, below dir_fd. */
int facts_put(int dir_fd, const char *path, const char *text);
/* The files and mounts below /sys/fs/cgroup; sys_fd: the new /sys, attached and writable. */
int facts_groups(struct tree *t, int sys_fd, bool grouped);
/* The file "cgroups" of /proc: the names of the controllers, without the host's counts. */
int facts_controllers(int to);
/* The mounts of these files that verify may find. Returns the number. */
int facts_expect(struct fixed_mount *out);
