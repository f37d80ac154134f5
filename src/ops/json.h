/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of operations as JSON: one object each, the same text for every front end. Empty
 * texts are null. Times are UTC, durations are milliseconds with a fraction.
 */
#pragma once

#include "ops/apply.h"
#include "ops/calls.h"
#include "ops/copy/copy.h"
#include "ops/create/create.h"
#include "ops/diff.h"
#include "ops/explore.h"
#include "ops/gc.h"
#include "ops/list.h"
#include "ops/net.h"
#include "ops/order.h"
#include "ops/pool/pool.h"
#include "ops/ps.h"
#include "ops/show.h"
#include "ops/snapshot.h"
#include "wire/json_write.h"

void json_created(struct json *j, const struct created *r);
/* The same for a fork, with the layer that it starts from. */
void json_forked(struct json *j, const struct created *r);
/* asked: the warden's reply, or NULL. */
void json_listed(struct json *j, const struct sandbox_row *row,
		 const struct client_question *asked);
void json_shown(struct json *j, const struct show_result *r);
/* What the profile promises but this sandbox lacks, or NULL. */
const char *show_lacks(const struct show_result *r);
void json_process(struct json *j, const struct link_process *p);
void json_call(struct json *j, const struct link_call_row *r);
/* Members of an open object: how a call ended. denied: fields with TAG_DENIED. */
void json_call_result(struct json *j, const struct call_result *r, struct str denied);
/* The same for one refusal, as an object of its own. */
void json_denied(struct json *j, const struct call_denied *d);
/* Which limit its memory reached: call-memory or memory. */
const char *call_limit_name(const struct call_result *r);
void json_order(struct json *j, const struct order_result *r);
void json_snapshot_made(struct json *j, const struct snapshot_result *r);
void json_snapshot(struct json *j, const struct snapshot_row *row);
extern const char *const snapshot_kind_names[SNAPSHOT_KINDS];
void json_rollback(struct json *j, const struct rollback_result *r);
/* done: begin, commit or abort. */
void json_tx(struct json *j, const struct tx_result *r, const char *done);
void json_net_row(struct json *j, const struct net_row *r, bool by_call);
void json_pool(struct json *j, const struct pool_item *it, long keeper);
/* Includes the line counts if they were counted. */
void json_diff_change(struct json *j, const struct diff_change *c);
void json_apply_change(struct json *j, const struct apply_change *c);
/* One branch of an exploration. */
void json_branch(struct json *j, const struct branch *b);
void json_copied(struct json *j, const struct copy_result *r);
void json_gc(struct json *j, const struct gc_result *r);
/* The program and the protocols that it speaks. */
void json_version(struct json *j);
