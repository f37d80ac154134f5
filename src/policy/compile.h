/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compile a policy document (docs/policy.md) into the form that policy_decode() reads. Only the
 * command line and the API do this: YAML and JSON never reach the gateway.
 *
 * Errors name the file, the line and column if the format has them, and the place: net.yaml:7:5:
 * rules[1]: unknown key 'host'; did you mean 'hosts'?
 */
#pragma once

#include "base/buf.h"
#include "policy/policy.h"

enum policy_format { POLICY_YAML, POLICY_JSON };

struct policy_preset;

struct policy_document {
	const char *file; /* for messages and rule origins */
	struct str text;
	enum policy_format format;
};

/* Builds one policy. Rules from --deny and --allow come first, then the document's. */
struct policy_builder {
	char name[256];
	enum policy_action def;
	bool has_def, has_document;
	struct policy_limits limits;
	struct buf rules;
	unsigned nrules, ntargets;
};

void policy_builder_init(struct policy_builder *b);
void policy_builder_done(struct policy_builder *b);
DEFINE_AUTO(struct policy_builder, policy_builder_done)
/* At most one document, after all targets. Includes what the document extends. */
int policy_add_document(struct policy_builder *b, const struct policy_document *d, struct err *e);
int policy_add_preset(struct policy_builder *b, const struct policy_preset *p, struct err *e);
/* HOST[:PORT], ADDRESS[:PORT] or a range, as for --allow and --deny. The first match decides. */
int policy_add_target(struct policy_builder *b, enum policy_action action, const char *target,
		      struct err *e);
/* The compiled form, at most LIMIT_POLICY. */
int policy_build(struct policy_builder *b, struct buf *ret, struct err *e);

/* A preset document, built into the program: none, coding, research, open. */
struct policy_preset {
	const char *name;
	struct str text;
};
/* The preset with index i, or NULL after the last. */
const struct policy_preset *policy_preset_at(size_t i);
const struct policy_preset *policy_preset_find(struct str name);
