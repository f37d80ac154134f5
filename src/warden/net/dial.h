/* SPDX-License-Identifier: Apache-2.0 */
/* Ports inside, for clients: init connects, and the warden passes the socket to the client. */
#pragma once

#include "warden/warden.h"

int dial_ask(struct client *c, const struct frame *f, struct err *e);
/* MSG_DIALED. Takes the descriptors. */
void dial_answered(struct warden *w, const struct frame *f, int *fds, uint64_t err);
/* The client is gone; NULL: all clients are. */
void dial_forget(struct warden *w, const struct client *c);
