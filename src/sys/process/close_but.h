/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * In a child: close all descriptors except stdio and `keep`, whose entries may be FD_NONE. A
 * descriptor kept by accident would make another process wait for its end. Sorts keep. 0 or -errno.
 */
int close_but(int *keep, int n);
