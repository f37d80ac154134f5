/* SPDX-License-Identifier: Apache-2.0 */
/* The native API in the workers: one function per kind of job. */
#pragma once

#include "api/e2b/common.h"
#include "ops/create/create_spec.h"

struct policy;

/* A request as the front wrote it. Its query and body were checked against their tables. */
struct v1_ask {
	struct e2b_ask in;
	const char *sub;	/* of the path; may be empty */
	const char *key;	/* Idempotency-Key; NULL: none */
	const json_t *more;	/* from the front itself; may be NULL */
	struct sandbox_row row; /* of the sandbox, after v1_about() */
};

int v1_ask_read(struct job_run *r, struct v1_ask *ret, struct err *e);
/* The same with the sandbox of the path, by id or name: also a lost one. NOT_FOUND. */
int v1_about(struct job_run *r, struct v1_ask *ret, struct err *e);
void v1_ask_done(struct v1_ask *a);
DEFINE_AUTO(struct v1_ask, v1_ask_done)

/* The sandbox that a client may use under this id or name. NOT_FOUND, the same for any reason. */
int v1_find_sandbox(struct job_run *r, const struct v1_ask *a, const char *ref,
		    struct sandbox_row *ret, struct err *e);
/* NOT_FOUND: "what 'ref' not found". */
int v1_unknown(const char *what, const char *code, const char *ref, struct err *e);
/*
 * The message of a taken name has the id of its sandbox, which may be another key's: hide it from
 * keys. Returns -1.
 */
int v1_hide_taken(const struct v1_ask *a, const char *name, struct err *e);
/* The id of a snapshot that the client may use. */
int v1_find_snapshot(struct job_run *r, const struct v1_ask *a, const char *ref, char ret[ID_SIZE],
		     struct err *e);

const char *v1_text(const json_t *o, const char *key); /* or NULL */
uint64_t v1_number(const json_t *o, const char *key);  /* 0: not given */
bool v1_is(const json_t *o, const char *key);
/* Texts of an array; *ret is owned, the texts are borrowed. */
int v1_texts(const json_t *o, const char *key, const char ***ret, int *ret_n, struct err *e);

/* A body of any length, at most this. */
enum { V1_BODY_MOST = 64 << 20 };
int v1_reply(struct job_run *r, int status, struct json *j, struct buf *b, struct err *e);
int v1_reply_empty(struct job_run *r, int status, struct err *e);
/* A file as the body: written from its start, and handed over here. */
int v1_tmp(struct job_run *r, int *ret_fd, struct err *e);
int v1_reply_file(struct job_run *r, int status, const char *type, int *fd, struct err *e);
/* {"items":[ … ],"next":null} around a list. */
void v1_list_begin(struct json *j, struct buf *b);
int v1_list_end(struct job_run *r, struct json *j, struct buf *b, const char *next, struct err *e);

/* A specification of a sandbox, and what it points to. */
struct v1_spec {
	struct create_spec spec;
	struct text_pairs env, labels;
	const char **allow, **deny;
	struct mount_spec *mounts;
	struct buf policy;
	char template_[64];
};
int v1_spec_read(struct job_run *r, const struct v1_ask *a, const json_t *body, struct v1_spec *ret,
		 struct err *e);
void v1_spec_done(struct v1_spec *s);
DEFINE_AUTO(struct v1_spec, v1_spec_done)
/* Compile {preset, policy, allow, deny}; the texts of the lists go into s. */
int v1_policy_read(const struct v1_ask *a, const json_t *body, struct v1_spec *s,
		   struct policy **ret, struct err *e);

int v1_job_find(struct job_run *r, struct err *e);
int v1_job_create(struct job_run *r, struct err *e);
int v1_job_list(struct job_run *r, struct err *e);
int v1_job_get(struct job_run *r, struct err *e);
int v1_job_patch(struct job_run *r, struct err *e);
int v1_job_delete(struct job_run *r, struct err *e);
int v1_job_pause(struct job_run *r, struct err *e);
int v1_job_resume(struct job_run *r, struct err *e);
int v1_job_snapshot(struct job_run *r, struct err *e);
int v1_job_snapshots(struct job_run *r, struct err *e);
int v1_job_snapshot_get(struct job_run *r, struct err *e);
int v1_job_snapshot_delete(struct job_run *r, struct err *e);
int v1_job_rollback(struct job_run *r, struct err *e);
int v1_job_fork(struct job_run *r, struct err *e);
int v1_job_snapshot_fork(struct job_run *r, struct err *e);
int v1_job_tx_begin(struct job_run *r, struct err *e);
int v1_job_tx_commit(struct job_run *r, struct err *e);
int v1_job_tx_abort(struct job_run *r, struct err *e);
int v1_job_calls(struct job_run *r, struct err *e);
int v1_job_call(struct job_run *r, struct err *e);
int v1_job_ps(struct job_run *r, struct err *e);
int v1_job_net(struct job_run *r, struct err *e);
int v1_job_why(struct job_run *r, struct err *e);
int v1_job_ended(struct job_run *r, struct err *e);
int v1_job_diff(struct job_run *r, struct err *e);
int v1_job_trace(struct job_run *r, struct err *e);
int v1_job_trace_verify(struct job_run *r, struct err *e);
int v1_job_policy_get(struct job_run *r, struct err *e);
int v1_job_policy_set(struct job_run *r, struct err *e);
int v1_job_policy_check(struct job_run *r, struct err *e);
int v1_job_pools(struct job_run *r, struct err *e);
int v1_job_pool_set(struct job_run *r, struct err *e);
int v1_job_gc(struct job_run *r, struct err *e);
int v1_job_doctor(struct job_run *r, struct err *e);
int v1_job_version(struct job_run *r, struct err *e);
int v1_job_keys(struct job_run *r, struct err *e);
int v1_job_key_create(struct job_run *r, struct err *e);
int v1_job_key_revoke(struct job_run *r, struct err *e);
