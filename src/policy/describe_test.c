/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/describe.h"

#include "policy/policy_test.h"

static const char rich[] =
	"default: allow\n"
	"limits: {bytes: 2G, rate_up: 1M/s, concurrent: 64, rate_dns: 50/s}\n"
	"rules:\n"
	"  - {id: one, action: allow, hosts: [example.com, '*.example.com'], ports: [443, 8000-8100],\n"
	"     protocol: [tls, http], tls: {ech: true, mismatch: true}, limits: {connections: 7}}\n"
	"  - {action: deny, addresses: [10.0.0.0/8, '2001:db8::/32']}\n"
	"  - {id: web, action: allow, hosts: a.test, methods: [GET, HEAD], paths: [/simple/**]}\n"
	"  - {id: any, action: allow, hosts: b.test, ports: [1-65535], protocol: any}\n";

static const char *document(const struct policy *p)
{
	static struct buf out = BUF_INIT(LIMIT_POLICY_DESCRIBED);

	buf_clear(&out);
	CHECK(policy_describe(p, &out) == 0);
	return out.data;
}

static void a_described_policy_compiles_to_the_same_rules(void)
{
	struct policy *p = policy(rich), *q;
	char first[4096];

	CHECK(str_copy(first, sizeof first, str_of(document(p))));
	q = policy(first);
	CHECK(q->def == p->def && q->nrules == p->nrules);
	CHECK(q->limits.bytes == 2ull << 30 && q->limits.rate_dns == 50);
	CHECK(q->rules[0].lenient == p->rules[0].lenient && q->rules[0].nports == 2);
	CHECK(q->rules[1].naddresses == 2 && q->rules[1].nports == 0);
	CHECK(q->rules[2].protocols == p->rules[2].protocols && q->rules[2].npaths == 1);
	CHECK(q->rules[3].protocols == PROTO_ANY);
}

static void ids_of_presets_are_ids_of_documents(void)
{
	struct policy *p = policy("extends: coding\n"), *q;
	static char text[64 * 1024];

	CHECK(p->nrules > 3 && memchr(p->rules[0].id.p, '/', p->rules[0].id.n));
	CHECK(str_copy(text, sizeof text, str_of(document(p))));
	q = policy(text);
	CHECK(q->nrules == p->nrules && !memchr(q->rules[0].id.p, '/', q->rules[0].id.n));
}

static void names_of_files_stay_comments(void)
{
	struct policy p = { .name = STR("a\nrules: [{id: evil}]") };

	CHECK(!strstr(document(&p), "\nrules: [{id"));
}

struct seen {
	char text[4096];
	int n;
};

static int note(void *ctx, const struct policy_rule *r, struct str text)
{
	struct seen *s = ctx;

	(void)r;
	s->n++;
	CHECK(str_copy(s->text, sizeof s->text, text));
	return 0;
}

static void only_rules_that_differ_are_added(void)
{
	struct policy *a = policy("rules:\n- {id: a, hosts: a.test}\n- {id: b, hosts: b.test}\n");
	struct policy *b = policy("rules:\n- {id: b, hosts: b.test}\n- {id: a, hosts: aa.test}\n");
	struct seen s = { 0 };

	CHECK(policy_each_added(a, b, note, &s) == 0 && s.n == 1);
	CHECK(strcmp(s.text, "{id: a, action: allow, hosts: [\"aa.test\"], ports: [80, 443]}") ==
		      0 ||
	      strcmp(s.text, "{id: a, action: allow, hosts: [\"aa.test\"], ports: [443, 80]}") ==
		      0);
	s.n = 0;
	CHECK(policy_each_added(NULL, a, note, &s) == 0 && s.n == 2);
	s.n = 0;
	CHECK(policy_each_added(a, a, note, &s) == 0 && s.n == 0);
}

static struct policy *targets(const char *first, const char *second)
{
	struct buf out = BUF_INIT(LIMIT_POLICY);
	struct policy_builder b;
	struct policy *p = NULL;
	struct err e = { 0 };

	policy_builder_init(&b);
	CHECK(policy_add_target(&b, POLICY_ACT_ALLOW, first, &e) == 0);
	CHECK(!second || policy_add_target(&b, POLICY_ACT_ALLOW, second, &e) == 0);
	CHECK(policy_build(&b, &out, &e) == 0 && policy_decode(buf_str(&out), &p) == 0);
	policy_builder_done(&b);
	buf_done(&out);
	policies[npolicies++] = p;
	return p;
}

static void the_number_of_a_target_is_no_difference(void)
{
	struct policy *a = targets("a.test", "b.test"), *b = targets("b.test", NULL);
	struct seen s = { 0 };

	CHECK(policy_each_added(a, b, note, &s) == 0 && s.n == 0);
	CHECK(policy_each_added(b, a, note, &s) == 0 && s.n == 1 && strstr(s.text, "a.test"));
}

T_MAIN(T(the_number_of_a_target_is_no_difference), T(a_described_policy_compiles_to_the_same_rules),
       T(ids_of_presets_are_ids_of_documents), T(names_of_files_stay_comments),
       T(only_rules_that_differ_are_added))
