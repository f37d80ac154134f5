/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy_test.h"

#include "base/cleanup.h"

/* One query and the expected verdict. */
struct row {
	const char *name, *addr;
	unsigned port;
	enum policy_proto proto;
	const char *a, *b; /* sni; or method and path */
	enum policy_verdict_kind want;
	const char *rule;
	enum policy_reason reason;
};

static const char base[] =
	"default: deny\n"
	"rules:\n"
	"  - {id: no-post, action: deny, hosts: [mirror.test], methods: [POST, PUT]}\n"
	"  - {id: no-admin, action: deny, hosts: [mirror.test], paths: [/admin/**]}\n"
	"  - {id: mirror, hosts: [mirror.test], protocol: http}\n"
	"  - {id: web, hosts: [example.com, '*.example.com']}\n"
	"  - {id: wide, hosts: ['**.wide.test'], ports: [8000-8100]}\n"
	"  - {id: raw, hosts: [raw.test], ports: [5432], protocol: tcp}\n"
	"  - {id: git, hosts: [git.test], protocol: ssh}\n"
	"  - {id: db, hosts: [db.corp], ports: [5432], addresses: [10.0.0.0/8]}\n"
	"  - {id: lan, addresses: [192.168.1.0/24, 'fd00::/8'], ports: [80, 8080]}\n"
	"  - {id: front, hosts: [front.test], tls: {mismatch: true}}\n"
	"  - {id: nosni, hosts: [nosni.test], tls: {missing: true}}\n"
	"  - {id: files, hosts: [files.test], methods: [GET, HEAD], paths: [/pub/**]}\n";

static struct policy_query query(const struct row *r)
{
	struct policy_query q = { .name = str_of(r->name),
				  .addr = ip_of(r->addr),
				  .port = (uint16_t)r->port,
				  .proto = r->proto };

	if (r->proto == PROTO_TLS) {
		q.has_sni = r->a != NULL;
		q.sni = str_of(r->a);
	}
	if (r->proto == PROTO_HTTP) {
		q.has_request = r->a != NULL;
		q.host = str_of(r->name);
		q.method = str_of(r->a);
		q.path = str_of(r->b);
	}
	return q;
}

static void judge(const struct policy *p, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct policy_query q = query(&rows[i]);
		struct policy_verdict v;
		char got[64];

		policy_decide(p, &q, &v);
		(void)str_copy(got, sizeof got, policy_rule_id(&v));
		printf("# row %zu: kind %d rule %s reason %s\n", i, v.kind, got,
		       policy_reason_name(v.reason));
		CHECK(v.kind == rows[i].want);
		if (rows[i].want != POLICY_PENDING) {
			CHECK_STR(got, rows[i].rule);
			CHECK(v.reason == rows[i].reason);
		}
	}
}

#define ALLOWED(id) POLICY_ALLOW, id, REASON_RULE
#define DENIED(id)  POLICY_DENY, id, REASON_RULE
#define NOTHING	    POLICY_DENY, "default", REASON_DEFAULT
#define WAITS	    POLICY_PENDING, "", 0

static void names_alone_are_judged_for_dns(void)
{
	static const struct row rows[] = {
		{ "example.com", 0, 0, 0, 0, 0, WAITS },
		{ "a.example.com", 0, 0, 0, 0, 0, WAITS },
		{ "a.b.example.com", 0, 0, 0, 0, 0, NOTHING },
		{ "evil.test", 0, 0, 0, 0, 0, NOTHING },
		{ "example.com.evil.test", 0, 0, 0, 0, 0, NOTHING },
		{ "wide.test", 0, 0, 0, 0, 0, NOTHING },
		{ "x.y.wide.test", 0, 0, 0, 0, 0, WAITS },
		{ "db.corp", 0, 0, 0, 0, 0, WAITS },
		{ "localhost", 0, 0, 0, 0, 0, POLICY_DENY, "default", REASON_NAME },
		{ "a.localhost", 0, 0, 0, 0, 0, POLICY_DENY, "default", REASON_NAME },
	};

	judge(policy(base), rows, ARRAY_LEN(rows));
}

