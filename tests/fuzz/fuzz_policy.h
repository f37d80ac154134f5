/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every policy, whoever wrote it. */
#pragma once

#include "fuzz.h"
#include "policy/policy.h"

static inline void fuzz_ask(const struct policy *p, struct policy_query q, bool never)
{
	struct policy_verdict v;
	char fix[POLICY_FIX];

	policy_decide(p, &q, &v);
	FUZZ_CHECK(!never || v.kind == POLICY_DENY);
	FUZZ_CHECK(v.kind != POLICY_ALLOW || !v.rule || v.rule->action == POLICY_ACT_ALLOW);
	FUZZ_CHECK(policy_rule_id(&v).n > 0 && policy_reason_text(v.reason)[0]);
	policy_fix(&q, &v, fix);
	FUZZ_CHECK(memchr(fix, '\0', sizeof fix));
}

static inline void fuzz_policy(const struct policy *p)
{
	static const enum policy_proto protos[] = { PROTO_UNKNOWN, PROTO_TLS, PROTO_HTTP, PROTO_SSH,
						    PROTO_TCP };
	static const uint16_t ports[] = { 0, 22, 80, 443, 8080 };
	struct policy_query q = { .sni = STR("a.test"),
				  .has_sni = true,
				  .host = STR("a.test"),
				  .method = STR("GET"),
				  .path = STR("/a/../b"),
				  .has_request = true };

	for (size_t i = 0; i < sizeof protos / sizeof protos[0]; i++) {
		q.proto = protos[i];
		q.port = ports[i];
		q.name = STR("a.test");
		q.addr = (struct ip){ 0 };
		fuzz_ask(p, q, false);
		q.addr = (struct ip){ 4, { 10, 1, 2, 3 } };
		fuzz_ask(p, q, false);
		q.addr = (struct ip){ 4, { 127, 0, 0, 1 } };
		fuzz_ask(p, q, true);
		q.addr = (struct ip){ 16, { [10] = 0xff, 0xff, 127, 0, 0, 1 } };
		fuzz_ask(p, q, true);
		q.name = STR_NONE;
		fuzz_ask(p, q, true);
		q.addr = (struct ip){ 0 };
		q.name = STR("x.localhost");
		fuzz_ask(p, q, true);
	}
}
