/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker answers a request with, as the bytes of its job's answer. */
#pragma once

#include "base/buf.h"

struct api_answer {
	int status;
	struct str next; /* token of the next page; empty: none. Borrowed, as body */
	struct str body; /* JSON; empty: none */
	struct str type; /* of a file that comes with the answer, instead of body */
	bool replayed;	 /* an earlier request with the same key was answered so */
};

/* 0 or -errno. */
int api_answer_put(struct buf *b, const struct api_answer *a);
/* -EBADMSG */
int api_answer_read(struct str bytes, struct api_answer *ret);
