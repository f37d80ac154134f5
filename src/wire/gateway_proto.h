/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between a warden and its gateway, on the frames of wire/frame.h. The channel of what
 * concerns a connection is its slot, which is used again only after GW_CLOSE, GW_DENY or GW_FAIL.
 */
#pragma once

enum gw_msg {
	/* warden to gateway */
	GW_CONFIG = 1, /* NAMESERVER*, PROXY, NO_PROXY, ASK; descriptors by enum net_fd */
	GW_POLICY = 2, /* a compiled policy, raw */
	GW_LIST = 3,   /* ask for the open connections */
	GW_OWNED = 4,  /* the answer to WHOSE: the connection may go on */
	/* gateway to warden */
	GW_READY = 16,	    /* the first policy holds */
	GW_EVENT = 17,	    /* KIND and what belongs to it */
	GW_POLICY_SET = 18, /* COUNT of connections that were cut, or ERROR */
	GW_FLOW = 19,	    /* one open connection: NAME ADDR PORT RULE UP DOWN US */
	GW_END = 20,	    /* of the list */
	GW_WHOSE = 21,	    /* INODE: look who has this socket now, before the client can be gone */
};

enum gw_kind {
	GW_KIND_DNS,	 /* NAME TYPE ANSWER RULE */
	GW_KIND_CONNECT, /* NAME ADDR PORT RULE PROTO */
	GW_KIND_TLS,	 /* SNI ALPN VERSION */
	GW_KIND_HTTP,	 /* METHOD PATH STATUS */
	GW_KIND_CLOSE,	 /* NAME ADDR PORT RULE UP DOWN US REASON */
	GW_KIND_DENY,	 /* NAME ADDR PORT PROTO RULE REASON WHY FIX, METHOD PATH */
	GW_KIND_FAIL,	 /* NAME ADDR PORT RULE REASON: allowed, but could not be reached */
	GW_KIND_GAP,	 /* COUNT events of KIND dns were not told */
	GW_KINDS,
};

enum gw_tag {
	GW_T_NAMESERVER = 1, /* an address, or address:port */
	GW_T_PROXY,	     /* http://[user:password@]host:port, socks5://… */
	GW_T_NO_PROXY,
	GW_T_KIND,
	GW_T_CGROUP, /* id of the control group of the process that made the socket */
	GW_T_UID,
	GW_T_INODE, /* of the socket */
	GW_T_UNCERTAIN,
	GW_T_NAME,
	GW_T_ADDR,
	GW_T_PORT,
	GW_T_RULE,
	GW_T_REASON, /* a word */
	GW_T_WHY,    /* a sentence */
	GW_T_FIX,    /* the line that would allow it */
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
	GW_T_ASK, /* calls have no control groups: ask WHOSE each connection is */
};
