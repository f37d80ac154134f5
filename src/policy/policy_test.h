/* SPDX-License-Identifier: Apache-2.0 */
/* Policies from text, for tests. */
#pragma once

#include "policy/compile.h"
#include "t.h"
#include "wire/host.h"

/* Policies of one test, freed at process exit; reachable, so that leak checkers are silent. */
enum { POLICIES = 4096 };
static struct policy *policies[POLICIES] __attribute__((unused));
static int npolicies __attribute__((unused));

/* Compile and decode. On failure NULL, and *e has the error. */
static inline struct policy *try_policy(const char *yaml, enum policy_format format, struct err *e)
{
	struct policy_document d = { .file = "p.yaml", .text = str_of(yaml), .format = format };
	struct buf out = BUF_INIT(LIMIT_POLICY);
	struct policy_builder b;
	struct policy *p = NULL;

	policy_builder_init(&b);
	if (policy_add_document(&b, &d, e) == 0 && policy_build(&b, &out, e) == 0)
		CHECK(policy_decode(buf_str(&out), &p) == 0);
	policy_builder_done(&b);
	buf_done(&out);
	if (p && npolicies < POLICIES)
		policies[npolicies++] = p;
	return p;
}

static inline struct policy *policy(const char *yaml)
{
	struct err e = { 0 };
	struct policy *p = try_policy(yaml, POLICY_YAML, &e);

	if (!p)
		t_fail_str("policy", 0, e.msg, "a policy");
	return p;
}

static inline struct ip ip_of(const char *text)
{
	struct ip ip = { 0 };

	CHECK(!text || ip_parse(str_of(text), &ip) == 0);
	return ip;
}
