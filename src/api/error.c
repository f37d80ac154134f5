/* SPDX-License-Identifier: Apache-2.0 */
#include "api/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

enum { RETRY_S = 1, RETRY_QUOTA_S = 5, RETRY_MOST_S = 3600 };

static void refuse_with(struct http_request *r, int status, unsigned retry_s, const char *message,
			const char *code)
{
	auto_done(buf_done) struct buf b = BUF_INIT(8192);

	if (status == 429 || status == 503)
		http_answer_headerf(r, "Retry-After", "%u", retry_s);
	if (api_error_put(&b, status, message, code) < 0)
		buf_clear(&b);
	http_answer(r, status, "application/json", buf_str(&b));
}

void api_refuse(struct http_request *r, int status, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	refuse_with(r, status, RETRY_S, text, NULL);
}

void api_refuse_until(struct http_request *r, uint64_t wait_ns, const char *code, const char *fmt,
		      ...)
{
	uint64_t s = wait_ns / NS_PER_S + (wait_ns % NS_PER_S != 0);
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	refuse_with(r, 429, s < RETRY_MOST_S ? (unsigned)s : RETRY_MOST_S, text, code);
}

void api_refuse_err(struct http_request *r, const struct err *e)
{
	bool quota = strncmp(e->code, "quota.", 6) == 0;

	refuse_with(r, err_http(e->kind), quota ? RETRY_QUOTA_S : RETRY_S, e->msg, e->code);
}
