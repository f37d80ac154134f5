/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is checked before a request costs anything: where its browser page comes from, the scope of
 * its key, and how much the key or the address has asked for. Each function returns true if the
 * request may go on; else it has answered.
 */
#pragma once

#include "api/front.h"
#include "wire/json_load.h"

enum { KEY_CONNS_MOST = 4096 };

/* 421 unless the request came by a name of ours. For requests without a key or token. */
bool admit_host(struct api_request *q);
/* 403 for a change that a foreign web page asks for. */
bool admit_origin(struct api_request *q);
/* 403 if the key may not do this; counts its calls and connections, 429 above its limits. */
bool admit_key(struct api_request *q);
/* 429 if the key makes sandboxes too fast. */
bool admit_creations(struct api_request *q, const json_t *body);
/*
 * Count a call of the key with this id, if there is one. proven: the client has a token, and is not
 * just a visitor of a public port. 429 above the key's limits.
 */
bool admit_call(struct api_request *q, const char *owner, bool proven);
/* 429 if this address has failed too often, and so is not worth a job. */
bool admit_stranger(struct api_request *q);
/* Answer 401, or 429 if the address fails too often; the connection ends then. */
void admit_refuse(struct api_request *q, const char *why);
/* The address asked for something that does not exist. */
void admit_note_failure(struct api_request *q);
/* What admit_key() and admit_call() counted. */
void admit_done(struct api_request *q);
