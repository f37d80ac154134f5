/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "policy/policy_test.h"

static void a_document_becomes_rules(void)
{
	struct policy *p =
		policy("version: 1\n"
		       "default: deny\n"
		       "limits: {bytes: 2G, rate_up: 1M/s, concurrent: 64, rate_dns: 50/s}\n"
		       "rules:\n"
		       "  - id: one\n"
		       "    hosts: [Example.COM, '*.example.com']\n"
		       "    ports: [443, 8000-8100]\n"
		       "    protocol: [tls, http]\n"
		       "    tls: {ech: true, missing: false}\n"
		       "    limits: {connections: 7}\n"
		       "  - action: deny\n"
		       "    addresses: 10.0.0.0/8\n");
	const struct policy_rule *r = p->rules;

	CHECK(p->nrules == 2 && p->def == POLICY_ACT_DENY && str_is(p->name, "p.yaml"));
	CHECK(p->limits.bytes == 2ull << 30 && p->limits.rate_up == 1 << 20);
	CHECK(p->limits.concurrent == 64 && p->limits.rate_dns == 50);
	CHECK(str_is(r->id, "one") && str_is(r->origin, "p.yaml:5"));
	CHECK(r->nhosts == 2 && str_is(r->hosts[0], "example.com"));
	CHECK(r->nports == 2 && r->ports[1].first == 8000 && r->ports[1].last == 8100);
	CHECK(r->protocols == (PROTO_TLS | PROTO_HTTP) && r->lenient == LENIENT_ECH);
	CHECK(r->limits.connections == 7);
	CHECK(str_is(r[1].id, "rule-2") && r[1].action == POLICY_ACT_DENY && r[1].nports == 0);
	CHECK(r[1].naddresses == 1 && r[1].addresses[0].bits == 8);
}

static void json_says_the_same(void)
{
	struct err e = { 0 };
	struct policy *p =
		try_policy("{\"version\":1,\"limits\":{\"bytes\":1000},\"rules\":[{\"id\":\"a\","
			   "\"hosts\":\"a.test\",\"ports\":[443,\"80\"],\"tls\":"
			   "{\"ech\":true},\"protocol\":\"tls\"}]}",
			   POLICY_JSON, &e);

	CHECK(p && p->nrules == 1 && p->rules[0].nports == 2 && p->limits.bytes == 1000);
	CHECK(str_is(p->rules[0].origin, "p.yaml"));
}

static void missing_keys_get_defaults(void)
{
	struct policy *p = policy("rules:\n"
				  "  - hosts: a.test\n"
				  "  - {hosts: a.test, protocol: ssh}\n"
				  "  - {hosts: a.test, methods: GET}\n"
				  "  - {hosts: a.test, protocol: [tls, ssh]}\n"
				  "  - {action: deny}\n");

	CHECK(p->rules[0].nports == 2 && p->rules[0].protocols == 0);
	CHECK(p->rules[1].nports == 1 && p->rules[1].ports[0].first == 22);
	CHECK(p->rules[2].ports[0].first == 80 && p->rules[2].protocols == PROTO_HTTP);
	CHECK(p->rules[3].nports == 2);
	CHECK(p->rules[4].nports == 0 && p->rules[4].nhosts == 0);
}

