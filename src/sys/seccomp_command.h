/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command has on top of the list that it inherits from init (seccomp_filter.h): it loses
 * what only init may do, and in the profile locked some more. And by the same filter the warden
 * learns of every exec: execve and execveat of the native ABI wait for the holder of the
 * listener. It is small, because every call installs one.
 */
#pragma once

#include <stdbool.h>

/*
 * Install the filter for the calling thread and all that it starts; there is no way back.
 * The caller has CAP_SYS_ADMIN in its user namespace or NO_NEW_PRIVS (-EACCES otherwise);
 * -EBUSY where a filter above has a listener already. Returns the listener (CLOEXEC), or 0
 * where none is asked for.
 */
int seccomp_command_install(bool locked, bool listen);
