/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of sandboxes that are made over HTTP. */
#pragma once

#include "ops/create/create_spec.h"
#include "ops/job/job.h"

/*
 * Fill in what was not asked for, by the key and the server, and refuse what the key may not have:
 * NOT_ALLOWED, or LIMIT if its quotas are reached. The transaction of the creation checks again.
 * owner: id of the key; NULL: the host's user.
 */
int api_limits(struct job_run *r, const char *owner, struct limits_spec *l, struct err *e);
/* Say once on stderr which limits this host cannot enforce. Clients can do nothing about it. */
void api_limits_warn(const struct warnings *w);
