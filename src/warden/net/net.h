/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a sandbox, the warden's part: starts the two processes of the gateway, each in its
 * jail, and both again when one dies; gives them the policy; and writes what they tell to the
 * trace, with the call and the process that it was for. The front reads hostile bytes: what it says
 * about names and rules is text to be written down, and whose a connection is, is decided here.
 * Only what the dialer says becomes a net.dial.
 */
#pragma once

#include "base/sha256.h"
#include "warden/call/call.h"

struct net;
struct net_ask;

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
/* Of the policy that the gateway obeys; false: there is none. */
bool net_policy_hash(const struct warden *w, char out[SHA256_HEX]);

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

/* One process of the gateway. */
struct net_part {
	struct net *n;
	struct conn conn;
	pid_t pid; /* 0: there is none */
	int pidfd;
	int ledger; /* memory with what was used of budgets, which outlives the process */
};

enum { NET_FRONT, NET_DIALER, NET_PARTS };

struct net {
	struct warden *w;
	struct net_part part[NET_PARTS];
	bool ending;  /* only last words are awaited */
	char *policy; /* compiled; every new gateway gets it */
	size_t policy_len;
	struct buf config; /* fields of GW_CONFIG for the dialer */
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
	struct net_ask *asks;	/* net_queue.c: the first has been sent */
};

/* net_queue.c: the gateway's answers to what was asked first. */
/* The dialer has taken the policy: now the front. */
void net_queue_half_set(struct net *n);
void net_queue_policy_set(struct net *n, uint64_t cut, uint64_t error);
void net_queue_listed(struct net *n);
/* The client for whom the list is; NULL: nobody. */
struct client *net_queue_lister(const struct net *n, uint32_t *ret_chan);
/* The gateway died: it answers nothing of all that. */
void net_queue_fail(struct net *n);
void net_queue_free(struct net *n);

/* net_policy.c */
/*
 * The gateway obeys another policy (from: the last one, empty for the first): write what it says to
 * the trace, and keep it in the file `policy` of the sandbox's directory, where `cay show` reads
 * it. -1 if the trace cannot be written.
 */
int net_policy_note(struct net *n, struct str from, struct str to, const struct who *who);

/* net_gateway.c */
/* Start both processes. 0, or -errno and there is none. */
int net_start(struct net *n);
/* End both, and close the connections to them. */
void net_stop(struct net *n);
/* The same, after their last words. */
void net_stop_gently(struct net *n);
/* net.c: what a process says, and that it is gone. */
void net_on_front(struct conn *c, const struct frame *f, int *fds);
void net_on_dialer(struct conn *c, const struct frame *f, int *fds);
void net_on_closed(struct conn *c, int err);

/* Write one event of the front. */
void net_event(struct net *n, const struct frame *f);
/* Write what the dialer has dialled, or refused to dial. */
void net_dial_event(struct net *n, const struct frame *f);
/* Look whose a socket is, and remember. */
void net_whose(struct net *n, const struct frame *f);
/* The gateway is gone: so are its connections. */
void net_flows_lost(struct net *n);
/* The pid inside of whoever holds a socket of the call (0: of any); 0: nobody any more. */
int net_process_of(struct warden *w, uint32_t *call, uint64_t inode);
/*
 * Whether the call alone has the socket. False also where that cannot be told: a socket can be
 * passed to another call, and its control group stays that of the call that made it.
 */
bool net_socket_is_of(struct warden *w, uint32_t call, uint64_t inode);
void net_process_forget(struct net *n);
