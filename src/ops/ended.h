/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes that have ended: which there were, and why each ended. Their traces tell. */
#pragma once

#include "ops/cay.h"
#include "trace/story.h"

struct ended_row {
	char id[ID_SIZE];
	uint64_t ended_ns; /* when its trace was last written */
	struct trace_story story;
	char cause[16], reason[256]; /* of the trace, or of the note that its finder left */
	char log[256];		     /* the last words of a warden that died */
};

struct ended_list {
	struct ended_row *rows;
	int n;
};

/* Newest first; most: so many at most, 0 for all. */
int op_ended(struct cay *c, int most, struct ended_list *ret, struct err *e);
void ended_list_done(struct ended_list *l);
DEFINE_AUTO(struct ended_list, ended_list_done)

/*
 * By id, by name (the one that ended last), or by a unique prefix of an id. 1 and the id, 0 where
 * there is none, -1.
 */
int ended_find(struct cay *c, const char *ref, char ret_id[ID_SIZE], struct err *e);

/* Why a sandbox ended. */
struct why_result {
	const char *state; /* running, lost, ended */
	struct ended_row row;
	char snapshot[ID_SIZE]; /* of a lost one: its files; empty: none */
};

/* ref: a sandbox that was lost or has ended; of a running one only its state is told. */
int op_why(struct cay *c, const char *ref, struct why_result *ret, struct err *e);
void why_result_done(struct why_result *r);
DEFINE_AUTO(struct why_result, why_result_done)

struct json;
void json_ended(struct json *j, const struct ended_row *r);
void json_why(struct json *j, const struct why_result *r);
