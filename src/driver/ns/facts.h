/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs read to learn how much memory and how many processors they have. Without it they
 * size themselves by the host, and the kernel then kills them at the sandbox's limit.
 *
 *   /sys/devices/system/cpu    always: lscpu fails without it
 *   /proc/meminfo              with --memory
 *   /proc/cpuinfo, /proc/stat  with --cpus
 *   /proc/cgroups              with either
 *   /sys/fs/cgroup             with either, in the layout of the host, because runtimes look for
 *                              mounts of the type that /proc/self/cgroup makes them expect
 *
 * All are files of our own on a read-only tmpfs, but /sys/fs/cgroup where the controllers are v2:
 * there it is the sandbox's own group, read-only. Where they are v1, the mounts of type cgroup are
 * covered with our files, so that they show nothing of the host's groups.
 */
#pragma once

#include "driver/ns/launch.h"

/* How many processors the sandbox shows, and init is bound to. */
unsigned facts_cpus(const struct cell_spec *s);
/* True if a limit is to be seen inside. */
bool facts_limited(const struct cell_spec *s);
/* Bind this process, and all that it starts, to as many processors as --cpus allows. */
void facts_pin(const struct cell_spec *s);

/* A new file with its directories below dir_fd. */
int facts_put(int dir_fd, const char *path, const char *text);
/* The files and mounts below /sys/fs/cgroup; sys_fd: the new /sys, attached and writable. */
int facts_groups(struct tree *t, int sys_fd, bool grouped);
/* The file "cgroups" of /proc: which controllers there are, without the host's counts. */
int facts_controllers(int to);
/* What verify may find of all that. Returns the number. */
int facts_expect(struct fixed_mount *out);
