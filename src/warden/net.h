/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a sandbox, the warden's part: starts the gateway in its jail and again when it
 * dies, gives it the policy, and writes what it tells to the trace, with the call and the process
 * that it was for. The gateway reads hostile bytes: what it says about names and rules is text to
 * be written down, and whose a connection is, is decided here.
 */
#pragma once

#include "warden/call.h"

struct net;

/* A field of the build request that is about the network. */
int net_take(struct warden *w, struct field f, struct err *e);
/* Once the sandbox is there. */
int net_open(struct warden *w, struct err *e);
void net_close(struct warden *w);

/* A call begins: connections out of its control group are its own. */
void net_call_begin(struct call *c);
/* What was refused to a call, as fields of MSG_C_EXIT and in the event that is being built. */
int net_put_denied(const struct call *c, struct buf *out);
void net_trace_denied(struct call *c);
void net_call_free(struct call *c);

/* Requests of clients. */
int net_set_policy(struct client *c, const struct frame *f, struct err *e);
int net_list(struct client *c, uint32_t chan, struct err *e);
/* The client is gone. */
void net_forget_client(struct client *c);

/* net_trace.c */
struct net_denial {
	struct net_denial *next;
	char *name, *addr, *rule, *reason, *why, *fix;
	uint64_t port, count;
};

/* Which call a control group is of. */
struct net_group {
	uint64_t id; /* inode of its directory */
	uint32_t call;
	uint64_t event; /* call.start */
};

struct net_flow {
	uint64_t event; /* net.connect; 0: none is open here */
	uint32_t call;
	/* Who had the socket when it was accepted, where control groups do not tell. */
	uint32_t owner_call;
	int owner_process;
	uint64_t owner_inode;
};

/* Who had the last socket that was looked for. */
struct net_last {
	int dir;    /* of its descriptors, or FD_NONE */
	int number; /* of the socket among them */
	uint32_t call;
	int process; /* its pid inside */
};

enum { NET_GROUPS = 4096 };

struct net {
	struct warden *w;
	struct conn conn;
	bool ending; /* only its last words are awaited */
	pid_t pid;
	int pidfd;
	char *policy; /* compiled */
	size_t policy_len;
	struct buf config; /* fields of GW_CONFIG */
	struct loop_timer restart;
	unsigned failures;
	uint64_t started_ns;
	struct net_group *groups; /* a ring */
	uint32_t ngroups;
	struct net_flow *flows; /* by slot */
	uint32_t nflows;
	struct net_last last;
	uint64_t searched_ns;	/* when there was something to look for */
	int64_t search_left_ns; /* time that may be spent on it */
	struct client *asker;	/* waits for GW_POLICY_SET or the list */
	uint32_t asker_chan;
	bool asks_list;
};

/* Write one event of the gateway. */
void net_event(struct net *n, const struct frame *f);
/* Look whose a socket is, and remember. */
void net_whose(struct net *n, const struct frame *f);
/* The gateway is gone: so are its connections. */
void net_flows_lost(struct net *n);
/* The pid inside of whoever holds a socket of the call (0: of any); 0: nobody any more. */
int net_process_of(struct warden *w, uint32_t *call, uint64_t inode);
void net_process_forget(struct net *n);
