/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compiled policy and its decisions. Pure: no I/O, no clock, no logging.
 *
 * A policy is a list of rules and a default. Rules are asked in order and the first that
 * matches decides. What is known of a connection grows: at a DNS query only its name, then its
 * port, then (after resolution) the address to dial, then what the client speaks, then the
 * name in its TLS hello or the plain HTTP request. policy_decide() is asked at each of these
 * points with all that is known by then. A rule that cannot be judged yet makes the answer
 * POLICY_PENDING, unless every possible end is a denial.
 *
 * A connection is denied as soon as it is certain to be, and allowed only when nothing that
 * is still unknown could change that.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "wire/ip.h"

enum policy_action { POLICY_ACT_DENY = 0, POLICY_ACT_ALLOW = 1 };

/* What a client speaks; also bits of a set. UNKNOWN: nothing was seen yet. */
enum policy_proto {
	PROTO_UNKNOWN = 0,
	PROTO_TLS = 1,
	PROTO_HTTP = 2,
	PROTO_SSH = 4,
	PROTO_TCP = 8, /* anything else, or silence */
	PROTO_ANY = 15,
};

/* What a rule lets pass although it looks wrong; bits. */
enum policy_lenient {
	LENIENT_SNI_MISMATCH = 1, /* the name in the hello is another one */
	LENIENT_SNI_MISSING = 2,
	LENIENT_ECH = 4, /* the name is encrypted */
};

/* 0 is "no limit" everywhere. */
struct policy_limits {
	uint64_t bytes, bytes_up, bytes_down; /* budgets: over all connections */
	uint64_t connections;		      /* budget: over all time */
	uint64_t concurrent;		      /* open at once */
	uint64_t rate_up, rate_down;	      /* bytes a second */
	uint64_t rate_connections;	      /* a second */
	uint64_t rate_dns;		      /* queries a second; of the whole sandbox only */
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
	const struct port_range *ports; /* none: all */
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
	enum policy_action def; /* where no rule matches */
	struct str name;	/* of the file or preset */
	struct policy_limits limits;
	const struct policy_rule *rules;
	size_t nrules;
	void *memory; /* everything above points into it */
};

/* Read the compiled form. NULL and -EBADMSG, -EPROTO (another version), -E2BIG, -ENOMEM. */
int policy_decode(struct str compiled, struct policy **ret);
void policy_free(struct policy *p);
DEFINE_AUTO_PTR(struct policy, policy_free)

/* What is known of a connection. Leave what is not known yet as 0. */
struct policy_query {
	struct str name; /* canonical (wire/host.h); empty: a connection to an address */
	struct ip addr;	 /* that will be dialled */
	uint16_t port;
	enum policy_proto proto; /* PROTO_TCP also where the client is silent */
	/* PROTO_TLS */
	bool has_sni, ech;
	bool bad_hello; /* it cannot be read: no name in it could be trusted */
	struct str sni; /* canonical */
	/* PROTO_HTTP; has_request is false until the head was read */
	bool has_request;
	struct str host;    /* canonical name of the Host header, or text of its address */
	uint16_t host_port; /* of the Host header; 0: none was written */
	struct str method, path;
};

enum policy_verdict_kind { POLICY_DENY, POLICY_ALLOW, POLICY_PENDING };

enum policy_reason {
	REASON_RULE,	/* a rule says so */
	REASON_DEFAULT, /* no rule matches */
	REASON_NAME,	/* localhost, which is never allowed */
	REASON_ADDRESS, /* not global, and no rule names it */
	REASON_NEVER,	/* an address that nobody may dial */
	REASON_SNI_MISMATCH,
	REASON_SNI_MISSING,
	REASON_ECH,
	REASON_HELLO,	      /* a TLS hello that cannot be read */
	REASON_HOST_MISMATCH, /* the Host of a plain request is another one */
	REASON_PATH,	      /* a path that servers read differently: /a/../b, %2f */
};

/* How the first bytes of the client matter to an allowed connection. */
enum policy_inspect {
	INSPECT_NONE, /* not at all: pass them */
	INSPECT_MAY,  /* dial at once; when TLS or HTTP is recognised in what comes, ask again */
	INSPECT_MUST, /* wait for them, then ask again */
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
	const struct policy_rule *rule; /* that decided; NULL: the default */
	unsigned needs;			/* of PENDING: what is missing */
	enum policy_inspect inspect;	/* of ALLOW and PENDING */
};

void policy_decide(const struct policy *p, const struct policy_query *q,
		   struct policy_verdict *ret);

/* The protocols that a rule speaks of at this port. */
unsigned policy_protocols(const struct policy_rule *r, uint16_t port);
/* Its id, or "default". */
struct str policy_rule_id(const struct policy_verdict *v);
/* "no rule matches", "the server name in TLS is another one", ... */
const char *policy_reason_text(enum policy_reason reason);
/* "sni_mismatch", ...: for traces and JSON. */
const char *policy_reason_name(enum policy_reason reason);
const char *policy_proto_name(enum policy_proto proto);

enum { POLICY_FIX = 512 };
/*
 * The line to add to the rules of a policy so that this would be allowed; "" where nothing can.
 *	- {id: allow-example-com, hosts: [example.com], ports: [443]}
 */
void policy_fix(const struct policy_query *q, const struct policy_verdict *v, char out[POLICY_FIX]);
