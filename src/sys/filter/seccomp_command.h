/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter that a command adds to the list inherited from init (seccomp_filter.h). It removes
 * what only init may do, and more in the profile locked. Some calls of the native ABI wait for the
 * listener's holder, the warden: execs, renames, and requests for a new user namespace, which the
 * warden refuses and explains. The filter is small, because every call installs one.
 */
#pragma once

#include <stdbool.h>

/* The calls that wait. */
enum seccomp_listen {
	SECCOMP_LISTEN_NONE,  /* no listener: a new user namespace is EPERM at once */
	SECCOMP_LISTEN_FILES, /* renames and user namespaces */
	SECCOMP_LISTEN_EXECS, /* execs too */
};

/*
 * Install the filter for the calling thread and all that it starts; this cannot be undone. The
 * caller needs CAP_SYS_ADMIN in its user namespace, or NO_NEW_PRIVS (else -EACCES). -EBUSY if an
 * inherited filter already has a listener. Returns the listener (CLOEXEC), or 0 without a listener.
 */
int seccomp_command_install(bool locked, enum seccomp_listen listen, bool nested);
