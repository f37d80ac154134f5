/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compiled policy and its decisions. Pure: no I/O, no clock, no logging.
 *
 * A policy is a list of rules and a default. The first rule that matches decides. Knowledge of a
 * connection grows in steps:
 * - at a DNS query: the name
 * - at connect: the port
 * - after resolution: the address to dial
 * - after the first bytes: the client's protocol
 * - then: the name in the TLS hello, or the plain HTTP request
 *
 * The gateway calls policy_decide() at each step with everything known so far. If a rule cannot be
 * judged yet, the answer is POLICY_PENDING, unless every possible outcome is a denial.
 *
 * A connection is denied as soon as the denial is certain. It is allowed only if nothing still
 * unknown could change that.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "wire/ip.h"

enum policy_action { POLICY_ACT_DENY = 0, POLICY_ACT_ALLOW = 1 };

/* The client's protocol; also bits of a set. UNKNOWN: no bytes seen yet. */
enum policy_proto {
	PROTO_UNKNOWN = 0,
	PROTO_TLS = 1,
	PROTO_HTTP = 2,
	PROTO_SSH = 4,
	PROTO_TCP = 8, /* anything else, or a silent client */
	PROTO_ANY = 15,
};

/* Irregularities that a rule tolerates; bits. */
enum policy_lenient {
	LENIENT_SNI_MISMATCH = 1, /* the hello names another host */
	LENIENT_SNI_MISSING = 2,
	LENIENT_ECH = 4, /* the name is encrypted */
};

/* 0 means "no limit" everywhere. */
struct policy_limits {
	uint64_t bytes, bytes_up, bytes_down; /* budgets: over all connections */
	uint64_t connections;		      /* budget: over the whole lifetime */
	uint64_t concurrent;		      /* open at once */
	uint64_t rate_up, rate_down;	      /* bytes a second */
	uint64_t rate_connections;	      /* per second */
	uint64_t rate_dns;		      /* queries per second; for the whole sandbox only */
};

struct port_range {
	uint16_t first, last;
};

struct policy_rule {
	struct str id;
	struct str origin; /* where it was written: "net.yaml:12", "preset coding", "--allow" */
	enum policy_action action;
	const struct str *hosts; /* patterns */
	size_t nhosts;
	const struct cidr *addresses;
	size_t naddresses;
	const struct port_range *ports; /* none means all */
	size_t nports;
	unsigned protocols; /* set of enum policy_proto; 0: by port, see policy_protocols() */
	const struct str *methods;
	size_t nmethods;
	const struct str *paths; /* patterns */
	size_t npaths;
	unsigned lenient; /* set of enum policy_lenient */
	struct policy_limits limits;
};

struct policy {
	enum policy_action def; /* if no rule matches */
	struct str name;	/* of the file or preset */
	struct policy_limits limits;
	const struct policy_rule *rules;
	size_t nrules;
	void *memory; /* everything above points into it */
};

/* Decode the compiled form. -EBADMSG, -EPROTO (another version), -E2BIG or -ENOMEM. */
int policy_decode(struct str compiled, struct policy **ret);
void policy_free(struct policy *p);
DEFINE_AUTO_PTR(struct policy, policy_free)

/* What is known of a connection. Leave unknown members 0. */
struct policy_query {
	struct str name; /* canonical (wire/host.h); empty: a connection to an address */
	struct ip addr;	 /* the address to dial */
	uint16_t port;
	enum policy_proto proto; /* PROTO_TCP also if the client is silent */
	bool silent;		 /* silent so far; the gateway asks again when bytes come */
	/* PROTO_TLS */
	bool has_sni, ech;
	bool bad_hello; /* unreadable: no name in it can be trusted */
	struct str sni; /* canonical */
	/* PROTO_HTTP; has_request is false until the head is read */
	bool has_request;
	struct str host;    /* canonical name in the Host header, or its address as text */
	uint16_t host_port; /* in the Host header; 0: none */
	struct str method, path;
};

enum policy_verdict_kind { POLICY_DENY, POLICY_ALLOW, POLICY_PENDING };

enum policy_reason {
	REASON_RULE,	/* a rule decided */
	REASON_DEFAULT, /* no rule matches */
	REASON_NAME,	/* localhost, which is never allowed */
	REASON_ADDRESS, /* not global, and no rule names the address */
	REASON_NEVER,	/* an address that no rule can open */
	REASON_SNI_MISMATCH,
	REASON_SNI_MISSING,
	REASON_ECH,
	REASON_HELLO,	      /* an unreadable TLS hello */
	REASON_HOST_MISMATCH, /* the Host of a plain request differs */
	REASON_PATH,	      /* a path that servers read differently: /a/../b, %2f */
	REASON_OPAQUE,	      /* unreadable, and a rule that denies requests might apply */
};

/* How an allowed connection depends on the client's first bytes. */
enum policy_inspect {
	INSPECT_NONE, /* not at all: pass the bytes */
	INSPECT_MAY,  /* dial at once; decide again if the bytes turn out to be TLS or HTTP */
	INSPECT_MUST, /* wait for the bytes, then decide again */
};

enum {
	POLICY_NEEDS_ADDR = 1,
	POLICY_NEEDS_PROTO = 2,
	POLICY_NEEDS_REQUEST = 4,
	POLICY_NEEDS_PORT = 8
};

struct policy_verdict {
	enum policy_verdict_kind kind;
	enum policy_reason reason;
	const struct policy_rule *rule; /* the rule that decided; NULL: the default */
	unsigned needs;			/* for PENDING: what is missing */
	enum policy_inspect inspect;	/* for ALLOW and PENDING */
};

void policy_decide(const struct policy *p, const struct policy_query *q,
		   struct policy_verdict *ret);

/* The protocols that a rule covers at this port. */
unsigned policy_protocols(const struct policy_rule *r, uint16_t port);
/* The id of the deciding rule, or "default". */
struct str policy_rule_id(const struct policy_verdict *v);
/* "no rule matches", "the server name in TLS differs", ... */
const char *policy_reason_text(enum policy_reason reason);
/* "sni_mismatch", ...: for traces and JSON. */
const char *policy_reason_name(enum policy_reason reason);
const char *policy_proto_name(enum policy_proto proto);

enum { POLICY_FIX = 512 };
/*
 * The line that would allow this connection if added to the rules; "" if no rule can.
 * - {id: allow-example-com, hosts: [example.com], ports: [443]}
 */
void policy_fix(const struct policy_query *q, const struct policy_verdict *v, char out[POLICY_FIX]);
