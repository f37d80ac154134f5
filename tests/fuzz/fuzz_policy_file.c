/* SPDX-License-Identifier: Apache-2.0 */
/* Policy documents, as YAML and as JSON: what compiles can be decoded and decides. */
#include "base/cleanup.h"
#include "fuzz_policy.h"
#include "policy/compile.h"

static void check(struct str text, enum policy_format format)
{
	struct policy_document d = { .file = "fuzz", .text = text, .format = format };
	auto_done(policy_builder_done) struct policy_builder b;
	auto_done(buf_done) struct buf out = BUF_INIT(LIMIT_POLICY);
	auto_done(policy_free) struct policy *p = NULL;
	struct err e = { 0 };

	policy_builder_init(&b);
	if (policy_add_document(&b, &d, &e) < 0 || policy_build(&b, &out, &e) < 0) {
		FUZZ_CHECK(e.kind != ERR_NONE && e.msg[0]);
		return;
	}
	FUZZ_CHECK(policy_decode(buf_str(&out), &p) == 0);
	fuzz_policy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *copy = exact_copy(data, size);
	auto_free char *text = calloc(1, size + 1);
	auto_done(policy_builder_done) struct policy_builder b;
	struct err e = { 0 };

	FUZZ_CHECK(text);
	memcpy(text, copy, size);
	check((struct str){ copy, size }, POLICY_YAML);
	check((struct str){ copy, size }, POLICY_JSON);
	policy_builder_init(&b);
	if (policy_add_target(&b, POLICY_ACT_ALLOW, text, &e) < 0)
		FUZZ_CHECK(e.kind != ERR_NONE);
	return 0;
}
