/* SPDX-License-Identifier: Apache-2.0 */
#include "api/answer.h"

#include <errno.h>

#include "wire/frame.h"

enum { ANSWER_STATUS = 1, ANSWER_NEXT, ANSWER_BODY, ANSWER_TYPE, ANSWER_REPLAYED };

int api_answer_put(struct buf *b, const struct api_answer *a)
{
	int r = field_put_u64(b, ANSWER_STATUS, (uint64_t)a->status);

	if (r == 0 && a->next.n)
		r = field_put(b, ANSWER_NEXT, a->next);
	if (r == 0 && a->type.n)
		r = field_put(b, ANSWER_TYPE, a->type);
	if (r == 0 && a->replayed)
		r = field_put_u64(b, ANSWER_REPLAYED, 1);
	return r < 0 ? r : field_put(b, ANSWER_BODY, a->body);
}

int api_answer_read(struct str bytes, struct api_answer *ret)
{
	struct api_answer a = { 0 };
	uint64_t status = 0;
	struct field f;
	int r;

	while ((r = field_next(&bytes, &f)) == 1) {
		if (f.tag == ANSWER_STATUS && field_u64(f, &status) < 0)
			return -EBADMSG;
		if (f.tag == ANSWER_NEXT)
			a.next = f.value;
		if (f.tag == ANSWER_BODY)
			a.body = f.value;
		if (f.tag == ANSWER_TYPE)
			a.type = f.value;
		if (f.tag == ANSWER_REPLAYED)
			a.replayed = true;
	}
	if (r < 0 || status < 200 || status > 599)
		return -EBADMSG;
	a.status = (int)status;
	*ret = a;
	return 0;
}
