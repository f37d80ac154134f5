/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter by which the warden learns of every exec. It only observes: execve and execveat
 * of the native ABI wait for the holder of the listener, everything else passes.
 */
#pragma once

/*
 * Install the filter for the calling thread and all that it starts; there is no way back.
 * The caller has CAP_SYS_ADMIN in its user namespace or NO_NEW_PRIVS (-EACCES otherwise);
 * -EBUSY where a filter above has a listener already. Returns the listener (CLOEXEC).
 */
int seccomp_exec_listener(void);
