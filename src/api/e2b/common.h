/* SPDX-License-Identifier: Apache-2.0 */
/* What E2B's handlers share. */
#pragma once

#include "api/fields.h"
#include "link/wait.h"
#include "ops/create/options.h"
#include "ops/job/job.h"
#include "ops/order.h"
#include "wire/json_load.h"
#include "wire/json_write.h"

#define E2B_ENVD_VERSION "0.6.13"
enum { E2B_TIMEOUT_S = 300, E2B_TIMEOUT_MOST_S = 30 * 24 * 3600 };

/* A request as the front wrote it. */
struct e2b_ask {
	json_t *all;		    /* owned */
	const char *owner;	    /* id of the key; NULL: sees everything */
	const char *id;		    /* of the path; may be empty */
	unsigned scope;		    /* what the key may do (store/key_limits.h) */
	const json_t *query, *body; /* objects; body may be NULL */
};

int e2b_ask_read(struct job_run *r, struct e2b_ask *ret, struct err *e);
static inline void e2b_ask_done(struct e2b_ask *a)
{
	json_decref(a->all);
}
DEFINE_AUTO(struct e2b_ask, e2b_ask_done)

/* A text of the query, or NULL. */
const char *e2b_query(const struct e2b_ask *a, const char *key);

/* The row of a living sandbox that the asker owns. NOT_FOUND, the same for any reason. */
int e2b_find(struct job_run *r, const struct e2b_ask *a, struct sandbox_row *ret, struct err *e);
/* A request about one sandbox that the asker owns. */
struct e2b_about {
	struct e2b_ask ask;
	struct sandbox_row row;
};

int e2b_about_read(struct job_run *r, struct e2b_about *ret, struct err *e);
void e2b_about_done(struct e2b_about *a);
DEFINE_AUTO(struct e2b_about, e2b_about_done)
int e2b_order(struct job_run *r, const char *id, enum link_order what, uint64_t ms,
	      struct order_result *ret, struct err *e);
/* What its warden says; NOT_FOUND where it just ends. */
int e2b_status(struct job_run *r, const char *id, struct sandbox_status *ret, struct err *e);

/* The answer: a status and JSON, which j has written into body. */
int e2b_answer(struct job_run *r, int status, const struct buf *body, struct err *e);
/* A status without a body. */
int e2b_answer_empty(struct job_run *r, int status, struct err *e);
/* {"sandboxID":…}: what a client needs to use it. */
int e2b_answer_sandbox(struct job_run *r, int status, const char *id, const char *template_,
		       bool is_private, struct err *e);
/* The domain of sandboxes' host names, or null. */
void e2b_put_domain(struct json *j);
/* The same object, as the next value of j. */
void e2b_put_sandbox(struct json *j, const struct job_run *r, const char *id, const char *template_,
		     bool is_private);
/* The members of an entry of a list; an object is open. */
void e2b_put_listed(struct json *j, const struct sandbox_row *row,
		    const struct sandbox_status *status);

/* E2B's name of a template, and ours. NULL: none. */
const char *e2b_template_ours(const char *name);
const char *e2b_template_theirs(const char *ours);
