/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/refusal.h"

#include "wire/http_write.h"
#include "wire/json_write.h"

int refusal_answer(const struct refusal *r, int status, struct buf *b)
{
	auto_done(buf_done) struct buf body = BUF_INIT(4096);
	struct json j;

	json_init(&j, &body);
	json_obj(&j);
	json_put_c(&j, "error",
		   status == 403 || status == 429 ? "denied_by_policy"
		   : status == 502		  ? "unreachable"
						  : "invalid");
	json_put_c(&j, "target", r->target);
	json_put_str(&j, "rule", r->rule);
	json_put_c(&j, "reason", r->reason);
	json_put_c(&j, "message", r->why);
	json_put_c(&j, "allow", r->fix[0] ? r->fix : NULL);
	json_end(&j);
	if (json_done(&j) < 0 || buf_add(&body, "\n", 1) < 0)
		return -1;
	return http_put_answer(b, status, "application/json", buf_str(&body), true);
}
