/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parsers of requests, responses and bodies; internal to them. */
#pragma once

#include "wire/http1.h"

/* RFC 9110 5.6.2 */
bool http_is_tchar(unsigned char c);
bool http_is_token(struct str s);
/* Bytes of a field value: visible bytes, blanks, tabs, and obs-text. */
bool http_is_value_byte(unsigned char c);
bool http_name_is(struct str name, const char *lower);

/* A byte of a request target: visible ASCII. */
bool http_is_target_byte(unsigned char c);

/* Store the reason and return -EBADMSG. */
int http_bad(struct http_head *h, const char *why);
/* Size of the head with its empty line; 0 for more; -EBADMSG for bare CR or LF, -E2BIG. */
int64_t http_head_size(struct str in, struct http_head *h);
/* The next line of *head, without CRLF. */
struct str http_line(struct str *head);
/* Parse the rest of the head (header lines and the empty line) into h. */
int http_headers_parse(struct str head, struct http_head *h);
/*
 * Framing by Transfer-Encoding or Content-Length: at most one of them, once. *ret_found: there is
 * one.
 */
int http_framing_parse(struct http_head *h, bool *ret_found);
int http_connection_parse(struct http_head *h);
/* "HTTP/1.0" or "HTTP/1.1": 0 and h->minor, -EPROTO for another number, -EBADMSG. */
int http_version_parse(struct str text, struct http_head *h);