static void ports_decide_at_connect(void)
{
	static const struct row rows[] = {
		{ "example.com", 0, 443, 0, 0, 0, WAITS },
		{ "example.com", 0, 8443, 0, 0, 0, NOTHING },
		{ "example.com", 0, 22, 0, 0, 0, NOTHING },
		{ "raw.test", 0, 5432, 0, 0, 0, ALLOWED("raw") },
		{ "raw.test", 0, 5433, 0, 0, 0, NOTHING },
		{ "x.wide.test", 0, 8000, 0, 0, 0, ALLOWED("wide") },
		{ "x.wide.test", 0, 8100, 0, 0, 0, ALLOWED("wide") },
		{ "x.wide.test", 0, 8101, 0, 0, 0, NOTHING },
		{ "x.wide.test", 0, 7999, 0, 0, 0, NOTHING },
	};

	judge(policy(base), rows, ARRAY_LEN(rows));
}

static void the_protocol_must_be_the_ports_own(void)
{
	static const struct row rows[] = {
		{ "example.com", 0, 443, PROTO_TLS, "example.com", 0, ALLOWED("web") },
		{ "example.com", 0, 443, PROTO_HTTP, "GET", "/", NOTHING },
		{ "example.com", 0, 443, PROTO_TCP, 0, 0, NOTHING },
		{ "example.com", 0, 443, PROTO_SSH, 0, 0, NOTHING },
		{ "example.com", 0, 80, PROTO_HTTP, "GET", "/", ALLOWED("web") },
		{ "example.com", 0, 80, PROTO_TLS, "example.com", 0, NOTHING },
		{ "git.test", 0, 22, PROTO_SSH, 0, 0, ALLOWED("git") },
		{ "git.test", 0, 22, PROTO_TCP, 0, 0, NOTHING },
		{ "raw.test", 0, 5432, PROTO_TLS, "other.test", 0, ALLOWED("raw") },
		{ "x.wide.test", 0, 8000, PROTO_SSH, 0, 0, ALLOWED("wide") },
	};

	judge(policy(base), rows, ARRAY_LEN(rows));
}

#define REFUSED(id, why) POLICY_DENY, id, REASON_##why

static void opaque_bytes_may_be_a_request_that_a_rule_denies(void)
{
	static const char text[] =
		"default: deny\n"
		"rules:\n"
		"  - {id: early, hosts: [early.test], ports: [8080], protocol: tcp}\n"
		"  - {id: no-admin, action: deny, hosts: [a.test, early.test], paths: [/admin/**]}\n"
		"  - {id: no-post, action: deny, hosts: [b.test], methods: [POST], ports: [8080]}\n"
		"  - {id: no-http, action: deny, hosts: [c.test], protocol: http}\n"
		"  - {id: no-net, action: deny, hosts: [d.test], addresses: [45.0.0.0/8], "
		"methods: [POST]}\n"
		"  - {id: all, hosts: ['**.test'], ports: [22, 8080, 6379]}\n";
	static const struct row rows[] = {
		{ "a.test", 0, 8080, PROTO_TCP, 0, 0, REFUSED("no-admin", OPAQUE) },
		{ "a.test", 0, 8080, 0, 0, 0, WAITS },
		{ "a.test", 0, 8080, PROTO_HTTP, "GET", "/x", ALLOWED("all") },
		{ "a.test", 0, 8080, PROTO_TLS, "a.test", 0, ALLOWED("all") },
		{ "a.test", 0, 22, PROTO_SSH, 0, 0, ALLOWED("all") },
		{ "early.test", 0, 8080, PROTO_TCP, 0, 0, ALLOWED("early") },
		{ "early.test", 0, 6379, PROTO_TCP, 0, 0, REFUSED("no-admin", OPAQUE) },
		{ "b.test", 0, 8080, PROTO_TCP, 0, 0, REFUSED("no-post", OPAQUE) },
		{ "b.test", 0, 6379, PROTO_TCP, 0, 0, ALLOWED("all") },
		{ "c.test", 0, 6379, PROTO_TCP, 0, 0, REFUSED("no-http", OPAQUE) },
		{ "d.test", 0, 6379, PROTO_TCP, 0, 0, WAITS },
		{ "d.test", "45.90.0.1", 6379, PROTO_TCP, 0, 0, REFUSED("no-net", OPAQUE) },
		{ "d.test", "46.90.0.1", 6379, PROTO_TCP, 0, 0, ALLOWED("all") },
		{ "x.test", 0, 6379, PROTO_TCP, 0, 0, ALLOWED("all") },
		{ "y.other", 0, 6379, PROTO_TCP, 0, 0, NOTHING },
	};

	judge(policy(text), rows, ARRAY_LEN(rows));
}

