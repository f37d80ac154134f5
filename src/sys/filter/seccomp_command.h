/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter that a command adds to the list inherited from init (seccomp_filter.h). It removes
 * what only init may do, and more in the profile locked. It also reports every exec and every
 * rename to the warden: these calls of the native ABI wait for the listener's holder. The filter is
 * small, because every call installs one.
 */
#pragma once

#include <stdbool.h>

/*
 * Install the filter for the calling thread and all that it starts; this cannot be undone. The
 * caller needs CAP_SYS_ADMIN in its user namespace, or NO_NEW_PRIVS (else -EACCES). -EBUSY if an
 * inherited filter already has a listener. Returns the listener (CLOEXEC), or 0 without `listen`.
 */
int seccomp_command_install(bool locked, bool listen, bool nested);
