/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled form: fields (wire/frame.h), the version first. For compile.c and decode.c. An
 * unknown field is an error: a policy understood only in part allows too much.
 */
#pragma once

enum { POLICY_FORMAT = 1 };

enum policy_tag {
	P_VERSION = 1,
	P_DEFAULT, /* enum policy_action */
	P_NAME,
	P_LIMITS, /* nested: enum limit_tag */
	P_RULE,	  /* nested: enum rule_tag; in order */
};

enum rule_tag {
	R_ID = 1,
	R_ORIGIN,
	R_ACTION,    /* enum policy_action */
	R_HOST,	     /* pattern; many */
	R_ADDRESS,   /* prefix length, then 4 or 16 bytes; many */
	R_PORTS,     /* first and last, big endian; many */
	R_PROTOCOLS, /* set of enum policy_proto */
	R_METHOD,    /* many */
	R_PATH,	     /* pattern; many */
	R_LENIENT,   /* set of enum policy_lenient */
	R_LIMITS,    /* nested */
};

/* X(tag, member of struct policy_limits, a rule may have it) */
#define POLICY_LIMITS(X) \
	X(1, bytes, true) \
	X(2, bytes_up, true) \
	X(3, bytes_down, true) \
	X(4, connections, true) \
	X(5, concurrent, true) \
	X(6, rate_up, true) \
	X(7, rate_down, true) \
	X(8, rate_connections, true) \
	X(9, rate_dns, false)
