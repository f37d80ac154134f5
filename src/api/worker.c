/* SPDX-License-Identifier: Apache-2.0 */
#include "api/worker.h"

#include "api/auth.h"
#include "api/e2b/sandboxes.h"
#include "api/server_key.h"
#include "ops/job/spawn.h"
#include "ops/job/worker.h"
#include "ops/key.h"

static int put_key(void *ctx, const struct key_row *row)
{
	return auth_put_key(ctx, row) < 0;
}

static int job_keys(struct job_run *r, struct err *e)
{
	return op_key_list(r->cay, put_key, r->out, e);
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
	return job_worker_run(c, &api_jobs, secret, WORKER_SOCKET, WORKER_CANCEL, e);
}
