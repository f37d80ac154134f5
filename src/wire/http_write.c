/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http_write.h"

#include <errno.h>
#include <stdint.h>

#include "wire/http_lines.h"

const char *http_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} rows[] = {
		{ 100, "Continue" },
		{ 101, "Switching Protocols" },
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 206, "Partial Content" },
		{ 301, "Moved Permanently" },
		{ 302, "Found" },
		{ 304, "Not Modified" },
		{ 307, "Temporary Redirect" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 411, "Length Required" },
		{ 412, "Precondition Failed" },
		{ 413, "Content Too Large" },
		{ 415, "Unsupported Media Type" },
		{ 416, "Range Not Satisfiable" },
		{ 417, "Expectation Failed" },
		{ 421, "Misdirected Request" },
		{ 422, "Unprocessable Content" },
		{ 426, "Upgrade Required" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
		{ 507, "Insufficient Storage" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].status == status)
			return rows[i].reason;
	return "";
}

int http_put_status(struct buf *b, int status)
{
	return buf_printf(b, "HTTP/1.1 %03d %s\r\n", status, http_reason(status));
}

int http_put_request(struct buf *b, struct str method, struct str target)
{
	if (!http_is_token(method) || target.n == 0)
		return -EINVAL;
	for (size_t i = 0; i < target.n; i++)
		if (!http_is_target_byte((unsigned char)target.p[i]))
			return -EINVAL;
	return buf_printf(b, "%.*s %.*s HTTP/1.1\r\n", STR_ARG(method), STR_ARG(target));
}

int http_put_header(struct buf *b, const char *name, struct str value)
{
	if (!http_is_token(str_of(name)))
		return -EINVAL;
	for (size_t i = 0; i < value.n; i++)
		if (!http_is_value_byte((unsigned char)value.p[i]))
			return -EINVAL;
	return buf_printf(b, "%s: %.*s\r\n", name, STR_ARG(value));
}

int http_put_header_u64(struct buf *b, const char *name, uint64_t value)
{
	if (!http_is_token(str_of(name)))
		return -EINVAL;
	return buf_printf(b, "%s: %llu\r\n", name, (unsigned long long)value);
}

int http_put_end(struct buf *b)
{
	return buf_add_c(b, "\r\n");
}

int http_put_chunk(struct buf *b, struct str data)
{
	size_t before = b->len;
	int r;

	if (data.n == 0)
		return 0;
	r = buf_printf(b, "%zx\r\n", data.n);
	if (r == 0)
		r = buf_add_str(b, data);
	if (r == 0)
		r = buf_add_c(b, "\r\n");
	if (r < 0)
		buf_cut(b, before);
	return r;
}

int http_put_last_chunk(struct buf *b)
{
	return buf_add_c(b, "0\r\n\r\n");
}

int http_put_answer(struct buf *b, int status, const char *type, struct str body, bool close)
{
	size_t before = b->len;
	int r = http_put_status(b, status);

	if (r == 0 && type)
		r = http_put_header(b, "Content-Type", str_of(type));
	if (r == 0)
		r = http_put_header_u64(b, "Content-Length", body.n);
	if (r == 0 && close)
		r = http_put_header(b, "Connection", STR("close"));
	if (r == 0)
		r = http_put_end(b);
	if (r == 0)
		r = buf_add_str(b, body);
	if (r < 0)
		buf_cut(b, before);
	return r;
}
