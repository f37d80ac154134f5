/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "sys/cgroup/cgroup_limit.h"
#include "sys/files/btrfs.h"

static int refuse(const struct cell_spec *s, struct ns_cell *c, const char *limit, const char *why,
		  struct err *e)
{
	struct cell_unenforced *u = &c->pub.unenforced[c->pub.nunenforced];

	if (s->limits.best_effort) {
		u->limit = limit;
		(void)snprintf(u->why, sizeof u->why, "%s", why);
		c->pub.nunenforced++;
		return 0;
	}
	(void)err_set(e, ERR_UNAVAILABLE, "--%s cannot be enforced here: %s", limit, why);
	return err_hint(e, "leave it out, or take --best-effort to go on without it");
}

static int apply_group(const struct cell_spec *s, struct ns_cell *c, enum cgroup_controller which,
		       const char *limit, uint64_t value, struct err *e)
{
	char why[CGROUP_WHY] = "";

	if (!value || cgroup_limit(&c->cgroup, which, value, why) == 0)
		return 0;
	return refuse(s, c, limit, why, e);
}

/*
 * An unprivileged user has one uid inside, and since Linux 5.14 RLIMIT_NPROC counts per user
 * namespace: there it is as good as the group's limit. Root inside could use other uids.
 */
static int apply_pids(const struct cell_spec *s, struct ns_cell *c, struct err *e)
{
	char why[CGROUP_WHY] = "";

	if (!s->limits.pids || cgroup_limit(&c->cgroup, CGROUP_PIDS, s->limits.pids, why) == 0)
		return 0;
	if (s->rootful)
		return refuse(s, c, "pids", why, e);
	c->pub.nproc = s->limits.pids;
	return 0;
}

static int apply_files(const struct cell_spec *s, struct ns_cell *c, struct err *e)
{
	char why[CGROUP_WHY];
	struct rlimit r;
	uint64_t most;

	if (!s->limits.files || getrlimit(RLIMIT_NOFILE, &r) < 0)
		return 0;
	most = s->rootful ? r.rlim_max : limit_files_inside(r.rlim_max);
	if (s->limits.files <= most)
		return 0;
	(void)snprintf(why, sizeof why, "no %s of this user may have more than %llu open files",
		       s->rootful ? "process" : "command", (unsigned long long)most);
	return refuse(s, c, "files", why, e);
}

/* In storage, each subvolume's quota enforces the limit; otherwise the warden watches. */
static int apply_disk(const struct cell_spec *s, struct ns_cell *c, struct err *e)
{
	int r = s->limits.disk && s->storage ? btrfs_quota_is_on(s->disk_fd) : 0;

	if (r < 0)
		return err_sys(e, -r, "look for quotas in '%s'", s->storage);
	c->pub.has_quota = r == 1;
	return 0;
}

int limits_volume(const struct cell_spec *s, const char *name, bool quota)
{
	auto_close int fd = FD_NONE;
	uint64_t id;
	int r = btrfs_subvolume(s->disk_fd, name);

	if (r < 0)
		return r;
	fd = openat(s->disk_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = quota ? btrfs_id(fd, &id) : 0;
	if (r == 0 && quota)
		r = btrfs_limit(fd, id, s->limits.disk);
	return r < 0 ? r : TAKE_FD(fd);
}

int limits_apply(const struct cell_spec *s, struct ns_cell *c, struct err *e)
{
	const struct cell_limits *l = &s->limits;

	if (apply_group(s, c, CGROUP_MEMORY, "memory", l->memory, e) < 0 ||
	    apply_group(s, c, CGROUP_CPU, "cpus", l->cpu_milli, e) < 0 || apply_pids(s, c, e) < 0)
		return -1;
	return apply_files(s, c, e) < 0 ? -1 : apply_disk(s, c, e);
}