static void opaque_bytes_do_not_bypass_a_denial_with_default_allow(void)
{
	static const char text[] = "default: allow\n"
				   "rules:\n"
				   "  - {id: no-post, action: deny, methods: [POST, PUT]}\n";
	static const struct row rows[] = {
		{ "a.test", 0, 8080, PROTO_TCP, 0, 0, REFUSED("no-post", OPAQUE) },
		{ "a.test", 0, 8080, PROTO_SSH, 0, 0, POLICY_ALLOW, "default", REASON_DEFAULT },
	};

	judge(policy(text), rows, ARRAY_LEN(rows));
}

static void the_server_name_must_be_the_name(void)
{
	static const struct row rows[] = {
		{ "example.com", 0, 443, PROTO_TLS, "evil.test", 0, REFUSED("web", SNI_MISMATCH) },
		{ "example.com", 0, 443, PROTO_TLS, "a.example.com", 0,
		  REFUSED("web", SNI_MISMATCH) },
		{ "example.com", 0, 443, PROTO_TLS, 0, 0, REFUSED("web", SNI_MISSING) },
		{ "x.wide.test", 0, 8000, PROTO_TLS, "y.wide.test", 0,
		  REFUSED("wide", SNI_MISMATCH) },
		{ "front.test", 0, 443, PROTO_TLS, "other.test", 0, ALLOWED("front") },
		{ "front.test", 0, 443, PROTO_TLS, 0, 0, REFUSED("front", SNI_MISSING) },
		{ "nosni.test", 0, 443, PROTO_TLS, 0, 0, ALLOWED("nosni") },
		{ "nosni.test", 0, 443, PROTO_TLS, "x.test", 0, REFUSED("nosni", SNI_MISMATCH) },
	};
	struct policy *p = policy(base);
	struct policy_query q = { .name = STR("front.test"),
				  .port = 443,
				  .proto = PROTO_TLS,
				  .has_sni = true,
				  .sni = STR("front.test"),
				  .ech = true };
	struct policy_verdict v;

	judge(p, rows, ARRAY_LEN(rows));
	policy_decide(p, &q, &v);
	CHECK(v.kind == POLICY_DENY && v.reason == REASON_ECH);
	q = (struct policy_query){
		.name = STR("nosni.test"), .port = 443, .proto = PROTO_TLS, .bad_hello = true
	};
	policy_decide(p, &q, &v);
	CHECK(v.kind == POLICY_DENY && v.reason == REASON_HELLO);
}

static void the_host_header_must_be_the_name(void)
{
	struct policy *p = policy(base);
	struct policy_query q = { .name = STR("example.com"),
				  .port = 80,
				  .proto = PROTO_HTTP,
				  .has_request = true,
				  .host = STR("evil.test"),
				  .method = STR("GET"),
				  .path = STR("/") };
	struct policy_verdict v;

	policy_decide(p, &q, &v);
	CHECK(v.kind == POLICY_DENY && v.reason == REASON_HOST_MISMATCH);
	q.host = q.name;
	policy_decide(p, &q, &v);
	CHECK(v.kind == POLICY_ALLOW);
	q.host_port = 8080;
	policy_decide(p, &q, &v);
	CHECK(v.kind == POLICY_DENY && v.reason == REASON_HOST_MISMATCH);
	q.has_request = false;
	policy_decide(p, &q, &v);
	CHECK(v.kind == POLICY_ALLOW && v.inspect == INSPECT_MUST);
}

