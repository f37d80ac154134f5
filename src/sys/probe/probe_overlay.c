/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe/probe_overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "sys/ns/mnt.h"
#include "sys/ns/userns.h"
#include "sys/process/raw.h"

enum { TRIES_OPTS = 2, RANGE_BASE = 0x70000000 };

struct place {
	const char *dir;
	bool rootful;
};

/* A lower directory, and an upper with its work directory for this try only. */
static int make_dirs(const char *dir, int try, char lower[], char upper[], char work[])
{
	(void)snprintf(lower, LIMIT_PATH, "%s/lower", dir);
	(void)snprintf(upper, LIMIT_PATH, "%s/upper%d", dir, try);
	(void)snprintf(work, LIMIT_PATH, "%s/scratch%d", dir, try);
	if (mkdir(lower, 0755) < 0 && errno != EEXIST)
		return -errno;
	return mkdir(upper, 0755) < 0 || mkdir(work, 0755) < 0 ? -errno : 0;
}

static int write_through(int mount)
{
	auto_close int fd = openat(mount, "file", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	return write(fd, "x", 1) == 1 ? 0 : -EIO;
}

static int try_overlay(const char *dir, int try, const struct mnt_opt more[TRIES_OPTS])
{
	char lower[LIMIT_PATH], upper[LIMIT_PATH], work[LIMIT_PATH];
	struct mnt_opt opts[] = {
		{ "lowerdir", lower }, { "upperdir", upper }, { "workdir", work }, more[0], more[1],
		{ NULL, NULL }
	};
	auto_close int mount = FD_NONE;
	int r = make_dirs(dir, try, lower, upper, work);

	if (r < 0)
		return r;
	mount = mnt_new("overlay", opts, RAW_ATTR_NOSUID | RAW_ATTR_NODEV);
	if (mount < 0)
		return mount;
	r = write_through(mount);
	/* An attached mount ends with the namespace; closing a detached one waits for RCU. */
	return r < 0 ? r : mnt_attach_at(mount, AT_FDCWD, work);
}

static int try_idmap(const char *dir)
{
	struct idmap map = { 0, RANGE_BASE, USERNS_IDS };
	auto_close int ns = userns_new(&map, 1), mount = FD_NONE;

	if (ns < 0)
		return ns;
	mount = mnt_bind_path(dir, 0, 0, ns);
	return mount < 0 ? mount : 0;
}

/* All mounts but the last one are volatile: ending another kind syncs the file system. */
static void try_all(void *result, const void *arg)
{
	static const struct mnt_opt as_root[] = { { "volatile", NULL }, { 0 }, { 0 } };
	static const struct mnt_opt as_user[] = { { "volatile", NULL }, { "userxattr", NULL } };
	static const struct mnt_opt user_only[] = { { "userxattr", NULL }, { NULL, NULL } };
	static const struct mnt_opt meta[] = { { "volatile", NULL }, { "metacopy", "on" } };
	const struct place *p = arg;
	struct probe_storage *f = result;

	if (!p->rootful && (f->overlay = probe_enter_userns(0)) < 0)
		return;
	if (unshare(CLONE_NEWNS) < 0 || mnt_make_private() < 0) {
		f->overlay = -errno;
		return;
	}
	f->overlay = try_overlay(p->dir, 0, p->rootful ? as_root : as_user);
	if (f->overlay < 0)
		f->not_volatile = try_overlay(p->dir, 1, p->rootful ? as_root + 1 : user_only);
	f->userxattr = p->rootful ? try_overlay(p->dir, 2, as_user) : f->overlay;
	if (!p->rootful)
		return;
	f->metacopy = try_overlay(p->dir, 3, meta);
	f->idmap = try_idmap(p->dir);
}

void probe_overlay(struct probe_storage *ret, const char *dir, bool rootful)
{
	struct place p = { dir, rootful };
	int r = probe_in_child(try_all, ret, sizeof *ret, &p, PROBE_TIMEOUT_MS);

	if (r < 0 && ret->overlay == PROBE_UNTRIED)
		ret->overlay = r;
}
