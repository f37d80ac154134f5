/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/destroy.h"

#include "base/clock.h"
#include "link/wait.h"
#include "ops/layers_free.h"
#include "ops/reconcile.h"
#include "store/snapshots.h"

enum { RETRY_MS = 20, REMOVE_MS = 2000 };

/* A release of the lock gives no reliable event: retry periodically. */
static int lock_within(struct cay *c, const char *id, int wait_ms, int *ret_fd, struct err *e)
{
	uint64_t end = clock_mono_ns() + (uint64_t)wait_ms * NS_PER_MS;

	for (;;) {
		if (state_lock(&c->state, id, ret_fd, e) == 0)
			return 0;
		if (e->kind != ERR_CONFLICT || clock_mono_ns() >= end ||
		    wait_pause(&c->wait, RETRY_MS * NS_PER_MS) < 0)
			return -1;
	}
}

int op_remove(struct cay *c, const char *id, int wait_ms, struct err *e)
{
	int lock;

	if (cay_catalog(c, e) < 0 || lock_within(c, id, wait_ms, &lock, e) < 0)
		return -1;
	if (state_remove(&c->state, id, lock, e) < 0)
		return -1;
	if (catalog_del_sandbox(c->catalog, id, e) < 0)
		return -1;
	layers_free_soon(c->catalog, &c->state);
	return 0;
}

int op_destroy(struct cay *c, const char *id, struct err *e)
{
	struct err refused = { 0 };

	if (state_is_alive(&c->state, id))
		(void)link_end_sandbox(&c->wait, &c->state, id, &refused);
	/*
	 * If the order failed because the warden ended meanwhile, the sandbox is a lost one: remove
	 * it. If another cay removes it now, that cay holds the lock. Only a lock that stays held
	 * makes this a failure.
	 */
	if (op_remove(c, id, REMOVE_MS, e) == 0)
		return 0;
	if (e->kind == ERR_CONFLICT && refused.kind != ERR_NONE) {
		*e = refused;
		return err_ctx(e, "cannot end sandbox '%s'", id);
	}
	return -1;
}

int op_reconcile(struct cay *c, const char *id, struct err *e)
{
	if (cay_catalog(c, e) < 0 || reconcile_one(c->catalog, &c->state, id, e) < 0)
		return -1;
	layers_free_soon(c->catalog, &c->state);
	return 0;
}
