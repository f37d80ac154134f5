/* SPDX-License-Identifier: Apache-2.0 */
#include "api/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/v1/v1.h"
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

static void refuse_with(struct http_request *r, int status, const struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(8192);

	if (status == 429 || status == 503)
		http_answer_header(r, "Retry-After", STR("1"));
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
	refuse_with(r, status, &e);
}

void api_refuse_err(struct http_request *r, const struct err *e)
{
	refuse_with(r, api_is_native(r) ? v1_error_status(e) : err_http(e->kind), e);
}
