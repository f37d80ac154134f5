/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The access log: one line of JSON per request. The front tells what happened, the supervisor
 * writes it, so that a front that was taken over cannot change earlier lines. A log that cannot be
 * written, such as a full disk or pipe, loses lines and stops nobody; the next line tells how many.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* One request, as the front tells it. Texts of clients are not among them. */
struct access_record {
	char request[24], method[12], route[80], key[24], sandbox[24], address[48];
	uint64_t status; /* 0: the client left before an answer */
	uint64_t us, bytes_in, bytes_out;
	uint64_t dropped; /* records before this one that the front could not tell */
};

int access_record_put(struct buf *out, const struct access_record *r);
/* -EBADMSG if a field is unknown, too long or not printable ASCII. */
int access_record_read(struct str body, struct access_record *ret);

struct access_log {
	const char *path; /* borrowed; "-": stdout; NULL: no log */
	int fd;
	uint64_t dropped;
	bool torn; /* the last line was written in part */
};

/* Open the file, or open it again after it was renamed. On failure the old one stays. */
int access_log_open(struct access_log *l, struct err *e);
void access_log_write(struct access_log *l, const struct access_record *r);
void access_log_close(struct access_log *l);
