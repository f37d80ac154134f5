/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between a warden and the two processes of its gateway, as frames (wire/frame.h). The
 * channel of a connection's messages is its slot. A slot is reused only after GW_CLOSE, GW_DENY or
 * GW_FAIL. wire/dial_ask.h has the packets between front and dialer.
 */
#pragma once

enum gw_msg {
	/* warden to gateway */
	/*
	 * To the dialer: NAMESERVER*, PROXY, NO_PROXY and the ledger (policy/ledger.h). To the
	 * front: ASK and its ledger, with descriptors by enum net_fd.
	 */
	GW_CONFIG = 1,
	GW_POLICY = 2, /* a compiled policy, raw */
	GW_LIST = 3,   /* to the front: list the open connections */
	GW_OWNED = 4,  /* to the front, answer to GW_WHOSE: continue the connection */
	/* gateway to warden */
	GW_READY = 16,	    /* the first policy is in force */
	GW_EVENT = 17,	    /* KIND and its fields */
	GW_POLICY_SET = 18, /* COUNT of connections that it cut, or ERROR */
	GW_FLOW = 19,	    /* one open connection: NAME ADDR PORT RULE UP DOWN US */
	GW_END = 20,	    /* end of the list */
	GW_WHOSE = 21,	    /* INODE: find the owner of this socket now, before the client exits */
};

enum gw_kind {
	GW_KIND_DNS,	 /* NAME TYPE ANSWER RULE */
	GW_KIND_CONNECT, /* NAME ADDR PORT RULE PROTO */
	GW_KIND_TLS,	 /* SNI ALPN VERSION */
	GW_KIND_HTTP,	 /* METHOD PATH STATUS */
	GW_KIND_CLOSE,	 /* NAME ADDR PORT RULE UP DOWN US REASON */
	GW_KIND_DENY,	 /* NAME ADDR PORT PROTO RULE REASON WHY FIX, METHOD PATH */
	GW_KIND_FAIL,	 /* NAME ADDR PORT RULE REASON: allowed, but unreachable */
	GW_KIND_GAP,	 /* COUNT dns events were dropped */
	/*
	 * From the dialer only: NAME ADDR PORT RULE, connected. With REASON: a request that the
	 * dialer refused. COUNT: earlier refusals that it did not report.
	 */
	GW_KIND_DIAL,
	GW_KINDS,
};

enum gw_tag {
	GW_T_NAMESERVER = 1, /* an address, or address:port */
	GW_T_PROXY,	     /* http://[user:password@]host:port, socks5://… */
	GW_T_NO_PROXY,
	GW_T_KIND,
	GW_T_CGROUP, /* id of the cgroup of the process that made the socket */
	GW_T_UID,
	GW_T_INODE, /* of the socket */
	GW_T_UNCERTAIN,
	GW_T_NAME,
	GW_T_ADDR,
	GW_T_PORT,
	GW_T_RULE,
	GW_T_REASON, /* a word */
	GW_T_WHY,    /* a sentence */
	GW_T_FIX,    /* the policy line that would allow it */
	GW_T_UP,     /* bytes out of the sandbox */
	GW_T_DOWN,
	GW_T_US, /* microseconds */
	GW_T_PROTO,
	GW_T_SNI,
	GW_T_ALPN,
	GW_T_VERSION,
	GW_T_METHOD,
	GW_T_PATH,
	GW_T_STATUS,
	GW_T_TYPE,
	GW_T_ANSWER,
	GW_T_ERROR,
	GW_T_COUNT,
	GW_T_ASK, /* calls have no cgroups: send GW_WHOSE for each connection */
};
