/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as E2B's clients read them: {"code":404,"message":"…"} with the same HTTP status. Those of
 * the native API have their own shape (api/v1/error.c).
 */
#pragma once

#include "http/request.h"

void api_refuse(struct http_request *r, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void api_refuse_err(struct http_request *r, const struct err *e);
/* Whether a request is for the native API. */
bool api_is_native(const struct http_request *r);
/* 429: try again after this time. code: such as "quota.rate". */
void api_refuse_until(struct http_request *r, uint64_t wait_ns, const char *code, const char *fmt,
		      ...) __attribute__((format(printf, 4, 5)));
/* The body alone, for E2B. */
int api_error_put(struct buf *out, int status, const char *message, const char *code);
