/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks. The front has a copy of all keys, as hashes, and counts what each key does just now. */
#pragma once

#include "api/control.h"
#include "api/rate.h"
#include "http/request.h"
#include "store/keys.h"

/* A key as a worker tells it. */
struct auth_said {
	char id[ID_SIZE], owner[ID_SIZE];
	uint8_t digest[SHA256_SIZE];
	uint64_t expires_ns;  /* 0: never */
	uint64_t rate, calls; /* limits, all sources merged */
	uint32_t scope;
};

struct auth_key {
	struct auth_said said;
	struct pace creations;
	unsigned calls, visits; /* now */
	struct http_owner http;
	bool revoked;
	struct auth_key *next; /* of those that were revoked while somebody used them */
};

struct auth {
	struct auth_key **keys;
	size_t n;
	struct auth_key *revoked;
	bool known; /* the keys were read at least once */
};

struct principal {
	bool admin;	      /* sees everything: the host's user, by the unix socket */
	char owner[ID_SIZE];  /* of the sandboxes that it sees */
	struct auth_key *key; /* NULL: none */
};

/* 0, or the status to refuse with: 401, or 503 while the keys are not known. network: a key is
 * needed. */
int auth_check(const struct auth *a, struct http_request *r, bool network, struct principal *ret);
/* The key with this id; NULL if it does not exist or has expired. */
struct auth_key *auth_find(const struct auth *a, const char *id);
/* When the next key expires, as clock_real_ns(); 0: none will. */
uint64_t auth_next_expiry(const struct auth *a, uint64_t now_ns);
/* The keys as a worker sends them, one after the other. -EBADMSG. */
int auth_replace(struct auth *a, struct str bytes);
/* limits: all sources merged. */
int auth_put_key(struct buf *b, const struct key_row *row, const struct key_limits *limits);
void auth_done(struct auth *a);
