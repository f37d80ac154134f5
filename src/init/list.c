/* SPDX-License-Identifier: Apache-2.0 */
#include "init/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "wire/file_entry.h"

enum { OUT_MOST = 1 << 20, OUT_FLUSH = 64 * 1024, XATTRS_MOST = 16 * 1024 };

int list_fail(const char *path, int errnum)
{
	char line[1024];
	int n = snprintf(line, sizeof line - 1, "%.700s: %s", path, strerror(errnum));

	for (char *c = line; c < line + n; c++)
		if (*c == '\n')
			*c = '?';
	line[n++] = '\n';
	(void)io_write_all(STDERR_FILENO, line, (size_t)n);
	return errnum == ENOENT ? LIST_MISSING : errnum == ENOTDIR ? LIST_WRONG_TYPE : 1;
}

/* ---- one entry ---- */

static char letter_of(mode_t mode)
{
	static const struct {
		mode_t type;
		char letter;
	} rows[] = { { S_IFREG, 'f' },	{ S_IFDIR, 'd' }, { S_IFLNK, 'l' }, { S_IFIFO, 'p' },
		     { S_IFSOCK, 's' }, { S_IFBLK, 'b' }, { S_IFCHR, 'c' } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if ((mode & S_IFMT) == rows[i].type)
			return rows[i].letter;
	return 'U';
}

/* As ls(1) prints it. */
static void permissions(mode_t mode, char out[11])
{
	static const char all[] = "rwxrwxrwx";

	out[0] = S_ISREG(mode) ? '-' : letter_of(mode);
	for (int i = 0; i < 9; i++)
		out[i + 1] = mode & (0400u >> i) ? all[i] : '-';
	if (mode & S_ISUID)
		out[3] = mode & 0100 ? 's' : 'S';
	if (mode & S_ISGID)
		out[6] = mode & 0010 ? 's' : 'S';
	if (mode & S_ISVTX)
		out[9] = mode & 0001 ? 't' : 'T';
	out[10] = '\0';
}

/* A list of thousands has few owners. */
static int put_owner(struct buf *out, uid_t uid)
{
	static char name[64];
	static uid_t last;
	const struct passwd *p;

	if (!name[0] || last != uid) {
		p = getpwuid(uid);
		last = uid;
		if (!p || !p->pw_name[0] || !str_copy(name, sizeof name, str_of(p->pw_name)))
			(void)snprintf(name, sizeof name, "%u", (unsigned)uid);
	}
	return buf_add(out, name, strlen(name) + 1);
}

static int put_group(struct buf *out, gid_t gid)
{
	static char name[64];
	static gid_t last;
	const struct group *g;

	if (!name[0] || last != gid) {
		g = getgrgid(gid);
		last = gid;
		if (!g || !g->gr_name[0] || !str_copy(name, sizeof name, str_of(g->gr_name)))
			(void)snprintf(name, sizeof name, "%u", (unsigned)gid);
	}
	return buf_add(out, name, strlen(name) + 1);
}

/* Where a link leads in the end, or its text where that is nowhere. */
static int put_link(struct buf *out, const char *path, bool is_link)
{
	char text[LIMIT_PATH];
	ssize_t n;

	if (!is_link)
		return buf_add(out, "", 1);
	if (!realpath(path, text)) {
		n = readlink(path, text, sizeof text - 1);
		text[n < 0 ? 0 : n] = '\0';
	}
	return buf_add(out, text, strlen(text) + 1);
}

/* Lines K=V; a value with a line break is left out. */
static int put_metadata(struct buf *out, const char *path)
{
	static const size_t prefix = sizeof FILE_ENTRY_XATTR - 1;
	char names[XATTRS_MOST], value[XATTRS_MOST];
	ssize_t all = llistxattr(path, names, sizeof names);
	int r = 0;

	for (const char *name = names; r == 0 && name < names + all; name += strlen(name) + 1) {
		ssize_t n;

		if (strncmp(name, FILE_ENTRY_XATTR, prefix) != 0)
			continue;
		n = lgetxattr(path, name, value, sizeof value);
		if (n < 0 || memchr(value, '\n', (size_t)n) || memchr(value, '\0', (size_t)n) ||
		    strpbrk(name, "=\n"))
			continue;
		r = buf_printf(out, "%s=%.*s\n", name + prefix, (int)n, value);
	}
	return r < 0 ? r : buf_add(out, "", 1);
}

int list_put(struct buf *out, const char *path)
{
	struct stat st, target;
	char access[11];
	bool is_link, leads;
	int r;

	if (lstat(path, &st) < 0)
		return -errno;
	is_link = S_ISLNK(st.st_mode);
	leads = is_link && stat(path, &target) == 0;
	permissions(st.st_mode, access);
	if (!leads)
		target = st;
	r = buf_printf(out, "%c%c%c%c%lld%c%o%c%s%c", letter_of(st.st_mode), 0,
		       is_link && !leads ? 'N' : letter_of(target.st_mode), 0,
		       (long long)st.st_size, 0, (unsigned)(target.st_mode & 07777), 0, access, 0);
	if (r == 0)
		r = put_owner(out, st.st_uid);
	if (r == 0)
		r = put_group(out, st.st_gid);
	if (r == 0)
		r = buf_printf(out, "%lld.%09ld%c", (long long)st.st_mtim.tv_sec,
			       st.st_mtim.tv_nsec, 0);
	if (r == 0)
		r = put_link(out, path, is_link);
	if (r == 0)
		r = buf_add(out, path, strlen(path) + 1);
	return r < 0 ? r : put_metadata(out, path);
}

/* ---- many ---- */

static int flush(struct buf *out, size_t least)
{
	int r = out->len > least ? io_write_all(STDOUT_FILENO, out->data, out->len) : 0;

	if (out->len > least)
		buf_clear(out);
	return r;
}

/* An entry that went away meanwhile was never there. Unreadable directories are empty. */
static int walk(struct buf *out, char path[LIMIT_PATH], long depth)
{
	size_t n = strlen(path);
	const struct dirent *e;
	DIR *d = opendir(path);
	int r = 0;

	while (d && r == 0 && (e = readdir(d))) {
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (snprintf(path + n, LIMIT_PATH - n, "%s%s", n > 1 ? "/" : "", e->d_name) >=
		    (int)(LIMIT_PATH - n))
			continue;
		r = list_put(out, path);
		if (r == -ENOENT)
			r = 0;
		else if (r == 0)
			r = flush(out, OUT_FLUSH);
		if (r == 0 && depth > 1 && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			r = walk(out, path, depth - 1);
	}
	path[n] = '\0';
	if (d)
		(void)closedir(d);
	return r;
}

int list_run(const char *path, const char *depth)
{
	auto_done(buf_done) struct buf out = BUF_INIT(OUT_MOST);
	long levels = strtol(depth, NULL, 10);
	char at[LIMIT_PATH];
	struct stat st;
	int r;

	if (!str_copy(at, sizeof at, str_of(path)))
		return list_fail(path, ENAMETOOLONG);
	for (size_t n = strlen(at); n > 1 && at[n - 1] == '/'; n--)
		at[n - 1] = '\0';
	if (levels <= 0)
		r = list_put(&out, at);
	else if (stat(at, &st) < 0)
		r = -errno;
	else
		r = S_ISDIR(st.st_mode) ? walk(&out, at, levels) : -ENOTDIR;
	if (r == 0)
		r = flush(&out, 0);
	return r < 0 ? list_fail(path, -r) : 0;
}
