/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks. The front has a copy of all keys, as hashes. */
#pragma once

#include "api/control.h"
#include "http/request.h"
#include "store/keys.h"

struct auth_key {
	char id[ID_SIZE];
	uint8_t digest[SHA256_SIZE];
};

struct auth {
	struct auth_key *keys;
	size_t n;
	bool known; /* the keys were read at least once */
};

struct principal {
	bool admin;	     /* sees everything: the host's user, by the unix socket */
	char owner[ID_SIZE]; /* id of the key */
};

/* 0, or the status to refuse with: 401, or 503 while the keys are not known. network: a key is
 * needed. */
int auth_check(const struct auth *a, struct http_request *r, bool network, struct principal *ret);
/* Whether a key with this id still exists. */
bool auth_has(const struct auth *a, const char *id);
/* The keys as a worker sends them: id and digest, one after the other. -EBADMSG. */
int auth_replace(struct auth *a, struct str bytes);
int auth_put_key(struct buf *b, const struct key_row *row);
void auth_done(struct auth *a);
