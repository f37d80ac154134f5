/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a request's body: its framing, then gzip, then the bound on its size. */
#pragma once

#include "wire/gunzip.h"
#include "wire/http1.h"

struct http_body_in {
	struct http_body framing;
	bool gzip, raw_ended;
	struct gunzip gunzip;
	struct str raw; /* compressed bytes that are not decoded yet; a view of the input */
	uint64_t got, most;
	const char *why;
};

/* Prepare to read the framing; the content is not decoded until body_in_decode(). */
void body_in_init(struct http_body_in *b, const struct http_head *h);
void body_in_done(struct http_body_in *b);
/* The content is gzip. 0 or -ENOMEM. */
int body_in_decode(struct http_body_in *b);
/*
 * Like http_body_next(), with decoded content. While body_in_holds() the input must stay where it
 * is. Errors: -EBADMSG, -E2BIG above b->most, -ENOMEM.
 */
int body_in_next(struct http_body_in *b, struct str *in, struct str *ret);
bool body_in_holds(const struct http_body_in *b);
/* The framing is at its end: nothing more of this request can come. */
bool body_in_is_complete(const struct http_body_in *b);
