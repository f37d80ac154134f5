/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

/* Codes with a status of their own; all others have that of their kind (base/err.h). */
static const struct {
	const char *code;
	int status;
} statuses[] = {
	{ "idempotency.mismatch", 422 },
	{ "disk.full", 507 },
	{ "range.invalid", 416 },
};

int v1_error_status(const struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (strcmp(statuses[i].code, e->code) == 0)
			return statuses[i].status;
	return e->sys == ENOSPC || e->sys == EDQUOT ? 507 : err_http(e->kind);
}

/* Names of statuses that the server itself refuses with. */
static const char *status_name(int status)
{
	static const struct {
		int status;
		const char *name;
	} rows[] = { { 400, "request.invalid" },
		     { 401, "key.unknown" },
		     { 403, "not_allowed" },
		     { 404, "not_found" },
		     { 405, "method.not_allowed" },
		     { 409, "conflict" },
		     { 411, "length.required" },
		     { 413, "body.too_large" },
		     { 415, "encoding.unsupported" },
		     { 417, "expectation.failed" },
		     { 426, "upgrade.required" },
		     { 429, "limit" },
		     { 431, "head.too_large" },
		     { 503, "unavailable" },
		     { 504, "timeout" },
		     { 507, "disk.full" } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].status == status)
			return rows[i].name;
	return status < 500 ? "request.invalid" : "failed";
}

int v1_error_put(struct buf *out, int status, const struct err *e)
{
	struct json j;

	json_init(&j, out);
	json_obj(&j);
	json_put_obj(&j, "error");
	json_put_c(&j, "code",
		   e->code[0] ? e->code
		   : e->kind  ? err_name(e->kind)
			      : status_name(status));
	json_put_str(&j, "message", str_of(e->msg));
	if (e->field[0])
		json_put_str(&j, "field", str_of(e->field));
	if (e->hint[0])
		json_put_str(&j, "hint", str_of(e->hint));
	json_end(&j);
	json_end(&j);
	return json_done(&j);
}
