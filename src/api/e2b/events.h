/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a process as JSON, and the headers that ask for them. */
#pragma once

#include "http/request.h"

int event_start(struct buf *out, int pid);
/* field: stdout, stderr or pty */
int event_data(struct buf *out, const char *field, struct str data);
/* status: as of wait(2) */
int event_end(struct buf *out, int status);
/* A whole number below a billion; 0: none. */
uint64_t event_header_number(struct http_request *r, const char *name);
