/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of operations: the state directory, the catalog, and how to wait. One per process,
 * opened after exec, never shared, and never used across fork(2).
 *
 * Operations are functions op_X(c, spec, ret, e) that return 0 or -1, and leave ret untouched on
 * failure. They print nothing, read no environment, and change no signal, directory or limit of the
 * process. A spec borrows its texts; a result owns its texts. Host paths are absolute. Messages
 * name no command and no option: the front end maps the code (base/err.h) to advice.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/wait.h"
#include "store/catalog.h"

/* Paths of our own programs; filled on first use. */
struct programs {
	char cay[LIMIT_PATH];
	char warden[LIMIT_PATH + 32];
};

/* The user's settings for name resolution and dialing on this host. Each may be NULL. Borrowed. */
struct host_net {
	const char
		*nameservers; /* addresses, separated by commas or blanks; NULL: /etc/resolv.conf */
	const char *proxy;    /* a URL, or "none" */
	const char *no_proxy;
};

struct cay_config {
	struct host_net net;
	/* Settings of the record; NULL: the built-in default. */
	const char *keep_ended; /* how many ended sandboxes to remember */
	const char *keep_days;	/* for how many days to remember them */
	const char *trace_max;	/* maximum size of a trace */
	bool notes_demand;	/* sandboxes that were not ready are wanted (ops/pool/demand.h) */
};

/* Background work that operations request, to start after the front end has its result. */
enum { AFTER_FLATTEN = 1, AFTER_POOL = 2 };

struct progress {
	const char *stage;    /* of a long operation */
	uint64_t done, total; /* bytes; total 0: unknown */
	uint64_t items;	      /* files done */
};

/* Deviations from the request that are not failures. */
struct warnings {
	int n;
	struct {
		char code[32], text[200];
	} v[16];
};

struct cay {
	struct state state;
	struct catalog *catalog; /* NULL until cay_catalog() */
	struct programs programs;
	struct cay_config config;
	struct loop loop;
	struct waiter wait; /* the front end sets its deadline and cancel_fd per operation */
	void (*progress)(void *ctx, const struct progress *p); /* or NULL */
	void *progress_ctx;
	unsigned after;		  /* AFTER_ bits */
	struct warnings warnings; /* from operations whose result has no warnings field */
	bool open;
};

/* Does not open the catalog, which takes most of the time. */
int cay_open(struct cay *c, const struct cay_config *config, struct err *e);
/* Open the catalog if it is not open yet. */
int cay_catalog(struct cay *c, struct err *e);
/* Returns 0, or FAILED if the warden program is missing. */
int programs_find(struct programs *p, struct err *e);
/* Fill c->programs if it is still empty. */
int cay_programs(struct cay *c, struct err *e);
/*
 * Run the loop until *done, as c->wait allows: TIMEOUT, or code "cancelled". what: names the
 * awaited thing in the message, such as "the copy".
 */
int cay_wait(struct cay *c, const bool *done, const char *what, struct err *e);
/* Start the background work that operations requested. Ignores a failure to start. */
void cay_after(struct cay *c);
/* Legal on a zeroed or closed context. */
void cay_close(struct cay *c);
DEFINE_AUTO(struct cay, cay_close)
DEFINE_AUTO(struct sandbox_row, sandbox_row_done)

void warnings_add(struct warnings *w, const char *code, struct str text);
