/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the front, as Prometheus reads them. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

struct api_request;

enum { METRICS_ROWS = 1024 };

/* One line: how many requests of a route ended with a status. */
struct metrics_row {
	const char *method, *route; /* of a table of routes: no text of a client */
	int status;
	uint64_t n;
};

struct metrics {
	struct metrics_row rows[METRICS_ROWS];
	size_t n;
};

/* status 0: the client left before an answer. */
void metrics_count(struct metrics *m, const char *method, const char *route, int status);
/* -errno */
int metrics_put(const struct metrics *m, struct buf *out);
/* A request has ended. */
void api_count(const struct api_request *q, const char *method, const char *route);
