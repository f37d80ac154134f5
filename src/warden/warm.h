/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ready sandbox: built and looked at before anybody has asked for it.
 *
 * It is listed by an empty file of its id in the directory that it was told of, and answers to
 * nothing but a claim. The first claim makes it what it would be if it had been built just now:
 * its trace begins, its clocks start, host name and defaults of calls are the owner's. The
 * warden alone decides who is first, so that it does not matter how many try, nor what happens
 * to whoever had it made. Who takes the file away takes the sandbox with it.
 */
#pragma once

#include "warden/warden.h"

/* It is built: wait for an owner. */
int warm_open(struct warden *w, struct err *e);
/* MSG_C_CLAIM. What fails half way ends the sandbox. */
int warm_claim(struct warden *w, struct str body, struct err *e);
/* It is not for anybody to claim any more. Any number of times. */
void warm_close(struct warden *w);
