/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of operations: the state directory, the catalog, and how to wait. One per process,
 * opened after exec, never shared, and never used across fork(2).
 *
 * Operations are functions op_X(c, spec, ret, e) that return 0 or -1, and leave ret untouched on
 * failure. They print nothing, read no environment, and change no signal, directory or limit of the
 * process. A spec borrows its texts; a result owns its own. Paths of the host are absolute.
 * Messages name no command and no option: a code (base/err.h) lets the front say what to do.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "loop/wait.h"
#include "store/catalog.h"

/* Paths of our own programs; found when first needed. */
struct programs {
	char cay[LIMIT_PATH];
	char warden[LIMIT_PATH + 32];
};

/* How this host resolves names and dials, as its user says; each may be NULL. Borrowed. */
struct host_net {
	const char
		*nameservers; /* addresses, separated by commas or blanks; else /etc/resolv.conf */
	const char *proxy;    /* a URL, or "none" */
	const char *no_proxy;
};

struct cay_config {
	struct host_net net;
	/* Settings of the record; each may be NULL: as built in. */
	const char *keep_ended; /* how many ended sandboxes are remembered */
	const char *keep_days;	/* and for how many days */
	const char *trace_max;	/* size of a trace */
};

/* What operations want done in the background once the front has its answer. */
enum { AFTER_FLATTEN = 1, AFTER_POOL = 2 };

struct progress {
	const char *stage;    /* of an operation that takes long */
	uint64_t done, total; /* bytes; total 0: not known */
	uint64_t items;	      /* files that are done */
};

struct cay {
	struct state state;
	struct catalog *catalog; /* NULL until cay_catalog() */
	struct programs programs;
	struct cay_config config;
	struct loop loop;
	struct waiter wait; /* its deadline and cancel_fd are the front's, per operation */
	void (*progress)(void *ctx, const struct progress *p); /* or NULL */
	void *progress_ctx;
	unsigned after; /* AFTER_ */
	bool open;
};

/* Without the catalog, which takes most of the time. */
int cay_open(struct cay *c, const struct cay_config *config, struct err *e);
/* Open it where it is not open yet. */
int cay_catalog(struct cay *c, struct err *e);
/* 0, or FAILED where the warden is missing. */
int programs_find(struct programs *p, struct err *e);
/* Fill c->programs where that was not done yet. */
int cay_programs(struct cay *c, struct err *e);
/*
 * Run the loop until *done, as c->wait allows: TIMEOUT, or code "cancelled". what: for the message,
 * such as "the copy".
 */
int cay_wait(struct cay *c, const bool *done, const char *what, struct err *e);
/* Start what operations have asked for. Failing to start it is no error. */
void cay_after(struct cay *c);
/* Legal on one that is zero or was closed. */
void cay_close(struct cay *c);
DEFINE_AUTO(struct cay, cay_close)
DEFINE_AUTO(struct sandbox_row, sandbox_row_done)

/* What went differently than asked for, without being a failure. */
struct warnings {
	int n;
	struct {
		char code[32], text[200];
	} v[16];
};

void warnings_add(struct warnings *w, const char *code, struct str text);
