/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native API in the front. Most routes are jobs (api/front_jobs.c). The routes here talk to a
 * sandbox's warden on its link, or stream what a worker prepared.
 *
 *   route->handle ── v1_with_box ── (JSON body, checked) ── name -> id by a worker ── begin(v, b)
 */
#pragma once

#include "api/e2b/box.h"
#include "api/front.h"
#include "api/v1/doc.h"
#include "wire/json_write.h"

/* One request: `user` of its api_request. */
struct v1 {
	struct api_request *q;
	json_t *body; /* checked; owned; NULL: the route has no JSON body */
	struct box_want want;
	void (*begin)(struct v1 *v, struct box *b);
	void *own; /* of what handles it */
	void (*own_done)(struct v1 *v);
};

/* front.c: false and an answer if the request may not go on: its query, or who asks. */
bool v1_admit(struct api_request *q);
/* The query with the types of its table, as the value of the key "query". 0 or -errno. */
int v1_put_query(struct json *j, struct str query, const struct v1_field *fields);
/* The decoded value of a query's parameter, into out. False: not given. */
bool v1_param(const struct api_request *q, const char *name, char *out, size_t size);
/* As a number, or `otherwise`; as a truth value. */
uint64_t v1_param_number(const struct api_request *q, const char *name, uint64_t otherwise);
bool v1_param_is(const struct api_request *q, const char *name, bool otherwise);

/* Begin a request of its own; NULL: refused. */
struct v1 *v1_new(struct api_request *q);
/* Find the sandbox of the path and its link, then begin. */
void v1_with_box(struct api_request *q, void (*begin)(struct v1 *v, struct box *b));
/* `ended` of a handler of its own. */
void v1_ended(struct http_request *r, enum http_end why);
static inline struct v1 *v1_of(const struct http_request *r)
{
	return ((struct api_request *)r->user)->user;
}
/* Answer 200 or another status with JSON that j wrote into b. */
void v1_answer(struct v1 *v, int status, struct json *j, struct buf *b);
/* True if the client asks for a WebSocket; else it is refused. */
bool v1_is_websocket(struct v1 *v);
/* The link ended, or the sandbox does not run. */
void v1_gone(struct v1 *v, const struct err *why);

/* error.c: {"error":{…}} and its status. */
int v1_error_put(struct buf *out, int status, const struct err *e);
int v1_error_status(const struct err *e);

/* send.c: a file from a worker as the answer. Takes fd. */
void v1_send_file(struct api_request *q, int status, struct str type, int fd);
/*
 * The same into an answer that is begun: v1_sender_room() from `room`. done runs once, also from
 * within v1_sender_start(), unless the sender is dropped.
 */
struct v1_sender {
	struct http_request *http;
	int fd;
	void (*done)(struct v1_sender *s, int err);
};
void v1_sender_start(struct v1_sender *s);
void v1_sender_room(struct v1_sender *s);
/* Legal on one that is done. */
void v1_sender_drop(struct v1_sender *s);

/* Handlers of routes. */
void v1_openapi(struct api_request *q);
void v1_call_start(struct api_request *q);
void v1_call_output(struct api_request *q);
void v1_call_wait(struct api_request *q);
void v1_call_attach(struct api_request *q);
void v1_call_stdin(struct api_request *q);
void v1_call_signal(struct api_request *q);
void v1_call_resize(struct api_request *q);
void v1_file_get(struct api_request *q);
void v1_file_put(struct api_request *q);
void v1_file_delete(struct api_request *q);
void v1_file_stat(struct api_request *q);
void v1_file_list(struct api_request *q);
void v1_file_mkdir(struct api_request *q);
void v1_file_move(struct api_request *q);
void v1_tree_get(struct api_request *q);
void v1_tree_put(struct api_request *q);
void v1_port_connect(struct api_request *q);
void v1_trace(struct api_request *q);
