/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world for one gateway inside this process, so that a fuzzer can drive its connections in any
 * order. The flows, the fronts and the resolver's front are the real ones and use real TCP sockets
 * of the loopback. Everything that the gateway asks the outside for is played here: the clock, the
 * dialer, the warden, and the kernel's answer whose a socket is.
 */
#pragma once

#include "gateway/flow.h"

enum { WORLD_PEERS = 8, WORLD_SENT = 512 * 1024, WORLD_ASKS = 512 };

/* What the dialer does with the next asks. */
enum world_play { PLAY_OPEN, PLAY_HOLD, PLAY_FAIL, PLAY_DEAF, PLAYS };

/* How it answers one. */
enum world_reply {
	REPLY_DONE,
	REPLY_FAILED,
	REPLY_DENIED,
	REPLY_LIMITED,
	REPLY_NO_SOCKET, /* DONE, and the descriptor was lost on the way */
	REPLY_STALE,	 /* with a serial number of another ask: the ask stays */
	REPLY_TWICE,
	REPLIES
};

/* A program inside the sandbox, with all that it has sent. */
struct world_client {
	int fd;
	uint16_t port;
	unsigned generation;
	bool direct; /* its bytes go to the server as they are */
	size_t nsent;
	char sent[WORLD_SENT];
};

/* A server outside. What it gets is compared with what its client sent. */
struct world_server {
	int fd;
	uint16_t port; /* of the gateway's end */
	struct world_client *client;
	unsigned generation;
	size_t ngot;
};

struct world {
	struct gateway *g;
	uint64_t now_ns;
	enum world_play dials, lookups;
	bool via;	/* the dialer goes through the host's proxy: it tells no address */
	uint64_t inode; /* of the sockets inside; 0: not found */
	struct world_client clients[WORLD_PEERS];
	struct world_server servers[WORLD_PEERS];
	unsigned next_server;
	int listener, outside, dialer, warden, udp, udp_client;
	struct dial_ask asks[WORLD_ASKS]; /* without their answers, the oldest first */
	unsigned nasks;
	uint8_t told[LIMIT_NET_FLOWS];
};

extern struct world world;

/* The sockets that all inputs of this process share, once. */
void world_open(void);
void world_begin(void);
/* All connections end; whatever is left then is a finding. */
void world_end(void);
/* Set policy i of a list. */
void world_policy(unsigned i);
/* A client connects to a target: a name's address, or an address. Replaces the one that was there.
 */
void world_connect(unsigned client, const struct target *to);
void world_send(unsigned client, struct str data);
/* At most so many bytes. */
void world_client_read(unsigned client, size_t most);
void world_server_read(unsigned server, size_t most);
void world_server_send(unsigned server, struct str data);
/* 0: say that nothing more comes, 1: close, 2: reset. */
void world_shut(int *fd, unsigned how);
void world_dns_datagram(struct str msg);
/* One turn of the loop, and then everything must be consistent. */
void world_turn(void);
/* A connection to a new server of the world; the gateway's end of it. */
int world_serve(void);
/* Flows, deadlines, rules and meters agree; and each server finds its client. */
void world_check(void);
uint16_t world_port(int fd, bool peer);

/* flow_dialer.c: the dialer, played on the other end of the front's socket */
void world_dialer_begin(void);
/* Read all asks and answer those that are answered at once. True where some were. */
bool world_dialer_play(void);
/* Answer one of the asks that are held, with any detail. */
void world_reply(unsigned ask, enum world_reply how, uint8_t detail);
/* All asks get an answer. */
void world_dialer_finish(void);
/* It dies: nothing is answered any more. */
void world_dialer_die(void);
