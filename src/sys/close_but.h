/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * In a child of ours: close all but stdio and these, of which any may be FD_NONE. For the end of
 * what it kept unawares somebody else would wait. Sorts keep. 0 or -errno.
 */
int close_but(int *keep, int n);
