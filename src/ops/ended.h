/* SPDX-License-Identifier: Apache-2.0 */
/* Lists ended sandboxes and why each ended, from their traces. */
#pragma once

#include "ops/cay.h"
#include "trace/story.h"

struct ended_row {
	char id[ID_SIZE];
	uint64_t ended_ns; /* time of the last write to its trace */
	struct trace_story story;
	char cause[16], reason[256]; /* from the trace, or from the note of reconcile */
	char log[256];		     /* the last log lines of a warden that died */
};

struct ended_list {
	struct ended_row *rows;
	int n;
};

/* Reads the end of a dead sandbox from its trace and the note beside it. */
void ended_row_read(const struct state *s, const char *id, struct ended_row *ret);

/* Newest first. most: the maximum number, 0 for all. */
int op_ended(struct cay *c, int most, struct ended_list *ret, struct err *e);
void ended_list_done(struct ended_list *l);
DEFINE_AUTO(struct ended_list, ended_list_done)

/*
 * Finds an ended sandbox by id, by name (the most recent), or by a unique prefix of an id. 1 and
 * the id, 0 if there is none, -1.
 */
int ended_find(struct cay *c, const char *ref, char ret_id[ID_SIZE], struct err *e);

/* Why a sandbox ended. */
struct why_result {
	const char *state; /* running, lost, ended */
	struct ended_row row;
	char snapshot[ID_SIZE]; /* of a lost sandbox: the snapshot with its files; empty: none */
};

/* ref: a lost or ended sandbox. For a running sandbox only the state is filled in. */
int op_why(struct cay *c, const char *ref, struct why_result *ret, struct err *e);
void why_result_done(struct why_result *r);
DEFINE_AUTO(struct why_result, why_result_done)

struct json;
void json_ended(struct json *j, const struct ended_row *r);
void json_why(struct json *j, const struct why_result *r);
