/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay policy explain: shows what a policy decides about one connection, and which rule decides it.
 */
#include <stdio.h>
#include <strings.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/policy/policy_load.h"
#include "policy/address.h"
#include "wire/host.h"

static struct {
	const char *host, *proto, *method, *path, *sni, *address;
	uint64_t port;
	bool no_sni, ech;
	struct opt_list allow, deny;
} o;

static struct opt opts[] = {
	{ "host", 0, OPT_TEXT, "HOST", "The name or address that is connected to (needed)",
	  &o.host },
	{ "port", 'p', OPT_COUNT, "PORT", "The port (default 443)", &o.port },
	{ "proto", 0, OPT_TEXT, "tls|http|ssh|tcp",
	  "What the client speaks (default: what the port is for)", &o.proto },
	{ "sni", 0, OPT_TEXT, "NAME", "The server name in TLS (default: the host)", &o.sni },
	{ "no-sni", 0, OPT_FLAG, NULL, "TLS without a server name", &o.no_sni },
	{ "ech", 0, OPT_FLAG, NULL, "TLS with an encrypted hello", &o.ech },
	{ "method", 0, OPT_TEXT, "METHOD", "The method of a plain HTTP request (default GET)",
	  &o.method },
	{ "path", 0, OPT_TEXT, "PATH", "Its path (default /)", &o.path },
	{ "address", 0, OPT_TEXT, "ADDRESS", "The address that the name resolves to", &o.address },
	{ "allow", 0, OPT_LIST, "TARGET", "As with cay run", &o.allow },
	{ "deny", 0, OPT_LIST, "TARGET", "As with cay run", &o.deny },
	{ 0 },
};

/* The question, and the memory that it points to. */
struct question {
	struct policy_query q;
	char name[HOST_TEXT], sni[HOST_TEXT];
};

static int bad_host(const char *host, int r, struct err *e)
{
	return err_set(e, ERR_DENIED, "'%s' %s; the gateway refuses it", host, host_why(r));
}

static int take_host(struct question *a, struct err *e)
{
	struct host h = { 0 };
	int r = 0;

	if (ip_parse(str_of(o.host), &h.ip) < 0)
		r = host_parse(str_of(o.host), &h);
	if (r < 0)
		return bad_host(o.host, r, e);
	if (h.ip.len) {
		a->q.addr = ip_plain(h.ip);
		return 0;
	}
	(void)str_copy(a->name, sizeof a->name, str_of(h.name));
	a->q.name = str_of(a->name);
	if (o.address && ip_parse(str_of(o.address), &a->q.addr) < 0)
		return err_set(e, ERR_INVALID, "--address '%s' is not an address", o.address);
	return 0;
}

static enum policy_proto proto_of(uint16_t port)
{
	const struct policy_rule plain = { .action = POLICY_ACT_ALLOW };
	unsigned set = policy_protocols(&plain, port);

	return set == PROTO_ANY ? PROTO_UNKNOWN : (enum policy_proto)set;
}

static int take_proto(struct cmd_ctx *ctx, struct question *a, struct err *e)
{
	static const enum policy_proto all[] = { PROTO_TLS, PROTO_HTTP, PROTO_SSH, PROTO_TCP };

	a->q.proto = o.method || o.path		  ? PROTO_HTTP
		     : o.sni || o.no_sni || o.ech ? PROTO_TLS
						  : proto_of(a->q.port);
	if (!o.proto)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(o.proto, policy_proto_name(all[i])) == 0) {
			a->q.proto = all[i];
			return 0;
		}
	return cmd_usage(ctx, e, "--proto '%s' is none of tls, http, ssh, tcp", o.proto);
}

static int take_evidence(struct question *a, struct err *e)
{
	if (a->q.proto == PROTO_TLS) {
		int r = o.sni ? host_name(str_of(o.sni), a->sni) : 0;

		if (r < 0)
			return bad_host(o.sni, r, e);
		a->q.sni = o.sni ? str_of(a->sni) : a->q.name;
		a->q.has_sni = !o.no_sni && a->q.sni.n;
		a->q.ech = o.ech;
	}
	if (a->q.proto == PROTO_HTTP) {
		a->q.has_request = true;
		a->q.host = a->q.name;
		a->q.method = str_of(o.method ? o.method : "GET");
		a->q.path = str_of(o.path ? o.path : "/");
	}
	return 0;
}

static const char *verdict_name(enum policy_verdict_kind kind)
{
	return kind == POLICY_ALLOW ? "allow" : kind == POLICY_DENY ? "deny" : "depends";
}

