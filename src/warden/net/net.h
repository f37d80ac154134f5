/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warden's part of the network. It starts the two processes of the gateway, each in its jail,
 * and restarts both when one dies. It gives them the policy. It writes their reports to the trace,
 * with the call and the process concerned.
 *
 * The front reads hostile bytes. So its reports about names and rules are only text to record, and
 * the warden itself decides which call owns a connection. Only a report of the dialer becomes a
 * net.dial.
 */
#pragma once

#include "base/sha256.h"
#include "warden/call/call.h"

struct net;
struct net_ask;

/* Read a field of the build request that concerns the network. */
int net_take(struct warden *w, struct field f, struct err *e);
/* The build request or the claim had a policy. */
bool net_has_policy(const struct warden *w);
/*
 * Start the gateway, after the sandbox is built. The gateway of a ready sandbox gets neither the
 * sandbox's sockets nor a policy: it waits.
 */
int net_open(struct warden *w, struct err *e);
/* The sandbox has an owner: give the waiting gateway its sockets and the owner's policy. */
int net_claim(struct warden *w, struct err *e);
void net_close(struct warden *w);

/* A call begins: connections from its control group belong to it. */
void net_call_begin(struct call *c);
/* Add the denials of a call to MSG_C_EXIT, or to the event in progress. */
int net_put_denied(const struct call *c, struct buf *out);
void net_trace_denied(struct call *c);
void net_call_free(struct call *c);
/* A command of the call (ctx) was refused a user namespace: a denial like those of connections. */
void net_deny_namespace(void *ctx);

/* Requests of clients. */
int net_set_policy(struct client *c, const struct frame *f, struct err *e);
int net_list(struct client *c, uint32_t chan, struct err *e);
/* The client is gone. */
void net_forget_client(struct client *c);
/* Hash of the policy that the gateway obeys; false: none. */
bool net_policy_hash(const struct warden *w, char out[SHA256_HEX]);

/* net_trace.c */
struct net_denial {
	struct net_denial *next;
	char *name, *addr, *rule, *reason, *why, *fix;
	uint64_t port, count;
};

/* Maps a control group to its call. */
struct net_group {
	uint64_t id; /* inode of its directory */
	uint32_t call;
	uint64_t event; /* call.start */
};

struct net_flow {
	uint64_t event; /* net.connect; 0: no connection is open in this slot */
	uint32_t call;
	/* Owner of the socket when it was accepted, if control groups cannot tell. */
	uint32_t owner_call;
	int owner_process;
	uint64_t owner_inode;
};

/* The process that held the last socket searched for. */
struct net_last {
	int dir;    /* directory of its descriptors, or FD_NONE */
	int number; /* descriptor number of the socket */
	uint32_t call;
	int process; /* its pid inside */
};

enum { NET_GROUPS = 4096 };

/* One of the two processes of the gateway. */
struct net_part {
	struct net *n;
	struct conn conn;
	pid_t pid; /* 0: not running */
	int pidfd;
	int ledger; /* memory with the used budgets; outlives the process */
};

enum { NET_FRONT, NET_DIALER, NET_PARTS };

struct net {
	struct warden *w;
	struct net_part part[NET_PARTS];
	bool ending;  /* only the last reports are awaited */
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
	uint64_t searched_ns;	/* time of the last search */
	int64_t search_left_ns; /* time that searches may still use */
	struct net_ask *asks;	/* net_queue.c: the first one has been sent */
};

/* net_queue.c: the gateway answered the oldest request. */
/* The dialer has accepted the policy: send it to the front. */
void net_queue_half_set(struct net *n);
void net_queue_policy_set(struct net *n, uint64_t cut, uint64_t error);
void net_queue_listed(struct net *n);
/* The client that asked for the list; NULL: none. */
struct client *net_queue_lister(const struct net *n, uint32_t *ret_chan);
/* The gateway died: fail all requests. */
void net_queue_fail(struct net *n);
void net_queue_free(struct net *n);

/* net_policy.c */
/*
 * The gateway obeys a new policy (from: the last one, empty at first). Write its rules to the
 * trace, and store it in the file `policy` of the sandbox's directory, for `cay show`. -1 if the
 * trace cannot be written.
 */
int net_policy_note(struct net *n, struct str from, struct str to, const struct who *who);

/* net_gateway.c */
/* Start both processes. 0, or -errno with neither running. */
int net_prepare(struct net *n);
/* Give them sockets, resolvers and the policy. 0 or -errno. */
int net_configure(struct net *n);
/* Both steps. 0, or -errno with neither running. */
int net_start(struct net *n);
/* End both, and close the connections to them. */
void net_stop(struct net *n);
/* The same, after their last reports. */
void net_stop_gently(struct net *n);
/* net.c: a process sent a frame, or its connection closed. */
void net_on_front(struct conn *c, const struct frame *f, int *fds);
void net_on_dialer(struct conn *c, const struct frame *f, int *fds);
void net_on_closed(struct conn *c, int err);

/* Write one event from the front. */
void net_event(struct net *n, const struct frame *f);
/* Write a dial, or a refused dial, from the dialer. */
void net_dial_event(struct net *n, const struct frame *f);
/* Find the owner of a socket, and remember it. */
void net_whose(struct net *n, const struct frame *f);
/* The gateway is gone, and its connections with it. */
void net_flows_lost(struct net *n);
/* The pid inside of a process that holds a socket of the call (0: of any call); 0: none. */
int net_process_of(struct warden *w, uint32_t *call, uint64_t inode);
/*
 * True if only this call holds the socket. False if unknown: a process can pass a socket to another
 * call, while the socket's control group stays the same.
 */
bool net_socket_is_of(struct warden *w, uint32_t call, uint64_t inode);
void net_process_forget(struct net *n);