static void addresses_that_are_not_global_take_a_rule(void)
{
	static const struct row rows[] = {
		{ "example.com", "93.184.216.34", 443, PROTO_TLS, "example.com", 0,
		  ALLOWED("web") },
		{ "example.com", "10.0.0.1", 443, PROTO_TLS, "example.com", 0,
		  REFUSED("web", ADDRESS) },
		{ "example.com", "127.0.0.1", 443, 0, 0, 0, POLICY_DENY, "default", REASON_NEVER },
		{ "example.com", "::1", 443, 0, 0, 0, POLICY_DENY, "default", REASON_NEVER },
		{ "example.com", "::ffff:10.0.0.1", 443, PROTO_TLS, "example.com", 0,
		  REFUSED("web", ADDRESS) },
		{ "example.com", "169.254.169.254", 443, PROTO_TLS, "example.com", 0,
		  REFUSED("web", ADDRESS) },
		{ "db.corp", 0, 5432, 0, 0, 0, WAITS },
		{ "db.corp", "10.1.2.3", 5432, 0, 0, 0, ALLOWED("db") },
		{ "db.corp", "192.168.1.1", 5432, 0, 0, 0, REFUSED("db", ADDRESS) },
		{ "db.corp", "8.8.8.8", 5432, 0, 0, 0, NOTHING },
		{ "db.corp", "127.0.0.1", 5432, 0, 0, 0, POLICY_DENY, "default", REASON_NEVER },
	};

	judge(policy(base), rows, ARRAY_LEN(rows));
}

static void a_denied_range_holds_for_names_too(void)
{
	static const struct row rows[] = {
		{ "a.test", 0, 0, 0, 0, 0, WAITS },
		{ "a.test", 0, 9000, 0, 0, 0, WAITS },
		{ "a.test", "203.0.114.7", 9000, 0, 0, 0, DENIED("bad-net") },
		{ "a.test", "::ffff:203.0.114.7", 9000, 0, 0, 0, DENIED("bad-net") },
		{ "a.test", "203.0.115.7", 9000, 0, 0, 0, ALLOWED("a") },
		{ "b.test", 0, 0, 0, 0, 0, NOTHING },
	};

	judge(policy("rules:\n"
		     "  - {id: bad-net, action: deny, addresses: [203.0.114.0/24]}\n"
		     "  - {id: a, hosts: [a.test], ports: [9000]}\n"),
	      rows, ARRAY_LEN(rows));
}

static void connections_to_addresses_take_a_rule_for_addresses(void)
{
	static const struct row rows[] = {
		{ 0, "192.168.1.7", 8080, 0, 0, 0, ALLOWED("lan") },
		{ 0, "::ffff:192.168.1.7", 8080, 0, 0, 0, ALLOWED("lan") },
		{ 0, "fd00::7", 8080, 0, 0, 0, ALLOWED("lan") },
		{ 0, "192.168.2.7", 8080, 0, 0, 0, POLICY_DENY, "lan", REASON_ADDRESS },
		{ 0, "8.8.8.8", 443, 0, 0, 0, NOTHING },
		{ 0, "10.1.2.3", 5432, 0, 0, 0, POLICY_DENY, "default", REASON_ADDRESS },
		{ 0, "127.0.0.1", 8080, 0, 0, 0, POLICY_DENY, "default", REASON_NEVER },
		/* an allowed range says nothing about names */
		{ "x.test", 0, 8080, 0, 0, 0, NOTHING },
		{ "x.test", "192.168.1.7", 8080, 0, 0, 0, POLICY_DENY, "default", REASON_ADDRESS },
		/* without a name, no server name can differ */
		{ 0, "192.168.1.7", 8080, PROTO_TLS, "any.test", 0, ALLOWED("lan") },
	};

	judge(policy(base), rows, ARRAY_LEN(rows));
}

