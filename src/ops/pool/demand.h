/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools by demand: a server keeps ready what it was asked for in the last minutes.
 *
 *   server  holds a lock on warm/demand, which has the maximum number of sandboxes
 *   worker  had to make a sandbox itself: it writes what to build to ready/KEY/.record, and adds a
 *           byte to .misses (store/ready.h)
 *   keeper  counts claims and misses of each key, and keeps as many ready as were wanted within
 *           INTERVAL seconds, at most, in the last one or two windows
 *
 * Nothing of it is durable: if the server is gone, so is the lock, and the keeper removes the
 * sandboxes.
 */
#pragma once

#include "ops/cay.h"
#include "store/ready.h"

enum {
	DEMAND_AUTO = 64,	 /* maximum number of sandboxes, if the user gives none */
	DEMAND_READY_MIB = 4,	 /* estimate for one ready sandbox with its gateway */
	DEMAND_MEMORY_PART = 16, /* all of them take at most this part of the free memory */
	DEMAND_INTERVAL_S = 10,
	DEMAND_WINDOW_S = 300,
};

/* Ask the keeper to keep at most `most` sandboxes by demand, until demand_close(). */
int demand_open(struct cay *c, uint32_t most, int *ret_fd, struct err *e);
void demand_close(struct cay *c, int *fd);

/* n sandboxes of this key had to be made: template_ is for lists, top and recipe are what to build.
 */
void demand_miss(struct cay *c, const char *key, const char *template_, const char *top,
		 struct str recipe, size_t n);

/* What a worker has written. */
struct demand_record {
	char template_[256], top[ID_SIZE];
	struct buf recipe;
};

#define DEMAND_RECORD_INIT \
	{ \
		.recipe = BUF_INIT(LIMIT_FRAME_BODY) \
	}

/* 0 or -errno; -ENOENT: the key is not wanted by demand. */
int demand_read(const struct state *s, const char *key, struct demand_record *ret);
void demand_record_done(struct demand_record *r);
DEFINE_AUTO(struct demand_record, demand_record_done)

/* The keeper's view of one key. */
struct demand_kind {
	char key[READY_KEY];
	uint64_t used;			/* claims and misses so far */
	uint64_t base, interval_ns;	/* of the interval: use at its start, and when that was */
	uint64_t peak, last, window_ns; /* most use in an interval: of this window, of the last */
	uint32_t wanted, told;		/* told: as lists show it */
	bool seen;
};

struct demand {
	bool on;
	struct demand_kind *kinds;
	size_t n;
};

/* Look at all keys again. most: as the server wants it; free_mib: of the host's memory. */
void demand_count(struct demand *d, const struct state *s, char (*keys)[READY_KEY], size_t n,
		  uint64_t now_ns);
/* Decide how many of each key to keep, at most `most` in all. */
void demand_share(struct demand *d, uint64_t most);
/* Both, as the server wants it and the host's memory allows; nothing without a server. */
void demand_look(struct demand *d, const struct state *s, char (*keys)[READY_KEY], size_t n);
/* 0: none. */
uint32_t demand_wanted(const struct demand *d, const char *key);
void demand_done(struct demand *d);
