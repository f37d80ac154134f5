/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that reads what clients send. It has no files, no network of its own and no other
 * process: listeners, workers and links come as descriptors.
 *
 *   client ── HTTP ──> front ── job ──> worker ── operation      (control: src/api/e2b/sandboxes.c)
 *                        └───── link, opened by a worker ──> warden   (envd: process, files)
 */
#pragma once

#include "api/auth.h"
#include "api/control.h"
#include "api/metrics.h"
#include "api/names.h"
#include "api/route.h"
#include "http/listen.h"
#include "http/request.h"
#include "http/tls.h"
#include "loop/conn.h"
#include "ops/job/queue.h"

struct box;

enum { FRONT_ELDERS = 4 };

struct front {
	struct loop loop;
	struct conn control;
	struct job_queue queue;
	struct http_server http;
	struct http_listener listeners[CONTROL_LISTENERS];
	int waiting[CONTROL_LISTENERS]; /* listeners before front_accept() */
	int nlisteners;
	struct http_tls *tls; /* NULL: none */
	uint64_t tls_listeners;
	bool logs; /* each request is told to the supervisor */
	uint64_t log_dropped;
	uint32_t request_prefix, request_number; /* of request ids */
	uint8_t secret[SERVER_SECRET];
	struct auth auth;
	struct loop_timer expiry; /* of the next key */
	struct strangers strangers;
	struct known_names names;
	struct metrics metrics;
	bool asking_keys, keys_changed;
	struct loop_timer keys_retry;
	struct box *boxes; /* links to sandboxes (api/e2b/box.h) */
	uint64_t generation;
	struct conn heir; /* a newer front: connections go to it */
	struct elder {
		struct front *front;
		struct conn conn;
	} elders[FRONT_ELDERS]; /* older fronts: connections come from them */
	struct loop_timer retire;
	uint64_t retire_until_ns;
	int searches; /* for the sandboxes of signed URLs (api/e2b/sign_search.h) */
	struct loop_timer drain;
	uint64_t drain_until_ns;
	bool begun, accepts;
};

/* One request, from its head to its end. */
struct api_request {
	struct front *front;
	struct http_request *http;
	const struct route *route;
	struct principal who;
	char request[20];	  /* its id */
	char id[64];		  /* of the sandbox, or another {id} of the path */
	char sub[64];		  /* {sub} of the path */
	struct job *job;	  /* that answers it; NULL: none */
	void *user;		  /* of what handles it beside jobs */
	struct auth_key *counted; /* whose call this is (api/admit.h); NULL: nobody's */
	bool visits;		  /* as a visitor */
	bool port_host;		  /* Host names a port of a sandbox */
};

/* The whole process; returns when it was told to stop. */
int front_run(struct err *e);

/* front_control.c: the frames of the supervisor. */
int front_control_init(struct front *f, int fd);
struct job_host front_control_host(struct front *f);

/* Take no more requests, finish, exit. */
void front_drain(struct front *f);
/* front_retire.c: the other front's end of a socket; both own fd. */
void front_retire(struct front *f, int fd);
void front_inherit(struct front *f, int fd);
void front_retire_done(struct front *f);

/* front_jobs.c: have a worker answer it, with this body (JSON, or none). */
void api_ask_worker(struct api_request *q, struct str body);
/* Have a worker do this job for it; q->job is set until done. more: members of JSON, or none. */
void api_start_job(struct api_request *q, const char *kind, struct str more,
		   void (*done)(void *ctx, const struct job_answer *a, const struct err *why),
		   void *ctx);
/* Take clients from now on: as soon as it is known who may come in. */
void front_accept(struct front *f);
/* Read the keys again. */
void front_ask_keys(struct front *f);
