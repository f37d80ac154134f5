/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a port of a sandbox, other than envd's.
 *
 *   port_begin ── box_want: is it running? ── token ── link_dial ── http_proxy
 *
 * Every request is looked at anew, also those that follow on the same connection.
 */
#pragma once

#include "api/front.h"

/* q->id is a well-formed id. */
void port_begin(struct api_request *q, uint16_t port);
/* The sandbox does not run: 502, as E2B's clients know it, or another status where why is our
 * fault.
 */
void port_gone(struct api_request *q, const struct err *why);
