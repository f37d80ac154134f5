/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound on the time of one system call that has no timeout of its own. SIGALRM comes after `ms`
 * and then again and again, so that it also ends a call that begins only after the first signal.
 * For processes of one thread.
 */
#pragma once

#include <setjmp.h>

/*
 * jump NULL: the call fails with EINTR. Else the handler jumps there, for a call that the kernel
 * restarts after every signal; its sigsetjmp() must not save the mask. 0 or -errno.
 */
int patience_begin(int ms, sigjmp_buf *jump);
void patience_end(void);
