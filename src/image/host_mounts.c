/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/limits.h"
#include "sys/ns/mount_line.h"

enum { MOUNTINFO_MAX = 8 << 20 };

void host_mounts_done(struct host_mounts *m)
{
	free(m->text);
	free(m->v);
	*m = (struct host_mounts){ 0 };
}

/* "ID PARENT MAJOR:MINOR ROOT POINT ..." */
static bool parse_line(char *line, struct host_mount *ret)
{
	char *field[5], *save = NULL;

	for (size_t i = 0; i < ARRAY_LEN(field); i++) {
		field[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!field[i])
			return false;
	}
	if (field[3][0] != '/' || field[4][0] != '/')
		return false;
	mount_line_unescape(field[3]);
	mount_line_unescape(field[4]);
	*ret = (struct host_mount){ field[2], field[3], field[4] };
	return true;
}

int host_mounts_parse(char *text, struct host_mounts *ret, struct err *e)
{
	auto_done(host_mounts_done) struct host_mounts m = { .text = text };
	char *save = NULL;
	size_t lines = 1;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	m.v = calloc(lines, sizeof *m.v);
	if (!m.v)
		return err_sys(e, ENOMEM, "cannot hold the list of mounts");
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		m.n += parse_line(l, &m.v[m.n]);
	*ret = m;
	m = (struct host_mounts){ 0 };
	return 0;
}

int host_mounts_read(struct host_mounts *ret, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(MOUNTINFO_MAX);
	int r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", &b);

	if (r == 0 && b.len == 0)
		r = -ENODATA;
	if (r < 0)
		return err_sys(e, -r, "cannot read '/proc/self/mountinfo'");
	return host_mounts_parse(buf_take(&b, NULL), ret, e);
}

/* The rest of path below dir ("" if equal, else "/..."), or NULL. */
static const char *rest_below(const char *dir, const char *path)
{
	size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	if (strncmp(dir, path, n) != 0 || (path[n] != '\0' && path[n] != '/'))
		return NULL;
	return strcmp(path + n, "/") == 0 ? "" : path + n;
}

bool host_mounts_below(const struct host_mounts *m, const char *dir)
{
	for (size_t i = 0; i < m->n; i++) {
		const char *rest = rest_below(dir, m->v[i].point);

		if (rest && rest[0])
			return true;
	}
	return false;
}

/* A later mount on the same point hides the earlier one. */
static const struct host_mount *mount_of(const struct host_mounts *m, const char *path)
{
	const struct host_mount *best = NULL;

	for (size_t i = 0; i < m->n; i++)
		if (rest_below(m->v[i].point, path) &&
		    (!best || strlen(m->v[i].point) >= strlen(best->point)))
			best = &m->v[i];
	return best;
}

/* The path within the mount's file system. False if it is too long. */
static bool place(const struct host_mount *mount, const char *path, char out[LIMIT_PATH])
{
	const char *root = strcmp(mount->root, "/") == 0 ? "" : mount->root;
	int n = snprintf(out, LIMIT_PATH, "%s%s", root, rest_below(mount->point, path));

	if (n == 0)
		memcpy(out, "/", sizeof "/");
	return n < LIMIT_PATH;
}

bool host_mounts_shows(const struct host_mounts *m, const char *outer, const char *inner)
{
	const struct host_mount *im = mount_of(m, inner), *om = mount_of(m, outer);
	char inner_place[LIMIT_PATH], outer_place[LIMIT_PATH];

	if (rest_below(outer, inner))
		return true;
	if (!im || !om || !place(im, inner, inner_place) || !place(om, outer, outer_place))
		return true;
	if (strcmp(im->dev, om->dev) == 0 && rest_below(outer_place, inner_place))
		return true;
	for (size_t i = 0; i < m->n; i++)
		if (rest_below(outer, m->v[i].point) && strcmp(m->v[i].dev, im->dev) == 0 &&
		    rest_below(m->v[i].root, inner_place))
			return true;
	return false;
}