/* Invalid documents and their error messages. */
static const struct {
	const char *yaml, *message;
} wrong[] = {
	{ "", "p.yaml: the document is empty" },
	{ "# nothing", "p.yaml: the document is empty" },
	{ "hello", "p.yaml:1:1: a map of keys and values is required here" },
	{ "[]", "p.yaml:1:1: a map of keys and values is required here" },
	{ "a: [", "p.yaml:2:1: did not find expected node content, while parsing a flow node" },
	{ "a: b: c", "p.yaml:1:5: mapping values are not allowed in this context" },
	{ "\tx: 1", "p.yaml:1:1: found character that cannot start any token, while scanning for "
		    "the next token" },
	{ "version: 2", "p.yaml:1:10: version must be 1" },
	{ "ruls: []", "p.yaml:1:1: unknown key 'ruls'; did you mean 'rules'?" },
	{ "default: deny\nfoo: 1", "p.yaml:2:1: unknown key 'foo'; there are: version, extends, "
				   "default, limits, rules" },
	{ "default: maybe", "p.yaml:1:10: unknown default 'maybe'; there are: deny, allow" },
	{ "default: [deny]", "p.yaml:1:10: default must be one word" },
	{ "extends: codign", "p.yaml:1:10: unknown preset 'codign'; did you mean 'coding'?" },
	{ "default: deny\ndefault: deny", "p.yaml:2:1: the key 'default' is repeated" },
	{ "rules: {}", "p.yaml:1:8: 'rules' must be a list" },
	{ "rules:\n  - a.test", "p.yaml:2:5: rules[0]: a map of keys and values is required here" },
	{ "rules:\n  - hosts: a.test\n  - id: x\n    host: a.test",
	  "p.yaml:4:5: rules[1]: unknown key 'host'; did you mean 'hosts'?" },
	{ "rules:\n  - id: x", "p.yaml:2:5: rules[0]: a rule that allows needs 'hosts' or "
			       "'addresses'" },
	{ "rules:\n  - hosts: []", "p.yaml:2:12: rules[0]: 'hosts' is empty" },
	{ "rules:\n  - hosts:", "p.yaml:2:11: rules[0]: 'hosts' is empty" },
	{ "rules:\n  - hosts: {a: b}", "p.yaml:2:12: rules[0]: 'hosts' must be a list" },
	{ "rules:\n  - hosts: [[a]]", "p.yaml:2:13: rules[0]: the items of 'hosts' must be text" },
	{ "rules:\n  - hosts: '*'", "p.yaml:2:12: rules[0]: '*' matches only names of one label; "
				    "write '**' to match every name" },
	{ "rules:\n  - hosts: a..b", "p.yaml:2:12: rules[0]: 'a..b' is not a host name or host "
				     "pattern" },
	{ "rules:\n  - hosts: a.**b", "p.yaml:2:12: rules[0]: 'a.**b' has '**' that is not a whole "
				      "label" },
	{ "rules:\n  - hosts: 10.0.0.1",
	  "p.yaml:2:12: rules[0]: '10.0.0.1' is an address; write it "
	  "under 'addresses'" },
	{ "rules:\n  - hosts: 0x7f.1", "p.yaml:2:12: rules[0]: '0x7f.1' is an address; write it "
				       "under 'addresses'" },
	{ "rules:\n  - hosts: https://a.test",
	  "p.yaml:2:12: rules[0]: 'https://a.test' is not a host "
	  "name or host pattern" },
	{ "rules:\n  - hosts: b\xc3\xbc"
	  "cher.de",
	  "p.yaml:2:12: rules[0]: 'b\xc3\xbc"
	  "cher.de' has "
	  "letters beyond ASCII; write it in punycode "
	  "(xn--...)" },
	{ "rules:\n  - addresses: 10.0.0.1/8", "p.yaml:2:16: rules[0]: '10.0.0.1/8' has bits set "
					       "behind its prefix" },
	{ "rules:\n  - addresses: a.test",
	  "p.yaml:2:16: rules[0]: 'a.test' is neither an address nor "
	  "a range like 10.0.0.0/8" },
	{ "rules:\n  - addresses: 127.0.0.1",
	  "p.yaml:2:16: rules[0]: '127.0.0.1' is never dialled: "
	  "loopback, multicast, reserved and the like" },
	{ "rules:\n  - addresses: '::ffff:10.0.0.1'",
	  "p.yaml:2:16: rules[0]: '::ffff:10.0.0.1' is an "
	  "IPv4 address; write it as one" },
	{ "rules:\n  - {hosts: a.b, ports: 0}",
	  "p.yaml:2:25: rules[0]: '0' is not a port like 443 or a "
	  "range like 8000-8100" },
	{ "rules:\n  - {hosts: a.b, ports: 90-80}",
	  "p.yaml:2:25: rules[0]: '90-80' is not a port like "
	  "443 or a range like 8000-8100" },
	{ "rules:\n  - {hosts: a.b, ports: http}",
	  "p.yaml:2:25: rules[0]: 'http' is not a port like 443 "
	  "or a range like 8000-8100" },
	{ "rules:\n  - {hosts: a.b, protocol: tsl}",
	  "p.yaml:2:28: rules[0]: unknown protocol 'tsl'; did "
	  "you mean 'tls'?" },
	{ "rules:\n  - {hosts: a.b, protocol: tcp}",
	  "p.yaml:2:5: rules[0]: protocol tcp needs 'ports'" },
	{ "rules:\n  - {hosts: a.b, methods: get}",
	  "p.yaml:2:27: rules[0]: 'get' is not a method like "
	  "GET, in capitals" },
	{ "rules:\n  - {hosts: a.b, methods: GET, protocol: tls}",
	  "p.yaml:2:5: rules[0]: methods and paths are for protocol http only" },
	{ "rules:\n  - {hosts: a.b, paths: a}",
	  "p.yaml:2:25: rules[0]: 'a' is not a plain path like "
	  "/simple/**: no //, . or .., no encoding of what needs "
	  "none" },
	{ "rules:\n  - {hosts: a.b, paths: /a**}",
	  "p.yaml:2:25: rules[0]: '/a**' has '**' that is not a "
	  "whole segment" },
	{ "rules:\n  - {hosts: a.b, paths: '/a?x'}",
	  "p.yaml:2:25: rules[0]: '/a?x' has a byte that no "
	  "path has; queries are not matched" },
	{ "rules:\n  - {hosts: a.b, tls: {sni: true}}",
	  "p.yaml:2:24: rules[0]: unknown key 'sni'; there "
	  "are: mismatch, missing, ech" },
	{ "rules:\n  - {hosts: a.b, tls: {ech: yes}}",
	  "p.yaml:2:29: rules[0]: unknown value 'yes'; there "
	  "are: false, true" },
	{ "rules:\n  - {hosts: a.b, protocol: ssh, tls: {ech: true}}",
	  "p.yaml:2:5: rules[0]: 'tls' is for protocol tls only" },
	{ "rules:\n  - {hosts: a.b, limits: {bytes: 0}}",
	  "p.yaml:2:34: rules[0]: bytes: '0' is not a size "
	  "like 500K or 2G; leave it out for no limit" },
	{ "rules:\n  - {hosts: a.b, limits: {rate_dns: 1}}",
	  "p.yaml:2:37: rules[0]: rate_dns applies to the "
	  "whole sandbox, not to a rule" },
	{ "limits: {rate_up: fast}",
	  "p.yaml:1:19: rate_up: 'fast' is not a size like 500K or 2G, a second; "
	  "leave it out for no limit" },
	{ "limits: {connections: -1}",
	  "p.yaml:1:23: connections: '-1' is not a number from 1 on; leave it "
	  "out for no limit" },
	{ "rules:\n  - {id: a, hosts: a.b}\n  - {id: a, hosts: a.b}",
	  "p.yaml:3:10: rules[1]: the id 'a' is used twice" },
	{ "rules:\n  - {id: 'a b', hosts: a.b}",
	  "p.yaml:2:10: rules[0]: an id may have only letters, digits, '-', "
	  "'_' and '.'" },
	{ "rules:\n  - {id: a/b, hosts: a.b}",
	  "p.yaml:2:10: rules[0]: an id may have only letters, digits, '-', '_' "
	  "and '.'" },
	{ "default: allow\nrules:\n  - {hosts: a.b}",
	  "p.yaml:3:5: rules[0]: with the default 'allow', "
	  "each rule needs an 'action'" },
	{ "a: &x 1", "p.yaml:1:4: anchors and tags have no meaning in a policy" },
	{ "a: *x", "p.yaml:1:4: aliases have no meaning in a policy" },
	{ "a: !!str 1", "p.yaml:1:4: anchors and tags have no meaning in a policy" },
	{ "default: deny\n---\ndefault: allow", "p.yaml:2:1: a second document begins here" },
	{ "? [a]\n: b", "p.yaml:1:3: a key must be plain text" },
	{ "a: [[[[[[[[1]]]]]]]]", "p.yaml:1:11: lists and maps are nested too deeply" },
};

