/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox's file systems: overlays over the template's layers, and what is read-only. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/ns/launch.h"
#include "driver/ns/ro.h"
#include "sys/mnt.h"
#include "sys/raw.h"
#include "sys/resolve.h"

enum { OPT_MAX = 256 }; /* the kernel's ceiling for one fsconfig value */

int tree_put(struct tree *t, int mount_fd, const char *name)
{
	if (mount_fd < 0)
		return mount_fd;
	if (mkdirat(t->stage_fd, name, 0700) < 0)
		return -errno;
	return mnt_attach_at(mount_fd, t->stage_fd, name);
}

int tree_userns(const struct tree *t, int i)
{
	int own = t->l->owner_ns[i];

	return own >= 0 ? own : t->l->userns_fd;
}

/*
 * A layer with the sandbox's ids. It is attached to the stage although only its descriptor is
 * used: a detached mount that is closed costs a grace period of the kernel each, those on the
 * stage go all at once with the old root.
 */
static int stage_lower(struct tree *t, int i, int j)
{
	char name[32];
	auto_close int fd = mnt_bind_path(t->l->spec->mounts[i].lower[j],
					  RAW_ATTR_RDONLY | RAW_ATTR_NODEV, 0, tree_userns(t, i));
	int r;

	(void)snprintf(name, sizeof name, "%d.%d", i, j);
	r = tree_put(t, fd, name);
	return r < 0 ? r : TAKE_FD(fd);
}

/* "/proc/self/fd/5:/proc/self/fd/6" over fds that stay open until the overlay is made. */
static int open_lowers(struct tree *t, int i, int fds[CELL_LOWERS], char *opt)
{
	const struct cell_mount *m = &t->l->spec->mounts[i];
	int at = 0;

	for (int j = 0; j < m->nlower; j++) {
		if (t->l->spec->rootful)
			fds[j] = stage_lower(t, i, j);
		else
			fds[j] = open(m->lower[j], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fds[j] < 0) {
			int r = t->l->spec->rootful ? fds[j] : -errno;

			(void)snprintf(t->what, sizeof t->what, "open '%s'", m->lower[j]);
			return r;
		}
		at += snprintf(opt + at, OPT_MAX - (size_t)at, "%s/proc/self/fd/%d", j ? ":" : "",
			       fds[j]);
		if (at >= OPT_MAX)
			return -E2BIG;
	}
	return 0;
}

static int open_part(const struct tree *t, const char *part, int i, char *opt)
{
	char path[LIMIT_PATH];
	int fd;

	(void)snprintf(path, sizeof path, "%s/%s/%d", t->l->spec->disk, part, i);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)snprintf(opt, OPT_MAX, "/proc/self/fd/%d", fd);
	return fd < 0 ? -errno : fd;
}

/* The detached overlay of mount i. */
static int new_overlay(struct tree *t, int i)
{
	char lower[OPT_MAX], upper[OPT_MAX], work[OPT_MAX];
	int fds[CELL_LOWERS] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE };
	auto_close int upper_fd = open_part(t, "upper", i, upper);
	auto_close int work_fd = open_part(t, "work", i, work);
	const struct mnt_opt opts[] = {
		{ "lowerdir", lower },
		{ "upperdir", upper },
		{ "workdir", work },
		{ "index", "off" },
		/* fsync inside must not wait for the disk, nor the end of a sandbox for a sync of
		 * the whole file system: what has to last is synced when it is sealed. */
		{ "volatile", NULL },
		{ t->l->spec->rootful ? NULL : "userxattr", NULL },
		{ NULL, NULL },
	};
	int r = upper_fd < 0 ? upper_fd : work_fd < 0 ? work_fd : open_lowers(t, i, fds, lower);

	if (r == 0) {
		r = mnt_new("overlay", opts, RAW_ATTR_NODEV);
		if (r < 0)
			(void)snprintf(t->what, sizeof t->what, "mount overlay for '%s' over '%s'",
				       t->l->spec->mounts[i].dest, t->l->spec->mounts[i].lower[0]);
	}
	for (int j = 0; j < CELL_LOWERS; j++)
		fd_close(&fds[j]);
	return r;
}

/* Attach at its place inside, resolved as the sandbox would, made where it is missing. */
static int attach(struct tree *t, int i, int mount_fd)
{
	const struct cell_spec *s = t->l->spec;
	const char *dest = s->mounts[i].dest;
	uid_t root = s->rootful ? s->uid_base : 0;
	auto_close int target = FD_NONE;
	struct stat st;
	int r;

	if (fstat(mount_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		target = resolve_mkfile(t->root_fd, dest, root, root);
	else
		target = resolve_mkdirs(t->root_fd, dest, 0755, root, root);
	r = target < 0 ? target : mnt_attach(mount_fd, target);
	if (r < 0)
		(void)snprintf(t->what, sizeof t->what, "mount on '%s' inside", dest);
	return r;
}

/*
 * Where mounts are put together: in this mount namespace only, gone with the old root. The
 * sandbox's root must be attached to something before anything can be attached below it.
 */
int tree_stage(struct tree *t)
{
	static const struct mnt_opt opts[] = { { "mode", "0700" },
					       { "size", "64k" },
					       { NULL, NULL } };
	char path[LIMIT_PATH];
	auto_close int at = FD_NONE;

	(void)snprintf(t->what, sizeof t->what, "make a stage for mounts");
	(void)snprintf(path, sizeof path, "%s/stage", t->l->spec->dir);
	if (mkdir(path, 0700) < 0)
		return -errno;
	at = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return -errno;
	t->stage_fd = mnt_new("tmpfs", opts, RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC);
	if (t->stage_fd < 0)
		return t->stage_fd;
	return mnt_attach(t->stage_fd, at);
}

static int attach_root(struct tree *t)
{
	int r;

	t->root_fd = new_overlay(t, 0);
	r = tree_put(t, t->root_fd, "root");
	if (r < 0 && t->root_fd >= 0)
		(void)snprintf(t->what, sizeof t->what, "mount the root");
	return r;
}

int tree_mounts(struct tree *t)
{
	int r = attach_root(t);

	for (int i = 1; i < t->l->spec->nmounts && r == 0; i++) {
		bool overlay = t->l->spec->mounts[i].kind == MOUNT_OVERLAY;
		auto_close int fd = overlay ? new_overlay(t, i) : ro_new(t, i);

		r = fd < 0 ? fd : attach(t, i, fd);
		if (r == 0 && !overlay)
			r = ro_below(t, i);
	}
	return r;
}

int tree_place(struct tree *t)
{
	const struct {
		const char *name;
		int fd;
	} parts[] = { { "proc", t->proc_fd }, { "dev", t->dev_fd }, { "sys", t->sys_fd } };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		int r = mnt_attach_at(parts[i].fd, t->root_fd, parts[i].name);

		if (r < 0) {
			(void)snprintf(t->what, sizeof t->what, "mount /%s", parts[i].name);
			return r;
		}
	}
	return 0;
}

struct fixed_mount tree_expects(const struct cell_spec *s, int i)
{
	if (s->mounts[i].kind == MOUNT_OVERLAY)
		return (struct fixed_mount){ .type = "overlay",
					     .root = "/",
					     .attrs = RAW_ATTR_NODEV };
	return (struct fixed_mount){ .attrs = RAW_ATTR_RDONLY | RAW_ATTR_NODEV | RAW_ATTR_NOSUID };
}
