/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "trace/read.h"

enum { DEFAULT_USER = 1000 };

void layers_done(struct layers *l)
{
	for (int i = 0; i < l->n; i++) {
		free(l->mounts[i].dest);
		free(l->mounts[i].host);
		stack_done(&l->mounts[i].base);
		stack_done(&l->mounts[i].now);
	}
	free(l->mounts);
	free(l->first_dir);
	*l = (struct layers){ 0 };
}

/* Text of the spec, also where it is not UTF-8. Allocated; NULL. */
static char *text_of(const json_t *value)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_PATH);

	if (!value || trace_value_text(value, &b) < 0 || buf_add_c(&b, "") < 0)
		return NULL;
	return str_is_text(buf_str(&b)) ? buf_take(&b, NULL) : NULL;
}

static int add_dir(struct stack *s, int dirfd, const char *path, struct stack_layer like,
		   struct err *e)
{
	int r;

	like.fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (like.fd < 0)
		return err_sys(e, errno, "open the layer '%s'", path);
	r = stack_add(s, like);
	return r < 0 ? err_sys(e, -r, "open the layer '%s'", path) : 0;
}

static int open_lowers(struct layers_mount *m, const json_t *spec, bool rootful, struct err *e)
{
	const json_t *list = json_object_get(spec, "lower"),
		     *owner = json_object_get(spec, "owner");
	struct stack_layer like = { .fd = FD_NONE };

	if (owner && rootful) {
		like.owner = (uint32_t)json_integer_value(owner);
		like.user = DEFAULT_USER;
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		auto_free char *path = text_of(json_array_get(list, i));

		if (!path)
			return err_set(e, ERR_FAILED, "the catalog names no layer for '%s'",
				       m->dest);
		if (add_dir(&m->base, AT_FDCWD, path, like, e) < 0 ||
		    add_dir(&m->now, AT_FDCWD, path, like, e) < 0)
			return -1;
		if (owner && !m->host)
			m->host = TAKE_PTR(path);
	}
	return m->base.n ? 0 : err_set(e, ERR_FAILED, "'%s' has no layers", m->dest);
}

static int open_mount(struct layers_mount *m, const struct sandbox_row *row, int dirfd,
		      const json_t *spec, struct err *e)
{
	struct stack_layer upper = { .fd = FD_NONE };
	char name[24];

	m->dest = text_of(json_object_get(spec, "dest"));
	if (!m->dest)
		return err_set(e, ERR_FAILED, "the catalog holds a mount without a place");
	m->base.userxattr = m->now.userxattr = row->uid_slot < 0;
	if (row->uid_slot >= 0)
		upper.id_base = UID_SLOT_BASE + (uint32_t)row->uid_slot * UID_SLOT_SIZE;
	(void)snprintf(name, sizeof name, "upper/%d", m->index);
	if (add_dir(&m->now, dirfd, name, upper, e) < 0)
		return -1;
	return open_lowers(m, spec, row->uid_slot >= 0, e);
}

static int open_all(struct layers *l, const struct sandbox_row *row, int dirfd, const json_t *list,
		    struct err *e)
{
	l->mounts = calloc(json_array_size(list) + 1, sizeof *l->mounts);
	if (!l->mounts)
		return err_sys(e, ENOMEM, "open the layers");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *spec = json_array_get(list, i);
		struct layers_mount *m = &l->mounts[l->n];

		if (json_is_true(json_object_get(spec, "ro")))
			continue;
		l->n++;
		m->index = (int)i;
		if (open_mount(m, row, dirfd, spec, e) < 0)
			return -1;
	}
	return l->n ? 0 : err_set(e, ERR_FAILED, "the sandbox has no layers");
}

int layers_open(struct cli_store *s, const struct sandbox_row *row, struct layers *ret,
		struct err *e)
{
	auto_done(layers_done) struct layers l = { 0 };
	auto_done(spec_free) json_t *spec = spec_load(row);
	auto_close int dirfd = FD_NONE;
	const json_t *list = json_object_get(spec, "layers");

	if (!json_is_array(list))
		return err_set(e, ERR_FAILED,
			       "sandbox '%s' was made by an older cay: its layers are "
			       "not known",
			       row->id);
	if (state_sandbox_open(&s->state, row->id, &dirfd, e) < 0 ||
	    open_all(&l, row, dirfd, list, e) < 0)
		return err_ctx(e, "sandbox '%s'", row->id);
	l.first_dir =
		text_of(json_object_get(json_array_get(json_object_get(spec, "dirs"), 0), "dest"));
	/*
	 * Inodes are stamped with a clock that lags behind by a tick, so a change in the first
	 * milliseconds would not be seen; but then the sandbox was not built yet, and saw it.
	 */
	l.base_ns = row->created_ns;
	*ret = l;
	l = (struct layers){ 0 };
	return 0;
}

const struct layers_mount *layers_find(const struct layers *l, const char *path,
				       const char **ret_rest)
{
	const struct layers_mount *best = NULL;
	size_t longest = 0;

	for (int i = 0; i < l->n; i++) {
		const struct layers_mount *m = &l->mounts[i];
		size_t n = strcmp(m->dest, "/") == 0 ? 0 : strlen(m->dest);

		if (strncmp(path, m->dest, n) != 0 || (path[n] && path[n] != '/') ||
		    (best && n < longest))
			continue;
		best = m;
		longest = n;
	}
	if (best)
		*ret_rest = path + longest + (path[longest] == '/');
	return best;
}

int layers_path(const struct layers *l, const char *path, char **ret, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(2 * LIMIT_PATH);
	int r = 0;

	if (path[0] != '/' && l->first_dir && strcmp(l->first_dir, "/") != 0)
		r = buf_add_c(&b, l->first_dir);
	while (*path && r == 0) {
		size_t n = strcspn(path, "/");

		if (n == 2 && strncmp(path, "..", 2) == 0)
			return err_set(e, ERR_INVALID, "no '..' in a path inside");
		if (n && !(n == 1 && path[0] == '.'))
			r = buf_printf(&b, "/%.*s", (int)n, path);
		path += n + (path[n] == '/');
	}
	if (r == 0 && b.len == 0)
		r = buf_add_c(&b, "/");
	if (r < 0)
		return err_sys(e, -r, "a path");
	*ret = buf_take(&b, NULL);
	return 0;
}
