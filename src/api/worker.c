/* SPDX-License-Identifier: Apache-2.0 */
#include "api/worker.h"

#include "api/auth.h"
#include "api/e2b/sandboxes.h"
#include "api/server_key.h"
#include "api/v1/work.h"
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
	{ "e2b.signed", JOB_READ_ONLY, e2b_signed },
	{ "e2b.link", JOB_READ_ONLY, e2b_link },
	{ "e2b.wake", JOB_EXCLUSIVE, e2b_wake },
	{ "e2b.metrics", JOB_READ_ONLY, e2b_metrics },
	{ "e2b.metrics.list", JOB_READ_ONLY, e2b_metrics_list },
	{ "e2b.network", JOB_EXCLUSIVE, e2b_network },
	{ "e2b.snapshot", JOB_EXCLUSIVE, e2b_snapshot },
	{ "e2b.snapshots", JOB_READ_ONLY, e2b_snapshots },
	{ "e2b.snapshot.remove", 0, e2b_snapshot_remove },
	{ "e2b.fork", JOB_EXCLUSIVE, e2b_fork },
	{ "v1.find", JOB_READ_ONLY, v1_job_find },
	{ "v1.create", 0, v1_job_create },
	{ "v1.list", JOB_READ_ONLY, v1_job_list },
	{ "v1.get", JOB_READ_ONLY, v1_job_get },
	{ "v1.patch", 0, v1_job_patch },
	{ "v1.delete", JOB_EXCLUSIVE, v1_job_delete },
	{ "v1.pause", JOB_EXCLUSIVE, v1_job_pause },
	{ "v1.resume", JOB_EXCLUSIVE, v1_job_resume },
	{ "v1.snapshot", JOB_EXCLUSIVE, v1_job_snapshot },
	{ "v1.snapshots", JOB_READ_ONLY, v1_job_snapshots },
	{ "v1.snapshot.get", JOB_READ_ONLY, v1_job_snapshot_get },
	{ "v1.snapshot.delete", 0, v1_job_snapshot_delete },
	{ "v1.snapshot.fork", 0, v1_job_snapshot_fork },
	{ "v1.rollback", JOB_EXCLUSIVE, v1_job_rollback },
	{ "v1.fork", JOB_EXCLUSIVE, v1_job_fork },
	{ "v1.tx.begin", JOB_EXCLUSIVE, v1_job_tx_begin },
	{ "v1.tx.commit", JOB_EXCLUSIVE, v1_job_tx_commit },
	{ "v1.tx.abort", JOB_EXCLUSIVE, v1_job_tx_abort },
	{ "v1.calls", JOB_READ_ONLY, v1_job_calls },
	{ "v1.call", JOB_READ_ONLY, v1_job_call },
	{ "v1.ps", JOB_READ_ONLY, v1_job_ps },
	{ "v1.net", JOB_READ_ONLY, v1_job_net },
	{ "v1.why", JOB_READ_ONLY, v1_job_why },
	{ "v1.ended", JOB_READ_ONLY, v1_job_ended },
	{ "v1.diff", JOB_READ_ONLY | JOB_LONG, v1_job_diff },
	{ "v1.trace", JOB_READ_ONLY, v1_job_trace },
	{ "v1.trace.verify", JOB_READ_ONLY | JOB_LONG, v1_job_trace_verify },
	{ "v1.policy.get", JOB_READ_ONLY, v1_job_policy_get },
	{ "v1.policy.set", JOB_EXCLUSIVE, v1_job_policy_set },
	{ "v1.policy.check", JOB_READ_ONLY, v1_job_policy_check },
	{ "v1.pools", JOB_READ_ONLY, v1_job_pools },
	{ "v1.pool.set", JOB_LONG, v1_job_pool_set },
	{ "v1.gc", JOB_LONG, v1_job_gc },
	{ "v1.doctor", JOB_READ_ONLY | JOB_LONG, v1_job_doctor },
	{ "v1.version", JOB_READ_ONLY, v1_job_version },
	{ "v1.keys", JOB_READ_ONLY, v1_job_keys },
	{ "v1.key.create", 0, v1_job_key_create },
	{ "v1.key.revoke", 0, v1_job_key_revoke },
	{ "e2b.secret.create", 0, e2b_secret_create },
	{ "e2b.secret.update", 0, e2b_secret_update },
	{ "e2b.secret.info", JOB_READ_ONLY, e2b_secret_info },
	{ "e2b.secret.remove", 0, e2b_secret_remove },
	{ "e2b.secrets", JOB_READ_ONLY, e2b_secrets },
};
const struct job_table api_jobs = { kinds, ARRAY_LEN(kinds) };

int api_worker_run(struct cay *c, struct err *e)
{
	uint8_t secret[SERVER_SECRET];

	if (server_key_load(&c->state, secret, e) < 0)
		return -1;
	c->config.notes_demand = true;
	return job_worker_run(c, &api_jobs, secret, WORKER_SOCKET, WORKER_CANCEL, e);
}
