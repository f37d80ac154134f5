/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "api/answer.h"
#include "base/io.h"

enum { INLINE_MOST = LIMIT_JOB_BODY - 4096 };

int v1_ask_read(struct job_run *r, struct v1_ask *ret, struct err *e)
{
	if (e2b_ask_read(r, &ret->in, e) < 0)
		return -1;
	ret->sub = v1_text(ret->in.all, "sub");
	ret->key = v1_text(ret->in.all, "key");
	ret->more = json_object_get(ret->in.all, "more");
	if (!ret->sub)
		ret->sub = "";
	return 0;
}

void v1_ask_done(struct v1_ask *a)
{
	e2b_ask_done(&a->in);
	sandbox_row_done(&a->row);
}

int v1_unknown(const char *what, const char *code, const char *ref, struct err *e)
{
	(void)err_set(e, ERR_NOT_FOUND, "%s '%.64s' not found", what, ref);
	return err_code(e, code, NULL);
}

int v1_find_sandbox(struct job_run *r, const struct v1_ask *a, const char *ref,
		    struct sandbox_row *ret, struct err *e)
{
	struct sandbox_row row = { 0 };
	struct err ignored = { 0 };

	if (cay_catalog(r->cay, e) < 0)
		return -1;
	if (catalog_find(r->cay->catalog, ref, &row, &ignored) < 0)
		return v1_unknown("sandbox", "sandbox.unknown", ref, e);
	/* Prefixes of ids are for people. */
	if ((strcmp(row.id, ref) != 0 && strcmp(row.name, ref) != 0) ||
	    (a->in.owner && strcmp(a->in.owner, row.owner) != 0)) {
		sandbox_row_done(&row);
		return v1_unknown("sandbox", "sandbox.unknown", ref, e);
	}
	*ret = row;
	return 0;
}

int v1_about(struct job_run *r, struct v1_ask *ret, struct err *e)
{
	return v1_ask_read(r, ret, e) < 0 ? -1 : v1_find_sandbox(r, ret, ret->in.id, &ret->row, e);
}

int v1_job_find(struct job_run *r, struct err *e)
{
	auto_done(v1_ask_done) struct v1_ask a = { 0 };
	struct api_answer answer = { .status = 200 };

	if (v1_about(r, &a, e) < 0)
		return -1;
	answer.body = str_of(a.row.id);
	return api_answer_put(r->out, &answer) < 0 ? err_sys(e, ENOMEM, "answer") : 0;
}

/* ---- fields ---- */

const char *v1_text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

uint64_t v1_number(const json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

bool v1_is(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

int v1_texts(const json_t *o, const char *key, const char ***ret, int *ret_n, struct err *e)
{
	const json_t *v = json_object_get(o, key);
	size_t n = json_array_size(v);
	const char **texts = calloc(n + 1, sizeof *texts);

	if (!texts)
		return err_sys(e, ENOMEM, "%s", key);
	for (size_t i = 0; i < n; i++)
		texts[i] = json_string_value(json_array_get(v, i));
	*ret = texts;
	*ret_n = (int)n;
	return 0;
}

/* ---- answers ---- */

/* On a disk where that is possible: a patch may be larger than the memory. */
int v1_tmp(struct job_run *r, int *ret_fd, struct err *e)
{
	int fd = openat(r->cay->state.fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = memfd_create("answer", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "write the answer");
	*ret_fd = fd;
	return 0;
}

int v1_reply_file(struct job_run *r, int status, const char *type, int *fd, struct err *e)
{
	const struct api_answer a = { .status = status, .type = str_of(type) };

	if (lseek(*fd, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "write the answer");
	if (api_answer_put(r->out, &a) < 0)
		return err_sys(e, ENOMEM, "answer");
	r->fds[r->nfds++] = TAKE_FD(*fd);
	return 0;
}

int v1_reply(struct job_run *r, int status, struct json *j, struct buf *b, struct err *e)
{
	auto_close int fd = FD_NONE;
	int k = json_done(j);

	if (k < 0)
		return err_set(e, ERR_LIMIT, "the answer is too long");
	if (b->len <= INLINE_MOST)
		return e2b_answer(r, status, b, e);
	if (v1_tmp(r, &fd, e) < 0)
		return -1;
	k = io_write_all(fd, b->data, b->len);
	if (k < 0)
		return err_sys(e, -k, "write the answer");
	return v1_reply_file(r, status, "application/json", &fd, e);
}

int v1_reply_empty(struct job_run *r, int status, struct err *e)
{
	return e2b_answer_empty(r, status, e);
}

void v1_list_begin(struct json *j, struct buf *b)
{
	json_init(j, b);
	json_obj(j);
	json_put_arr(j, "items");
}

int v1_list_end(struct job_run *r, struct json *j, struct buf *b, const char *next, struct err *e)
{
	json_end(j);
	json_put_c(j, "next", next);
	json_end(j);
	return v1_reply(r, 200, j, b, e);
}

int v1_hide_taken(const struct v1_ask *a, const char *name, struct err *e)
{
	if (a->in.owner && strcmp(e->code, "sandbox.name_taken") == 0) {
		(void)err_set(e, ERR_CONFLICT, "the name '%s' is taken", name);
		(void)err_code(e, "name.taken", NULL);
		(void)err_field(e, "name");
	}
	return -1;
}
