/* SPDX-License-Identifier: Apache-2.0 */
#include "init/request.h"

#include <errno.h>
#include <string.h>

#include "base/limits.h"

static int copy_text(char **to, struct str value)
{
	char *copy;

	if (*to || !str_is_text(value))
		return -EBADMSG;
	copy = strndup(value.n ? value.p : "", value.n);
	if (!copy)
		return -ENOMEM;
	*to = copy;
	return 0;
}

static int add_text(char ***list, int *n, int most, struct str value)
{
	char **grown;
	int r;

	if (*n >= most)
		return -E2BIG;
	grown = realloc(*list, sizeof(char *) * (size_t)(*n + 2));
	if (!grown)
		return -ENOMEM;
	*list = grown;
	grown[*n] = NULL;
	r = copy_text(&grown[*n], value);
	if (r < 0)
		return r;
	grown[++*n] = NULL;
	return 0;
}

static int take_number(struct request *r, struct field f, int *fds, int nfds)
{
	uint64_t v;

	if (field_u64(f, &v) < 0)
		return -EBADMSG;
	if (f.tag == TAG_OP)
		r->op = (enum call_op)v;
	else if (f.tag == TAG_TTY)
		r->tty = v != 0;
	else if (f.tag == TAG_PROFILE)
		r->profile = v == PROFILE_DEV ? PROFILE_DEV : PROFILE_LOCKED;
	else if (f.tag == TAG_MODE)
		r->mode = (mode_t)(v & 0777);
	else if (f.tag == TAG_OFFSET)
		r->offset = v;
	else if (f.tag == TAG_LENGTH)
		r->length = v;
	else if (f.tag == TAG_TRACE)
		r->trace = v == TRACE_FULL ? TRACE_FULL : TRACE_CALLS;
	else if (f.tag == TAG_FILES)
		r->files = v;
	else if (f.tag == TAG_DISK)
		r->disk = v;
	else if (f.tag == TAG_MEMORY)
		r->memory = v;
	else if (f.tag == TAG_PIDS)
		r->pids = v;
	else if (f.tag == TAG_FDS)
		for (int role = 0, at = 0; role < FD_ROLES; role++)
			if (v & 1u << role && at < nfds && r->fds[role] < 0) {
				r->fds[role] = fds[at];
				fds[at++] = FD_NONE;
			}
	return 0;
}

static int take_field(struct request *r, struct field f, int *fds, int nfds)
{
	switch (f.tag) {
	case TAG_ARG:
		return add_text(&r->argv, &r->argc, LIMIT_ARGS, f.value);
	case TAG_ENV:
		return add_text(&r->envp, &r->envc, LIMIT_ENV, f.value);
	case TAG_CWD:
		return copy_text(&r->cwd, f.value);
	case TAG_USER:
		return copy_text(&r->user, f.value);
	case TAG_PATH:
		return copy_text(&r->path, f.value);
	case TAG_OP:
	case TAG_TTY:
	case TAG_MODE:
	case TAG_OFFSET:
	case TAG_LENGTH:
	case TAG_PROFILE:
	case TAG_FDS:
	case TAG_FILES:
	case TAG_DISK:
	case TAG_MEMORY:
	case TAG_PIDS:
	case TAG_TRACE:
		return take_number(r, f, fds, nfds);
	default:
		return 0;
	}
}

int request_parse(struct request *r, const struct frame *f, int *fds, bool stream)
{
	struct str body = f->body;
	struct field field;
	int more;

	*r = (struct request){ .mode = 0644, .length = UINT64_MAX };
	for (int i = 0; i < FD_ROLES; i++)
		r->fds[i] = FD_NONE;
	while ((more = field_next(&body, &field)) > 0) {
		more = take_field(r, field, fds, f->nfds);
		if (more < 0)
			break;
	}
	for (int i = 0; i < f->nfds; i++)
		fd_close(&fds[i]);
	if (more == 0 && r->fds[FD_STDIN] < 0 && !stream)
		more = -EBADMSG;
	if (more == 0 && r->op != CALL_EXEC && !r->path)
		more = -EBADMSG;
	return more;
}

static void free_list(char **list)
{
	for (char **at = list; at && *at; at++)
		free(*at);
	free(list);
}

void request_done(struct request *r)
{
	free_list(r->argv);
	free_list(r->envp);
	free(r->cwd);
	free(r->user);
	free(r->path);
	for (int i = 0; i < FD_ROLES; i++)
		fd_close(&r->fds[i]);
	*r = (struct request){ 0 };
}
