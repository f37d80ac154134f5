/* SPDX-License-Identifier: Apache-2.0 */
#include "api/route.h"

#include "api/front_handlers.h"
#include "base/cleanup.h"

const struct route routes[] = {
	{ "GET", "/health", NULL, front_health, ROUTE_OPEN },
	{ "GET", "/ready", NULL, front_is_ready, ROUTE_OPEN },
	{ "GET", "/metrics", NULL, front_metrics, 0 },
	/* E2B, of the newest and of older clients */
	{ "POST", "/v2/sandboxes", "e2b.create", NULL, ROUTE_BODY | ROUTE_CREATES },
	{ "POST", "/sandboxes", "e2b.create", NULL, ROUTE_BODY | ROUTE_CREATES },
	{ "GET", "/v2/sandboxes", "e2b.list", NULL, 0 },
	{ "GET", "/sandboxes", "e2b.list", NULL, 0 },
	{ "GET", "/sandboxes/metrics", "e2b.metrics.list", NULL, 0 },
	{ "GET", "/sandboxes/{id}", "e2b.info", NULL, 0 },
	{ "GET", "/sandboxes/{id}/metrics", "e2b.metrics", NULL, 0 },
	{ "DELETE", "/sandboxes/{id}", "e2b.kill", NULL, 0 },
	{ "POST", "/sandboxes/{id}/timeout", "e2b.timeout", NULL, ROUTE_BODY },
	{ "POST", "/sandboxes/{id}/refreshes", "e2b.refresh", NULL, ROUTE_BODY },
	{ "POST", "/sandboxes/{id}/pause", "e2b.pause", NULL, ROUTE_BODY },
	{ "POST", "/sandboxes/{id}/resume", "e2b.resume", NULL, ROUTE_BODY },
	{ "POST", "/v2/sandboxes/{id}/connect", "e2b.connect", NULL, ROUTE_BODY },
	{ "POST", "/sandboxes/{id}/connect", "e2b.connect", NULL, ROUTE_BODY },
	{ "PUT", "/sandboxes/{id}/network", "e2b.network", NULL, ROUTE_BODY | ROUTE_NETWORK },
	{ "POST", "/sandboxes/{id}/snapshots", "e2b.snapshot", NULL, ROUTE_BODY | ROUTE_SNAPSHOT },
	{ "GET", "/snapshots", "e2b.snapshots", NULL, 0 },
	{ "DELETE", "/templates/{id}", "e2b.snapshot.remove", NULL, ROUTE_SNAPSHOT },
	{ "POST", "/sandboxes/{id}/fork", "e2b.fork", NULL, ROUTE_BODY | ROUTE_CREATES },
	{ "GET", "/secrets", "e2b.secrets", NULL, 0 },
	{ "POST", "/secrets", "e2b.secret.create", NULL, ROUTE_BODY },
	{ "GET", "/secrets/{id}", "e2b.secret.info", NULL, 0 },
	{ "POST", "/secrets/{id}", "e2b.secret.update", NULL, ROUTE_BODY },
	{ "DELETE", "/secrets/{id}", "e2b.secret.remove", NULL, 0 },
};
const size_t nroutes = ARRAY_LEN(routes);
