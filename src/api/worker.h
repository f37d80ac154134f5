/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of the server: the handlers behind the routes. */
#pragma once

#include "ops/job/job.h"

extern const struct job_table api_jobs;

int api_worker_run(struct cay *c, struct err *e);
