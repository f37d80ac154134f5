/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Talking to a warden: one connection per question. Every function connects to the sandbox's
 * socket, says hello, asks, and waits for the answer. UNAVAILABLE where no warden answers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/snapshots.h"
#include "wire/frame.h"
#include "wire/proto.h"

struct client_process {
	int pid, ppid;
	uint32_t call; /* 0: none, or not known */
	char state;    /* as in ps(1) */
	uint64_t cpu_us, rss_kb;
	const char *user; /* uid inside */
	const char *args; /* separated by blanks; hostile text */
};

struct client_state {
	char state[16];
	int init_pid;
	uint32_t calls_running;
	uint64_t calls_total;
	uint64_t rss_kb;		    /* of all processes inside */
	uint64_t ttl_left_ms, idle_left_ms; /* UINT64_MAX: no limit */
	bool switching;			    /* a snapshot or rollback is under way */
	char top[24];			    /* its topmost layer, empty: none */
};

/* To the next generation of files: MSG_C_SWITCH. */
struct client_switch {
	const char *seal; /* id of the layer that the changes become; NULL: they are dropped */
	char (*layers)[ID_SIZE]; /* below, topmost first */
	size_t nlayers;
	bool force;		      /* end running calls first */
	bool alone;		      /* refused while calls run */
	const char *snapshot, *name;  /* for the trace; may be NULL */
	void (*meanwhile)(void *ctx); /* what can be done before the answer comes */
	void *ctx;
};

struct client_switched {
	enum op_result result;
	uint64_t duration_us, freeze_us;
};

int client_ps(const struct state *s, const char *id,
	      int (*fn)(void *ctx, const struct client_process *p), void *ctx, struct err *e);
int client_info(const struct state *s, const char *id, struct client_state *ret, struct err *e);
int client_switch(const struct state *s, const char *id, const struct client_switch *ask,
		  struct client_switched *ret, struct err *e);
/* For those who have a connection: the fields of the request, what its answer says, and the word
 * that it will be asked for soon. */
int client_put_switch(struct buf *b, const struct client_switch *ask);
void client_take_switched(const struct frame *f, struct client_switched *ret);
enum { CLIENT_SOON_CHAN = 3 }; /* nobody waits for what is said there */
void client_say_soon(int fd);
enum client_order { CLIENT_PAUSE, CLIENT_RESUME, CLIENT_EXTEND };
/* ttl_ms: of EXTEND, 0: no end. *ret is the state that it led to. */
int client_order(const struct state *s, const char *id, enum client_order order, uint64_t ttl_ms,
		 struct client_state *ret, struct err *e);
/* Ends the sandbox and waits until its warden is gone. */
int client_destroy(const struct state *s, const char *id, const char *reason, struct err *e);
/* The same for one that has no owner (store/warm.h). CONFLICT where it has got one. */
int client_discard(const struct state *s, const char *id, struct err *e);
/* Waits until every event up to now is in the trace; its head. */
int client_settle(const struct state *s, const char *id, uint64_t *ret_seq, char ret_hash[65],
		  struct err *e);

struct client_io {
	int in_fd;  /* the call's stdin, until its end; FD_NONE: empty */
	int out_fd; /* the call's stdout; FD_NONE: dropped */
};

/* One file operation inside, to its end. */
int client_file_op(const struct state *s, const char *id, enum call_op op, const char *path,
		   uint64_t mode, const char *user, struct client_io io, struct buf *ret_stderr,
		   int *ret_exit, struct err *e);

/* A connected socket. The caller owns it. */
int client_dial(const struct state *s, const char *id, int *ret_fd, struct err *e);
/* One that has said hello. */
int client_connect(const struct state *s, const char *id, int *ret_fd, struct err *e);
/* Fill e from MSG_C_ERROR. Returns -1. */
int client_take_error(const struct frame *f, struct err *e);
/* The number of a field, or `otherwise`. */
uint64_t client_number(const struct frame *f, uint16_t tag, uint64_t otherwise);
/* What MSG_C_READY or MSG_C_STARTED warns of, on stderr. */
void client_print_warnings(const struct frame *f);
