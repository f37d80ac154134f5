/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ready sandbox: built and verified before any client asks for it.
 *
 * An empty file with its id lists it in the directory that the build request names. It accepts only
 * a claim. The first claim makes it equal to a sandbox built just now: its trace begins, its clocks
 * start, and it takes the owner's host name and defaults of calls. The warden alone decides which
 * claim is first. So it does not matter how many clients try, or whether the sandbox's creator
 * still lives. Removing the file ends the sandbox.
 */
#pragma once

#include "warden/warden.h"

/* The sandbox is built: wait for an owner. */
int ready_open(struct warden *w, struct err *e);
/* Handle MSG_C_CLAIM. A failure half way ends the sandbox. */
int ready_claim(struct warden *w, struct str body, struct err *e);
/* Remove the listing, so that no client can claim it. May be called repeatedly. */
void ready_close(struct warden *w);
