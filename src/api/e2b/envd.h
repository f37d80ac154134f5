/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What E2B's clients expect inside a sandbox (envd, port 49983), answered by the front on a link to
 * the sandbox's warden.
 *
 *   envd_begin ── whose sandbox, token ── box_want: is it running? ── route->begin(q)
 *
 * RPCs are the Connect protocol with JSON: errors of streams travel in the last envelope, with HTTP
 * status 200.
 */
#pragma once

#include "api/e2b/box.h"
#include "wire/json_load.h"

enum { ENVD_PORT = 49983, ENVD_USER = 64, ENVD_PATH = 4096, ENVD_BODY = 4 << 20 };

/* One request to envd: `user` of its api_request. */
struct envd {
	struct api_request *q;
	const struct envd_route *route;
	struct box_want want;
	char user[ENVD_USER]; /* of the sandbox; empty: its default */
	void *own;	      /* of what handles it */
	void (*own_done)(struct envd *v);
};

struct envd_route {
	const char *method, *path;
	/* An RPC: its body is here as JSON. begin: a request that reads its own body. */
	void (*rpc)(struct envd *v, struct box *b, const json_t *body);
	void (*begin)(struct envd *v, struct box *b);
	bool stream; /* the body is an envelope, and so is the answer */
	bool open;   /* needs no token */
	bool file;   /* a signed URL opens it */
};

/* True if the request is for a sandbox: it is answered. */
bool envd_begin(struct api_request *q);

/* For handlers with their own struct http_handler: its `ended`. */
void envd_ended(struct http_request *r, enum http_end why);
static inline struct envd *envd_of(const struct http_request *r)
{
	return ((struct api_request *)r->user)->user;
}

/* Refuse an RPC: `code` of the Connect protocol, such as "not_found". Also ends a begun stream. */
void envd_fail(struct envd *v, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The answer {"key":…} of an RPC without a stream. */
void envd_answer(struct envd *v, const struct buf *json);
/* A path as the client gave it, absolute: relative ones are below the user's home. */
bool envd_path(const struct envd *v, const char *given, char out[ENVD_PATH]);
/* The sandbox does not run: 502, or 503 where it is our fault. */
void envd_gone(struct envd *v, const struct err *why);

/* e2b/process.c */
void process_start(struct envd *v, struct box *b, const json_t *body);
void process_connect(struct envd *v, struct box *b, const json_t *body);
void process_list(struct envd *v, struct box *b, const json_t *body);
void process_input(struct envd *v, struct box *b, const json_t *body);
void process_close_stdin(struct envd *v, struct box *b, const json_t *body);
void process_signal(struct envd *v, struct box *b, const json_t *body);
void process_update(struct envd *v, struct box *b, const json_t *body);
/* e2b/stream_input.c */
void process_stream_input(struct envd *v, struct box *b);
/* e2b/filesystem.c */
void filesystem_stat(struct envd *v, struct box *b, const json_t *body);
void filesystem_make_dir(struct envd *v, struct box *b, const json_t *body);
void filesystem_move(struct envd *v, struct box *b, const json_t *body);
void filesystem_list(struct envd *v, struct box *b, const json_t *body);
void filesystem_remove(struct envd *v, struct box *b, const json_t *body);
/* e2b/watch.c, e2b/watchers.c */
void filesystem_watch(struct envd *v, struct box *b, const json_t *body);
void filesystem_create_watcher(struct envd *v, struct box *b, const json_t *body);
void filesystem_watcher_events(struct envd *v, struct box *b, const json_t *body);
void filesystem_remove_watcher(struct envd *v, struct box *b, const json_t *body);
/* e2b/file_read.c, e2b/file_write.c */
void file_read(struct envd *v, struct box *b);
void file_write(struct envd *v, struct box *b);