static void methods_and_paths_are_judged_by_request(void)
{
	static const struct row rows[] = {
		{ "mirror.test", 0, 80, PROTO_HTTP, "GET", "/x", ALLOWED("mirror") },
		{ "mirror.test", 0, 80, PROTO_HTTP, "POST", "/x", DENIED("no-post") },
		{ "mirror.test", 0, 80, PROTO_HTTP, "GET", "/admin/x", DENIED("no-admin") },
		{ "mirror.test", 0, 80, PROTO_HTTP, "GET", "/x/../admin/", DENIED("no-admin") },
		{ "mirror.test", 0, 80, PROTO_HTTP, "GET", "/%61dmin/", DENIED("no-admin") },
		{ "mirror.test", 0, 80, PROTO_HTTP, 0, 0, WAITS },
		{ "files.test", 0, 80, PROTO_HTTP, "GET", "/pub/a", ALLOWED("files") },
		{ "files.test", 0, 80, PROTO_HTTP, "GET", "/pub", ALLOWED("files") },
		{ "files.test", 0, 80, PROTO_HTTP, "GET", "/private", NOTHING },
		{ "files.test", 0, 80, PROTO_HTTP, "get", "/pub/a", NOTHING },
		{ "files.test", 0, 80, PROTO_HTTP, "PUT", "/pub/a", NOTHING },
		{ "files.test", 0, 80, PROTO_HTTP, "GET", "/pub/../private",
		  REFUSED("files", PATH) },
		{ "files.test", 0, 80, PROTO_HTTP, "GET", "/pub/%2e%2e/x", REFUSED("files", PATH) },
		{ "files.test", 0, 80, 0, 0, 0, WAITS },
		{ "files.test", 0, 443, 0, 0, 0, NOTHING },
	};

	judge(policy(base), rows, ARRAY_LEN(rows));
}

