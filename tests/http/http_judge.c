/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What our HTTP parser makes of messages: for http_oracle.py. On stdin, for each: 'Q' for a
 * request or 'S' for a response to GET, its length (32 bits, little endian), its bytes. On
 * stdout a line for each:
 *	refuse WHY
 *	more
 *	take TARGET-OR-STATUS HEADERS BODY-IN-HEX BYTES-LEFT
 * A body that ends with the connection is taken as ended there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "wire/http1.h"

enum { MESSAGE_MAX = 1 << 20 };

static void print_hex(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		printf("%02x", (unsigned char)s.p[i]);
}

static void print_taken(bool request, const struct http_head *h, const struct buf *body,
			size_t left)
{
	if (request)
		printf("take %.*s ", STR_ARG(h->target));
	else
		printf("take %d ", h->status);
	printf("%zu ", h->n);
	if (body->len)
		print_hex(buf_str(body));
	else
		putchar('-');
	printf(" %zu\n", left);
}

static void judge(bool request, struct str in)
{
	auto_done(buf_done) struct buf body = BUF_INIT(MESSAGE_MAX);
	struct http_head h;
	struct http_body b;
	struct str data;
	int64_t n = request ? http_request_parse(in, &h) : http_response_parse(in, STR("GET"), &h);
	int r;

	if (n <= 0) {
		puts(n == 0 ? "more" : "refuse");
		return;
	}
	in.p += n;
	in.n -= (size_t)n;
	http_body_init(&b, &h);
	while ((r = http_body_next(&b, &in, &data)) == HTTP_DATA)
		if (buf_add_str(&body, data) < 0)
			abort();
	if (r < 0)
		puts("refuse");
	else if (r == HTTP_MORE && http_body_eof(&b) < 0)
		puts("more");
	else
		print_taken(request, &h, &body, in.n);
}

int main(void)
{
	static char message[MESSAGE_MAX];
	unsigned char head[5];

	while (fread(head, 1, sizeof head, stdin) == sizeof head) {
		size_t n = (size_t)head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16 |
			   (size_t)head[4] << 24;

		if (n > sizeof message || fread(message, 1, n, stdin) != n)
			return 1;
		judge(head[0] == 'Q', (struct str){ message, n });
	}
	return 0;
}
