/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links of the front to sandboxes: one per sandbox, opened by a worker at its first use. All
 * requests to the sandbox share it.
 */
#pragma once

#include "api/front.h"
#include "link/call.h"

struct proc;
struct watcher;

/* What clients may leave here for the processes of one sandbox: it can have a thousand. */
enum { BOX_HELD_MOST = 16 << 20 };

struct box {
	struct front *front;
	struct box *next;
	char id[ID_SIZE];
	char owner[ID_SIZE]; /* id of the key that made the sandbox; empty: none */
	struct link *link;   /* NULL: a worker opens it */
	struct job *job;
	struct box_want *wants; /* that wait for the link */
	struct proc *procs;	/* api/e2b/proc.h */
	size_t held;		/* bytes of their arguments and input */
	struct link_ask restoring;
	struct box_call *calls;	  /* of single requests */
	struct box_port *ports;	  /* connections to its ports */
	struct watcher *watchers; /* api/e2b/watchers.c */
	bool token_for_ports;	  /* its ports are for clients with the traffic token */
	bool resumes;		  /* when it is used */
};

/* A call that one request makes: a file, or a command of ours. */
struct box_call {
	struct link_call call;
	struct box *box; /* NULL: it has ended */
	struct box_call *next;
	/* The link ends before the call does; `ended` does not come. */
	void (*gone)(struct box_call *c, const struct err *why);
};

/* The owner has set gone. 0 or -errno. */
int box_call(struct box *b, struct box_call *c, const struct call_spec *spec,
	     const struct link_call_ops *ops);
/* The same for a detached call that is there. */
int box_attach(struct box *b, struct box_call *c, const struct call_attach *how,
	       const struct link_call_ops *ops);
/* It has ended, or nobody wants it any more. Legal on one that is zero. */
void box_call_done(struct box_call *c);

/* A request to a port: it ends when the box does. */
struct box_port {
	struct box *box; /* NULL: not in its list */
	struct box_port *next;
	void (*gone)(struct box_port *p);
};

void box_port_add(struct box *b, struct box_port *p);
/* Legal on one that is in no list. */
void box_port_remove(struct box_port *p);

/* A request that waits until a sandbox is known to run. */
struct box_want {
	struct front *front;
	struct box_want *next;
	struct box *box; /* where it waits */
	struct link_ask ask;
	bool uses;   /* this is a use of it: a paused one that resumes by use is woken, once */
	bool proven; /* its client has shown a token of the sandbox */
	bool running, paused;
	struct job *waking;
	/* Once; also from within box_want(). NULL: not running, and why. */
	void (*done)(struct box_want *w, struct box *b, const struct err *why);
};

/* The owner has set done. */
void box_want(struct front *f, const char *id, struct box_want *w);
/* Nothing is told any more. Legal on one that was told, or is zero. */
void box_want_drop(struct box_want *w);
/* With an open link, or NULL. */
struct box *box_find(struct front *f, const char *id);
/* Close the boxes of keys that are gone. */
void boxes_check_keys(struct front *f);
void boxes_free(struct front *f);