static void missing_and_empty_rules_mean_deny(void)
{
	static const char *const rows[] = { "version: 1", "rules: []",	   "rules:",
					    "{}",	  "default: deny", "extends: none" };
	static const struct row all[] = {
		{ "example.com", 0, 0, 0, 0, 0, NOTHING },
		{ 0, "8.8.8.8", 443, 0, 0, 0, NOTHING },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		judge(policy(rows[i]), all, ARRAY_LEN(all));
}

static void a_default_that_allows_does_not_open_the_inside(void)
{
	static const struct row rows[] = {
		{ "any.test", 0, 0, 0, 0, 0, WAITS },
		{ "any.test", "8.8.8.8", 99, 0, 0, 0, POLICY_ALLOW, "default", REASON_DEFAULT },
		{ 0, "8.8.8.8", 443, 0, 0, 0, POLICY_ALLOW, "default", REASON_DEFAULT },
		{ "any.test", "10.0.0.1", 443, 0, 0, 0, POLICY_DENY, "default", REASON_ADDRESS },
		{ 0, "169.254.169.254", 80, 0, 0, 0, POLICY_DENY, "default", REASON_ADDRESS },
		{ 0, "::ffff:127.0.0.1", 80, 0, 0, 0, POLICY_DENY, "default", REASON_NEVER },
		{ "localhost", 0, 0, 0, 0, 0, POLICY_DENY, "default", REASON_NAME },
		{ "bad.test", 0, 0, 0, 0, 0, DENIED("bad") },
		{ "any.test", 0, 25, 0, 0, 0, DENIED("mail") },
		{ "any.test", 0, 443, PROTO_TLS, "bad.test", 0, POLICY_DENY, "default",
		  REASON_SNI_MISMATCH },
	};

	judge(policy("default: allow\n"
		     "rules:\n"
		     "  - {id: bad, action: deny, hosts: [bad.test]}\n"
		     "  - {id: mail, action: deny, ports: [25]}\n"),
	      rows, ARRAY_LEN(rows));
}

static void the_first_rule_that_matches_decides(void)
{
	static const struct row rows[] = {
		{ "a.x.test", 0, 443, PROTO_TLS, "a.x.test", 0, DENIED("one") },
		{ "b.x.test", 0, 443, PROTO_TLS, "b.x.test", 0, ALLOWED("two") },
		{ "a.x.test", 0, 0, 0, 0, 0, DENIED("one") },
	};

	judge(policy("rules:\n"
		     "  - {id: one, action: deny, hosts: [a.x.test]}\n"
		     "  - {id: two, hosts: ['*.x.test']}\n"
		     "  - {id: three, action: deny, hosts: [b.x.test]}\n"),
	      rows, ARRAY_LEN(rows));
}

static void the_verdict_says_what_to_inspect(void)
{
	struct policy *p = policy(base);
	struct policy_query q = { .name = STR("raw.test"), .port = 5432 };
	struct policy_verdict v;

	policy_decide(p, &q, &v);
	CHECK(v.kind == POLICY_ALLOW && v.inspect == INSPECT_NONE);
	q = (struct policy_query){ .name = STR("x.wide.test"), .port = 8000 };
	policy_decide(p, &q, &v);
	CHECK(v.kind == POLICY_ALLOW && v.inspect == INSPECT_MAY);
	q = (struct policy_query){ .name = STR("example.com"), .port = 443 };
	policy_decide(p, &q, &v);
	CHECK(v.kind == POLICY_PENDING && v.inspect == INSPECT_MUST &&
	      v.needs == POLICY_NEEDS_PROTO);
	q = (struct policy_query){ .name = STR("db.corp"), .port = 5432 };
	policy_decide(p, &q, &v);
	CHECK(v.kind == POLICY_PENDING && v.needs == POLICY_NEEDS_ADDR);
}

/* The line that a denial suggests, added first, allows exactly that connection. */
static void check_fix(const char *name, const char *addr, unsigned port, enum policy_proto proto,
		      const char *sni)
{
	struct row r = { name, addr, port, proto, sni, "/x", 0, "", 0 };
	struct policy_query q = query(&r);
	struct policy_verdict v;
	char fix[POLICY_FIX], yaml[2048];

	q.ech = false;
	policy_decide(policy(base), &q, &v);
	CHECK(v.kind == POLICY_DENY);
	policy_fix(&q, &v, fix);
	(void)snprintf(yaml, sizeof yaml, "rules:\n  %s\n", fix);
	policy_decide(policy(yaml), &q, &v);
	if (v.kind != POLICY_ALLOW)
		t_fail_str(__FILE__, __LINE__, fix, policy_reason_text(v.reason));
}

static void the_suggested_rule_allows_it(void)
{
	check_fix("evil.test", NULL, 443, PROTO_TLS, "evil.test");
	check_fix("evil.test", NULL, 8443, PROTO_TLS, "evil.test");
	check_fix("evil.test", NULL, 80, PROTO_TLS, "evil.test");
	check_fix("evil.test", NULL, 22, PROTO_SSH, NULL);
	check_fix("evil.test", NULL, 443, PROTO_TCP, NULL);
	check_fix("evil.test", NULL, 9999, PROTO_UNKNOWN, NULL);
	check_fix("example.com", NULL, 443, PROTO_TLS, "other.test");
	check_fix("example.com", NULL, 443, PROTO_TLS, NULL);
	check_fix("example.com", "10.0.0.1", 443, PROTO_TLS, "example.com");
	check_fix("example.com", "169.254.169.254", 443, PROTO_TLS, "example.com");
	check_fix("mirror.test", NULL, 80, PROTO_HTTP, "POST");
	check_fix(NULL, "8.8.8.8", 53, PROTO_UNKNOWN, NULL);
	check_fix(NULL, "fd00::1", 22, PROTO_SSH, NULL);
	check_fix(NULL, "::ffff:10.9.8.7", 80, PROTO_HTTP, "GET");
}

static void no_rule_is_suggested_for_what_no_rule_allows(void)
{
	static const struct row rows[] = { { .name = "localhost", .port = 80 },
					   { .addr = "127.0.0.1", .port = 80 },
					   { .name = "a.test", .addr = "::1", .port = 80 } };
	struct policy_verdict v;
	char fix[POLICY_FIX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct policy_query q = query(&rows[i]);

		policy_decide(policy(base), &q, &v);
		policy_fix(&q, &v, fix);
		CHECK_STR(fix, "");
	}
}

T_MAIN(T(names_alone_are_judged_for_dns), T(ports_decide_at_connect),
       T(the_protocol_must_be_the_ports_own), T(the_server_name_must_be_the_name),
       T(opaque_bytes_may_be_a_request_that_a_rule_denies),
       T(opaque_bytes_do_not_bypass_a_denial_with_default_allow),
       T(the_host_header_must_be_the_name), T(addresses_that_are_not_global_take_a_rule),
       T(a_denied_range_holds_for_names_too), T(connections_to_addresses_take_a_rule_for_addresses),
       T(methods_and_paths_are_judged_by_request), T(missing_and_empty_rules_mean_deny),
       T(a_default_that_allows_does_not_open_the_inside), T(the_first_rule_that_matches_decides),
       T(the_verdict_says_what_to_inspect), T(the_suggested_rule_allows_it),
       T(no_rule_is_suggested_for_what_no_rule_allows))
