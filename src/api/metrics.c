/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "api/access_tell.h"
#include "api/front.h"

void metrics_count(struct metrics *m, const char *method, const char *route, int status)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (m->rows[i].status == status && strcmp(m->rows[i].route, route) == 0 &&
		    strcmp(m->rows[i].method, method) == 0) {
			m->rows[i].n++;
			return;
		}
	/* Routes and statuses are few; more than these are not worth memory. */
	if (i < METRICS_ROWS)
		m->rows[m->n++] = (struct metrics_row){ method, route, status, 1 };
}

int metrics_put(const struct metrics *m, struct buf *out)
{
	int r = buf_printf(out, "# HELP cay_requests_total Requests that have ended. Code 0: the "
				"client left first.\n# TYPE cay_requests_total counter\n");

	for (size_t i = 0; i < m->n && r == 0; i++)
		r = buf_printf(out,
			       "cay_requests_total{method=\"%s\",route=\"%s\",code=\"%d\"} "
			       "%" PRIu64 "\n",
			       m->rows[i].method, m->rows[i].route, m->rows[i].status,
			       m->rows[i].n);
	return r;
}

void api_count(const struct api_request *q, const char *method, const char *route)
{
	metrics_count(&q->front->metrics, method, route, q->http->status);
	access_tell(q, route);
}