static void errors_name_their_place(void)
{
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct err e = { 0 };

		printf("# row %zu\n", i);
		CHECK(!try_policy(wrong[i].yaml, POLICY_YAML, &e) && e.kind == ERR_INVALID);
		CHECK_STR(e.msg, wrong[i].message);
	}
}

static void errors_in_json_are_reported(void)
{
	static const char *const rows[][2] = {
		{ "{\"rules\":[{\"host\":1}]}",
		  "p.yaml: rules[0]: unknown key 'host'; did you mean 'hosts'?" },
		{ "{\"a\":1,\"a\":2}", "p.yaml:1:10: duplicate object key near '\"a\"'" },
		{ "{\"limits\":{\"bytes\":1.5}}",
		  "p.yaml: 1.5 is not a whole number; write it as text" },
		{ "{\n\"rules\": [}", "p.yaml:2:11: unexpected token near '}'" },
		{ "[[[[[[[[[1]]]]]]]]]", "p.yaml: lists and maps are nested too deeply" },
		{ "{\"rules\":[{\"hosts\":null}]}", "p.yaml: rules[0]: 'hosts' is empty" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e = { 0 };

		CHECK(!try_policy(rows[i][0], POLICY_JSON, &e));
		CHECK_STR(e.msg, rows[i][1]);
	}
}

static void extended_rules_come_last(void)
{
	struct policy *p = policy("extends: research\n"
				  "limits: {rate_up: 5M}\n"
				  "rules: [{id: mine, action: deny, hosts: [a.test]}]\n");

	CHECK(p->nrules == 3 && p->def == POLICY_ACT_DENY);
	CHECK(str_is(p->rules[0].id, "mine") && str_is(p->rules[1].id, "research/no-mail"));
	CHECK(str_is(p->rules[1].origin, "preset research"));
	CHECK(p->limits.rate_up == 5 << 20 && p->limits.rate_down == 20 << 20);
	p = policy("extends: open\ndefault: deny\n");
	CHECK(p->def == POLICY_ACT_DENY);
}

static void every_preset_compiles(void)
{
	static const char *const names[] = { "none", "coding", "research", "open" };
	size_t n = 0;

	for (const struct policy_preset *p; (p = policy_preset_at(n)); n++) {
		struct policy_builder b;
		struct buf out = BUF_INIT(LIMIT_POLICY);
		struct err e = { 0 };

		CHECK_STR(p->name, names[n]);
		policy_builder_init(&b);
		if (policy_add_preset(&b, p, &e) < 0 || policy_build(&b, &out, &e) < 0)
			t_fail_str(__FILE__, __LINE__, e.msg, p->name);
		policy_builder_done(&b);
		buf_done(&out);
	}
	CHECK(n == ARRAY_LEN(names));
	CHECK(policy_preset_find(STR("coding")) && !policy_preset_find(STR("cod")));
}

static int add_target(struct policy_builder *b, const char *target, struct err *e)
{
	return policy_add_target(b, POLICY_ACT_ALLOW, target, e);
}

static void targets_are_hosts_and_addresses_with_ports(void)
{
	static const struct {
		const char *text;
		size_t hosts, addresses;
		unsigned port;
	} rows[] = {
		{ "a.test", 1, 0, 80 },	       { "a.test:8443", 1, 0, 8443 },
		{ "*.a.test:22", 1, 0, 22 },   { "10.0.0.1", 0, 1, 80 },
		{ "10.0.0.1:99", 0, 1, 99 },   { "10.0.0.0/8", 0, 1, 80 },
		{ "10.0.0.0/8:99", 0, 1, 99 }, { "fd00::1", 0, 1, 80 },
		{ "[fd00::1]:99", 0, 1, 99 },  { "[fd00::1]", 0, 1, 80 },
	};
	static const char *const bad[] = { "",
					   ":80",
					   "a.test:0",
					   "a.test:99999",
					   "a b",
					   "https://a.test",
					   "127.0.0.1",
					   "u@a.test",
					   "*",
					   "10.0.0.1/8",
					   "localhost:x",
					   "[::1]:80" };
	auto_done(buf_done) struct buf out = BUF_INIT(LIMIT_POLICY);
	auto_done(policy_builder_done) struct policy_builder b;
	auto_done(policy_free) struct policy *p = NULL;
	struct err e = { 0 };

	policy_builder_init(&b);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK(add_target(&b, rows[i].text, &e) == 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (add_target(&b, bad[i], &e) == 0)
			t_fail(__FILE__, (int)i, bad[i]);
	CHECK(policy_build(&b, &out, &e) == 0 && policy_decode(buf_str(&out), &p) == 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct policy_rule *r = &p->rules[i];

		CHECK(r->nhosts == rows[i].hosts && r->naddresses == rows[i].addresses);
		CHECK(r->ports[0].first == rows[i].port && str_is(r->origin, "--allow"));
	}
	CHECK(str_is(p->rules[0].id, "cli/allow-1"));
}

/* n rules, each with `hosts` hosts. */
static struct policy *policy_of(unsigned n, unsigned hosts, struct err *e)
{
	struct buf b = BUF_INIT(16 << 20);
	struct policy *p;

	CHECK(buf_add_c(&b, "rules:\n") == 0);
	for (unsigned i = 0; i < n; i++) {
		CHECK(buf_add_c(&b, "- {hosts: [a") == 0);
		for (unsigned k = 1; k < hosts; k++)
			CHECK(buf_add_c(&b, ",a") == 0);
		CHECK(buf_add_c(&b, "]}\n") == 0);
	}
	p = try_policy(b.data, POLICY_YAML, e);
	buf_done(&b);
	return p;
}

static void limits_hold_and_one_past_them_is_refused(void)
{
	struct err e = { 0 };

	CHECK(policy_of(LIMIT_POLICY_RULES, 1, &e)->nrules == LIMIT_POLICY_RULES);
	CHECK(!policy_of(LIMIT_POLICY_RULES + 1, 1, &e) && strstr(e.msg, "more than 1024 rules"));
	CHECK(policy_of(1, LIMIT_POLICY_ITEMS, &e)->rules[0].nhosts == LIMIT_POLICY_ITEMS);
	CHECK(!policy_of(1, LIMIT_POLICY_ITEMS + 1, &e) && strstr(e.msg, "more than 1024 items"));
	CHECK(!policy_of(900, 300, &e) && strstr(e.msg, "a policy has at most 256 KiB"));
	CHECK(!policy_of(500, 100, &e) && strstr(e.msg, "more than 32768 values"));
}

T_MAIN(T(a_document_becomes_rules), T(json_says_the_same), T(missing_keys_get_defaults),
       T(errors_name_their_place), T(errors_in_json_are_reported), T(extended_rules_come_last),
       T(every_preset_compiles), T(targets_are_hosts_and_addresses_with_ports),
       T(limits_hold_and_one_past_them_is_refused))
