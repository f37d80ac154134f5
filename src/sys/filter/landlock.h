/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock, as a second wall behind the mount namespace. Everything below a root stays allowed,
 * with every right. Access by other ways, such as a descriptor of an outside directory, is refused.
 * Signals and abstract sockets stay within the domain.
 *
 * Init enters the domain once, and every command inherits it. One domain per call would not protect
 * the host better, because the namespaces already do. It would also separate the calls of a
 * sandbox: Landlock forbids signals, tracing and /proc lookups between sibling domains. Then
 * `kill`, `fuser` and `gdb -p` could not reach processes of an earlier call.
 */
#pragma once

#include <stdbool.h>

struct landlock {
	/*
	 * The directory below which everything is allowed. The rule belongs to that directory. The
	 * kernel searches for it upwards from a file through all mounts, so later mounts below root
	 * are allowed too. The search does not see a directory that is itself covered by a mount,
	 * so root must not be one.
	 */
	int root_fd;
	/*
	 * The root of the mqueue file system, or FD_NONE. mq_open(3) opens files in a mount of its
	 * own that is attached nowhere, so the search finds only a rule of this directory.
	 */
	int queues_fd;
	/*
	 * Keep signals and abstract sockets in, but leave files alone: a domain that restricts any
	 * file may not mount, so sandboxes inside could not be built.
	 */
	bool only_scopes;
};

/*
 * This cannot be undone. The caller needs CAP_SYS_ADMIN in its user namespace, or NO_NEW_PRIVS.
 * Returns the ABI version, or -errno. Returns 0 if the kernel has no Landlock, or only ABI 1
 * (before Linux 5.19), which cannot allow renames.
 */
int landlock_enter(const struct landlock *l);
