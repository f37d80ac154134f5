/* SPDX-License-Identifier: Apache-2.0 */
#include "api/worker.h"

#include "api/auth.h"
#include "api/e2b/sandboxes.h"
#include "api/server_key.h"
#include "ops/job/spawn.h"
#include "ops/job/worker.h"
#include "ops/key.h"

struct key_list {
	struct buf *out;
	struct key_limits server;
	bool failed;
};

static int put_key(void *ctx, const struct key_row *row)
{
	struct key_list *l = ctx;
	struct key_limits limits = l->server;

	key_limits_merge(&limits, &row->limits);
	l->failed = auth_put_key(l->out, row, &limits) < 0;
	return l->failed;
}

/* All or none: a list that is cut would end the streams of the keys that are missing. */
static int job_keys(struct job_run *r, struct err *e)
{
	struct key_list l = { .out = r->out };

	if (cay_catalog(r->cay, e) < 0 ||
	    catalog_server_limits(r->cay->catalog, &l.server, e) < 0 ||
	    op_key_list(r->cay, put_key, &l, e) < 0)
		return -1;
	return l.failed ? err_set(e, ERR_FAILED, "there are too many keys") : 0;
}

static const struct job_kind kinds[] = {
	{ "keys", JOB_READ_ONLY, job_keys },
	{ "e2b.create", 0, e2b_create },
	{ "e2b.list", JOB_READ_ONLY, e2b_list },
	{ "e2b.info", JOB_READ_ONLY, e2b_info },
	{ "e2b.kill", JOB_EXCLUSIVE, e2b_kill },
	{ "e2b.timeout", 0, e2b_timeout },
	{ "e2b.refresh", 0, e2b_refresh },
	{ "e2b.pause", JOB_EXCLUSIVE, e2b_pause },
	{ "e2b.resume", JOB_EXCLUSIVE, e2b_resume },
	{ "e2b.connect", JOB_EXCLUSIVE, e2b_connect },
	{ "e2b.link", JOB_READ_ONLY, e2b_link },
	{ "e2b.network", JOB_EXCLUSIVE, e2b_network },
	{ "e2b.snapshot", JOB_EXCLUSIVE, e2b_snapshot },
	{ "e2b.snapshots", JOB_READ_ONLY, e2b_snapshots },
	{ "e2b.snapshot.remove", 0, e2b_snapshot_remove },
	{ "e2b.fork", JOB_EXCLUSIVE, e2b_fork },
};
const struct job_table api_jobs = { kinds, ARRAY_LEN(kinds) };

int api_worker_run(struct cay *c, struct err *e)
{
	uint8_t secret[SERVER_SECRET];

	if (server_key_load(&c->state, secret, e) < 0)
		return -1;
	return job_worker_run(c, &api_jobs, secret, WORKER_SOCKET, WORKER_CANCEL, e);
}
