/* SPDX-License-Identifier: Apache-2.0 */
/* A directory that is watched: one call inside, whose output are events. */
#pragma once

#include "api/e2b/file.h"
#include "wire/json_write.h"
#include "wire/watch_event.h"

struct watch;

struct watch_ops {
	/* From now on changes are told. */
	void (*ready)(struct watch *w);
	/* 0, or 1: no more until watch_room(). */
	int (*event)(struct watch *w, const struct watch_event *e);
	/* It ended, or never began: code is one of the Connect protocol. The last callback. */
	void (*failed)(struct watch *w, const char *code, const char *text);
};

struct watch {
	struct box_call call;
	const struct watch_ops *ops;
	struct file_complaint complaint; /* what it says as it fails */
	char path[ENVD_PATH], user[ENVD_USER];
	struct buf in; /* of an event that has not come whole */
	size_t held;   /* taken from the call, and not reported to it */
	bool full;
};

/* The path and options of the body. 0, or -1 and the request is refused. */
int watch_start(struct watch *w, struct envd *v, struct box *b, const json_t *body,
		const struct watch_ops *ops);
void watch_room(struct watch *w);
/* Legal on one that is zero, and after its end. */
void watch_stop(struct watch *w);
/* {"name":…, "type":…, "entry":…}: the next value of j. */
void watch_put(struct json *j, const struct watch_event *e);
