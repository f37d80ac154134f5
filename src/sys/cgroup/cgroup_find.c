/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cgroup/cgroup_find.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/limits.h"
#include "sys/process/pidfd.h"
#include "sys/process/raw.h"

enum { PROC_FILE_MAX = 4 << 20 }; /* enough for a host with thousands of mounts */

/* Cut off the next piece up to `sep`. */
static struct str cut(struct str *s, char sep)
{
	const char *end = s->n ? memchr(s->p, sep, s->n) : NULL;
	struct str piece = { s->p, end ? (size_t)(end - s->p) : s->n };
	size_t used = piece.n + (end ? 1 : 0);

	s->p += used;
	s->n -= used;
	return piece;
}

static bool lists(struct str list, const char *word)
{
	while (list.n)
		if (str_is(cut(&list, ','), word))
			return true;
	return false;
}

/* cgroups(7): number:controllers:path, v2 being "0::path". */
static bool own_path(struct str text, const char *controller, struct str *ret)
{
	while (text.n) {
		struct str line = cut(&text, '\n');
		struct str number = cut(&line, ':');
		struct str names = cut(&line, ':');

		if (controller ? !lists(names, controller) : !str_is(number, "0") || names.n)
			continue;
		*ret = line;
		return line.n && line.p[0] == '/';
	}
	return false;
}

/* proc(5): id parent dev root mountpoint options optional... - type source options */
static bool is_mount(struct str line, const char *controller, struct str *ret_root,
		     struct str *ret_at)
{
	for (int i = 0; i < 3; i++)
		(void)cut(&line, ' ');
	*ret_root = cut(&line, ' ');
	*ret_at = cut(&line, ' ');
	while (line.n)
		if (str_is(cut(&line, ' '), "-")) {
			if (!str_is(cut(&line, ' '), controller ? "cgroup" : "cgroup2"))
				return false;
			(void)cut(&line, ' ');
			return !controller || lists(line, controller);
		}
	return false;
}

/* A mount may show only a part of the tree: remove that part's path from our own. */
static bool below_root(struct str own, struct str root, struct str *ret)
{
	*ret = own;
	if (str_is(root, "/"))
		return true;
	if (!str_starts(own, root) || (own.n > root.n && own.p[root.n] != '/'))
		return false;
	*ret = (struct str){ own.p + root.n, own.n - root.n };
	return true;
}

static struct str without_self(struct str own)
{
	const struct str self = STR("/" CGROUP_SELF);

	if (own.n >= self.n && memcmp(own.p + own.n - self.n, self.p, self.n) == 0)
		own.n -= self.n;
	return own;
}

static int read_proc(const char *root, const char *name, struct buf *b)
{
	char path[LIMIT_PATH];

	(void)snprintf(path, sizeof path, "%s/proc/self/%s", root, name);
	return io_read_file(AT_FDCWD, path, b);
}

/* The number of our v2 group, which is the inode of its directory; or 0. */
static uint64_t own_number(void)
{
	struct pidfd_info_v0 info = { .mask = PIDFD_HAS_CGROUP };
	auto_close int fd = raw_pidfd_open(getpid());

	if (fd < 0 || ioctl(fd, PIDFD_IOCTL_INFO, &info) < 0 || !(info.mask & PIDFD_HAS_CGROUP))
		return 0;
	return info.cgroup;
}

/* Try the usual mount point of v2 first: reading the list of all mounts takes ten times as long. */
static bool find_usual(struct str own, char *out, size_t size)
{
	static const char *const usual[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	uint64_t number = own_number();
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(usual) && number; i++) {
		struct statfs fs;
		int n = snprintf(out, size, "%s%.*s", usual[i], STR_ARG(own));

		if (n < 0 || (size_t)n >= size || stat(out, &st) < 0 || st.st_ino != number ||
		    statfs(out, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
			continue;
		out[(size_t)n - own.n + without_self(own).n] = '\0';
		return true;
	}
	return false;
}

int cgroup_find(const char *root, const char *controller, char *out, size_t size)
{
	auto_done(buf_done) struct buf groups = BUF_INIT(PROC_FILE_MAX);
	auto_done(buf_done) struct buf mounts = BUF_INIT(PROC_FILE_MAX);
	struct str own, part, at, rest, text;
	int n, r = read_proc(root, "cgroup", &groups);

	if (r < 0 || !own_path(buf_str(&groups), controller, &own))
		return r < 0 ? r : -ENOENT;
	if (!root[0] && !controller && find_usual(own, out, size))
		return 0;
	r = read_proc(root, "mountinfo", &mounts);
	if (r < 0)
		return r;
	own = without_self(own);
	for (text = buf_str(&mounts); text.n;) {
		if (!is_mount(cut(&text, '\n'), controller, &part, &at) ||
		    !below_root(own, part, &rest))
			continue;
		n = snprintf(out, size, "%s%.*s%.*s", root, STR_ARG(at), STR_ARG(rest));
		return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
	}
	return -ENOENT;
}