static const char *needs_text(unsigned needs)
{
	if (needs & POLICY_NEEDS_ADDR)
		return "the address that the name resolves to (--address)";
	if (needs & POLICY_NEEDS_PROTO)
		return "what the client speaks (--proto)";
	return "the request (--method, --path)";
}

static void print_json(const struct question *a, const struct policy_verdict *v, const char *fix)
{
	struct json_line j;
	struct str none = STR_NONE;

	json_line_begin(&j);
	json_obj(&j.json);
	json_put_text(&j.json, "verdict", verdict_name(v->kind));
	json_put_text(&j.json, "reason",
		      v->kind == POLICY_PENDING ? "" : policy_reason_name(v->reason));
	json_put_str(&j.json, "rule", policy_rule_id(v));
	json_put_str(&j.json, "origin", v->rule ? v->rule->origin : none);
	json_put_text(&j.json, "host", o.host);
	json_put_i64(&j.json, "port", a->q.port);
	json_put_text(&j.json, "protocol", policy_proto_name(a->q.proto));
	json_put_text(&j.json, "needs", v->kind == POLICY_PENDING ? needs_text(v->needs) : "");
	json_put_text(&j.json, "add", fix);
	json_end(&j.json);
	json_line_print(&j);
}

static void print_rule(const struct policy_verdict *v)
{
	if (!v->rule) {
		puts("rule     default");
		return;
	}
	fputs("rule     ", stdout);
	out_safe_to(stdout, v->rule->id);
	fputs(" (", stdout);
	out_safe_to(stdout, v->rule->origin);
	fputs(")\n", stdout);
}

static void print_text(const struct cmd_ctx *ctx, const struct question *a,
		       const struct policy_verdict *v, const char *fix)
{
	static const enum out_color colors[] = {
		[POLICY_DENY] = OUT_RED, [POLICY_ALLOW] = OUT_GREEN, [POLICY_PENDING] = OUT_YELLOW
	};

	printf("%s%-9s%s", out_sgr(ctx->color_out, colors[v->kind]), verdict_name(v->kind),
	       out_sgr(ctx->color_out, OUT_PLAIN));
	out_safe_to(stdout, str_of(o.host));
	printf(" port %u, %s\n", a->q.port, policy_proto_name(a->q.proto));
	if (v->kind == POLICY_PENDING) {
		printf("on       %s\n", needs_text(v->needs));
		return;
	}
	print_rule(v);
	printf("because  %s\n", policy_reason_text(v->reason));
	if (v->reason == REASON_ADDRESS || v->reason == REASON_NEVER)
		printf("         it is %s\n", address_classify(&a->q.addr).what);
	if (fix[0]) {
		fputs("add      ", stdout);
		out_safe_to(stdout, str_of(fix));
		putchar('\n');
		if (v->reason == REASON_RULE)
			puts("         before that rule");
	}
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(buf_done) struct buf compiled = BUF_INIT(LIMIT_POLICY);
	auto_done(policy_free) struct policy *p = NULL;
	struct policy_source s = { .allow = &o.allow, .deny = &o.deny };
	struct question a = { 0 };
	struct policy_verdict v;
	char fix[POLICY_FIX];

	if (cmd_need_args(ctx, 1, 1, "FILE or PRESET", e) < 0)
		return -1;
	if (!o.host)
		return cmd_usage(ctx, e, "missing --host");
	if (o.port > UINT16_MAX)
		return cmd_usage(ctx, e, "--port is above 65535");
	a.q.port = o.port ? (uint16_t)o.port : 443;
	s.net = ctx->args[0];
	if (policy_load(&s, &compiled, &p, e) < 0 || take_host(&a, e) < 0 ||
	    take_proto(ctx, &a, e) < 0 || take_evidence(&a, e) < 0)
		return -1;
	policy_decide(p, &a.q, &v);
	policy_fix(&a.q, &v, fix);
	if (ctx->json)
		print_json(&a, &v, fix);
	else if (!ctx->quiet)
		print_text(ctx, &a, &v, fix);
	return v.kind == POLICY_ALLOW ? 0 : v.kind == POLICY_DENY ? err_exit(ERR_DENIED) : 1;
}

const struct cmd cmd_policy_explain = {
	.name = "policy explain",
	.synopsis = "FILE|PRESET --host HOST [--port PORT] [options]",
	.summary = "Say what a policy decides about a connection, and by which rule",
	.details = "The exit code is 0 where it is allowed, 6 where it is denied, and 1 where that "
		   "depends on something that was not said.",
	.examples = "cay policy explain coding --host pypi.org --port 443\n"
		    "cay policy explain net.yaml --host api.example.com --sni other.example.com\n"
		    "cay policy explain net.yaml --host mirror.example.com --port 80 --method POST",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "file",
};
