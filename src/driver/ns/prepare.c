/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/netplan.h"
#include "sys/userns.h"

/* The id on disk of an id inside. Unprivileged there is only one. */
static uid_t on_disk(const struct cell_spec *s, uint32_t inside)
{
	return s->uid_base + (inside < USERNS_IDS ? inside : USERNS_IDS - 2);
}

static int own(const struct cell_spec *s, int dirfd, const char *name, uint32_t uid, uint32_t gid)
{
	if (!s->rootful)
		return 0;
	return fchownat(dirfd, name, on_disk(s, uid), on_disk(s, gid), AT_SYMLINK_NOFOLLOW) < 0
		       ? -errno
		       : 0;
}

/* A merged directory shows the upper's attributes: take them from the lower. */
static int make_upper(const struct cell_spec *s, int i, int parent_fd, const char *name)
{
	const struct cell_mount *m = &s->mounts[i];
	struct stat st;
	uint32_t uid, gid;

	if (stat(m->lower[0], &st) < 0 || mkdirat(parent_fd, name, 0755) < 0)
		return -errno;
	if (fchmodat(parent_fd, name, st.st_mode & 07777, 0) < 0)
		return -errno;
	uid = m->has_owner && st.st_uid == m->owner ? s->user : st.st_uid;
	gid = m->has_owner && st.st_gid == m->owner ? s->user : st.st_gid;
	return own(s, parent_fd, name, uid, gid);
}

static int make_work(const struct cell_spec *s, int parent_fd, const char *name)
{
	if (mkdirat(parent_fd, name, 0700) < 0)
		return -errno;
	return own(s, parent_fd, name, 0, 0);
}

static int put_file(const struct cell_spec *s, int dirfd, const char *name, const char *text)
{
	auto_close int fd = openat(dirfd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, text, strlen(text));
	return r < 0 ? r : own(s, dirfd, name, 0, 0);
}

static int machine_id(char out[34])
{
	unsigned char raw[16];

	if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
		return -EIO;
	for (int i = 0; i < 16; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", raw[i]);
	out[32] = '\n';
	out[33] = '\0';
	return 0;
}

static bool template_has_dir(const struct cell_spec *s, const char *name, struct stat *st)
{
	char path[LIMIT_PATH];

	(void)snprintf(path, sizeof path, "%s/%s", s->mounts[0].lower[0], name);
	return lstat(path, st) == 0 && S_ISDIR(st->st_mode);
}

static int put_resolver(const struct cell_spec *s, int etc)
{
	return put_file(s, etc, "resolv.conf", "nameserver " NETPLAN_GATEWAY4_TEXT "\n");
}

/* The sandbox's own identity. A template without a plain /etc goes without. */
static int put_identity(const struct cell_spec *s, int root_fd)
{
	char text[256], id[34];
	auto_close int etc = FD_NONE;
	struct stat st;
	int r;

	if (!template_has_dir(s, "etc", &st))
		return 0;
	if (mkdirat(root_fd, "etc", 0755) < 0)
		return -errno;
	r = own(s, root_fd, "etc", st.st_uid, st.st_gid);
	etc = openat(root_fd, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r < 0 || etc < 0)
		return r < 0 ? r : -errno;
	(void)snprintf(text, sizeof text,
		       "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n127.0.1.1\t%s\n",
		       s->hostname);
	r = put_file(s, etc, "hosts", text);
	if (r == 0 && s->network)
		r = put_resolver(s, etc);
	(void)snprintf(text, sizeof text, "%s\n", s->hostname);
	if (r == 0)
		r = put_file(s, etc, "hostname", text);
	if (r == 0)
		r = machine_id(id);
	return r < 0 ? r : put_file(s, etc, "machine-id", id);
}

/*
 * Directories that we mount on exist in the upper where the template has something else
 * there: a link named /dev in an image is hidden by it instead of being followed.
 */
static int put_mount_points(const struct cell_spec *s, int root_fd)
{
	static const char *const points[] = { "dev", "proc", "sys" };
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(points); i++) {
		int r;

		if (template_has_dir(s, points[i], &st))
			continue;
		if (mkdirat(root_fd, points[i], 0755) < 0)
			return -errno;
		r = own(s, root_fd, points[i], 0, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static int fill_root(const struct cell_spec *s, int upper_fd)
{
	auto_close int root = openat(upper_fd, "0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = root < 0 ? -errno : put_mount_points(s, root);

	return r < 0 ? r : put_identity(s, root);
}

int prepare_uppers(const struct cell_spec *s, struct err *e)
{
	auto_close int upper = FD_NONE, work = FD_NONE;
	int r = 0;

	if (mkdirat(s->dir_fd, "upper", 0755) < 0 || mkdirat(s->dir_fd, "work", 0755) < 0)
		return err_sys(e, errno, "make directories in '%s'", s->dir);
	upper = openat(s->dir_fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	work = openat(s->dir_fd, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (upper < 0 || work < 0)
		return err_sys(e, errno, "open directories in '%s'", s->dir);
	for (int i = 0; i < s->nmounts && r == 0; i++) {
		char name[12];

		if (s->mounts[i].kind != MOUNT_OVERLAY)
			continue;
		(void)snprintf(name, sizeof name, "%d", i);
		r = make_upper(s, i, upper, name);
		if (r == 0)
			r = make_work(s, work, name);
		if (r < 0)
			return err_sys(e, -r, "prepare '%s'", s->mounts[i].dest);
	}
	r = fill_root(s, upper);
	return r < 0 ? err_sys(e, -r, "prepare the root in '%s'", s->dir) : 0;
}
