/* SPDX-License-Identifier: Apache-2.0 */
#include "api/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/v1/v1.h"
#include "base/clock.h"
#include "wire/json_write.h"

int api_error_put(struct buf *out, int status, const char *message, const char *code)
{
	struct json j;

	json_init(&j, out);
	json_obj(&j);
	json_put_i64(&j, "code", status);
	json_put_c(&j, "message", message);
	if (code && code[0])
		json_put_c(&j, "error_code", code);
	json_end(&j);
	return json_done(&j);
}

bool api_is_native(const struct http_request *r)
{
	return r && str_starts(r->path, STR("/v1/"));
}

enum { RETRY_S = 1, RETRY_QUOTA_S = 5, RETRY_MOST_S = 3600 };

static void refuse_with(struct http_request *r, int status, unsigned retry_s, const struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(8192);

	if (status == 429 || status == 503)
		http_answer_headerf(r, "Retry-After", "%u", retry_s);
	if ((api_is_native(r) ? v1_error_put(&b, status, e)
			      : api_error_put(&b, status, e->msg, e->code)) < 0)
		buf_clear(&b);
	http_answer(r, status, "application/json", buf_str(&b));
}

void api_refuse(struct http_request *r, int status, const char *fmt, ...)
{
	struct err e = { 0 };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e.msg, sizeof e.msg, fmt, ap);
	va_end(ap);
	refuse_with(r, status, RETRY_S, &e);
}

void api_refuse_until(struct http_request *r, uint64_t wait_ns, const char *code, const char *fmt,
		      ...)
{
	uint64_t s = wait_ns / NS_PER_S + (wait_ns % NS_PER_S != 0);
	struct err e = { .kind = ERR_LIMIT };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e.msg, sizeof e.msg, fmt, ap);
	va_end(ap);
	(void)err_code(&e, code, NULL);
	refuse_with(r, 429, s < RETRY_MOST_S ? (unsigned)s : RETRY_MOST_S, &e);
}

void api_refuse_err(struct http_request *r, const struct err *e)
{
	bool quota = strncmp(e->code, "quota.", 6) == 0;

	refuse_with(r, api_is_native(r) ? v1_error_status(e) : err_http(e->kind),
		    quota ? RETRY_QUOTA_S : RETRY_S, e);
}
