/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds the time of one system call that has no timeout of its own. SIGALRM arrives after `ms` and
 * then repeatedly, so that it also ends a call that starts after the first signal. For
 * single-threaded processes.
 */
#pragma once

#include <setjmp.h>

/*
 * jump NULL: the call fails with EINTR. Else the handler jumps there, for a call that the kernel
 * restarts after every signal; its sigsetjmp() must not save the mask. 0 or -errno.
 */
int patience_begin(int ms, sigjmp_buf *jump);
void patience_end(void);
