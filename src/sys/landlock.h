/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock as a second wall behind the mount namespace. Everything beneath a root stays
 * allowed, with every right; what is reached in another way, such as through a descriptor of a
 * directory outside, is refused. Signals and abstract sockets stay within the domain.
 *
 * Init enters the domain, once, and every command inherits it. A domain for each call would
 * be of no use outside (the namespaces hold there) and would part the calls of a sandbox:
 * Landlock lets nobody signal, trace or look up the files of a process in a sibling domain,
 * so that `kill`, `fuser` and `gdb -p` could not reach what an earlier call has left running.
 */
#pragma once

/*
 * root_fd: of the directory below which everything is allowed. The rule is bound to that
 * directory, and looked for from a file upwards through all mounts; what is mounted below it
 * later is allowed too. A directory that something is mounted on is not seen by that search:
 * the root must not be one.
 *
 * There is no way back. The caller has CAP_SYS_ADMIN in its user namespace or NO_NEW_PRIVS.
 * Returns the ABI, 0 where the kernel has no Landlock or one that could not allow renames
 * (ABI 1, before Linux 5.19), or -errno.
 */
int landlock_enter(int root_fd);
