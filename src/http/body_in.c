/* SPDX-License-Identifier: Apache-2.0 */
#include "http/body_in.h"

#include <errno.h>

void body_in_init(struct http_body_in *b, const struct http_head *h)
{
	*b = (struct http_body_in){ .most = UINT64_MAX };
	http_body_init(&b->framing, h);
}

void body_in_done(struct http_body_in *b)
{
	gunzip_done(&b->gunzip);
}

int body_in_decode(struct http_body_in *b)
{
	int r = gunzip_init(&b->gunzip, 0);

	b->gzip = r == 0;
	return r;
}

bool body_in_holds(const struct http_body_in *b)
{
	return b->raw.n > 0;
}

bool body_in_is_complete(const struct http_body_in *b)
{
	return b->framing.state == HTTP_S_DONE && b->raw.n == 0;
}

static int decoded_next(struct http_body_in *b, struct str *in, struct str *ret)
{
	for (;;) {
		int r = gunzip_next(&b->gunzip, &b->raw, ret);

		if (r < 0) {
			b->why = b->gunzip.why;
			return r;
		}
		if (r == GUNZIP_DATA)
			return HTTP_DATA;
		if (b->raw.n)
			continue;
		r = http_body_next(&b->framing, in, &b->raw);
		if (r == HTTP_DATA)
			continue;
		if (r < 0)
			b->why = b->framing.why;
		if (r == HTTP_END && !b->gunzip.ended) {
			b->why = "the compressed body is incomplete";
			return -EBADMSG;
		}
		return r;
	}
}

int body_in_next(struct http_body_in *b, struct str *in, struct str *ret)
{
	int r;

	if (b->gzip) {
		r = decoded_next(b, in, ret);
	} else {
		r = http_body_next(&b->framing, in, ret);
		if (r < 0)
			b->why = b->framing.why;
	}
	if (r != HTTP_DATA)
		return r;
	b->got += ret->n;
	if (b->got > b->most) {
		b->why = "the body is too large";
		return -E2BIG;
	}
	return HTTP_DATA;
}
