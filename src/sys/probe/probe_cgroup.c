/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe/probe_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/limits.h"
#include "sys/cgroup/cgroup.h"
#include "sys/probe/probe_mountinfo.h"
#include "sys/process/raw.h"

enum { GONE_MS = 200 };

static const struct {
	const char *v2, *v1;
} controllers[PROBE_CG_CONTROLLERS] = {
	[PROBE_CG_MEMORY] = { "memory", "memory" },
	[PROBE_CG_PIDS] = { "pids", "pids" },
	[PROBE_CG_CPU] = { "cpu", "cpu" },
	[PROBE_CG_IO] = { "io", "blkio" },
};

const char *probe_cgroup_controller(int i)
{
	return controllers[i].v2;
}

unsigned probe_cgroup_set(struct str text)
{
	unsigned set = 0;

	for (int i = 0; i < PROBE_CG_CONTROLLERS; i++)
		if (probe_has_word(text, " ,\n", controllers[i].v2) ||
		    probe_has_word(text, " ,\n", controllers[i].v1))
			set |= 1u << i;
	return set;
}

enum probe_cgroup_mode probe_cgroup_mode(struct str mountinfo)
{
	bool v1 = false, v2 = false;
	struct mountinfo m;

	while (mountinfo_next(&mountinfo, &m)) {
		v1 |= str_is(m.type, "cgroup");
		v2 |= str_is(m.type, "cgroup2");
	}
	if (v1)
		return v2 ? PROBE_CGROUP_HYBRID : PROBE_CGROUP_V1;
	return v2 ? PROBE_CGROUP_V2 : PROBE_CGROUP_NONE;
}

bool probe_cgroup_own(struct str cgroup, const char *controller, struct str *ret)
{
	struct str line;

	while (probe_line(&cgroup, &line)) {
		struct str number = probe_until(&line, ':'), names = probe_until(&line, ':');

		if (controller ? !probe_has_word(names, ",", controller)
			       : !str_is(number, "0") || names.n)
			continue;
		*ret = line;
		return true;
	}
	return false;
}

/* Try to make a group below ours in each v1 hierarchy with a controller that we use. */
static unsigned try_v1(struct str mountinfo, struct str cgroup)
{
	unsigned can = 0;
	struct mountinfo m;

	while (mountinfo_next(&mountinfo, &m)) {
		for (int i = 0; i < PROBE_CG_CONTROLLERS; i++) {
			char path[LIMIT_PATH];
			struct str own;

			if (!str_is(m.type, "cgroup") ||
			    !probe_has_word(m.super, ",", controllers[i].v1) ||
			    !probe_cgroup_own(cgroup, controllers[i].v1, &own))
				continue;
			(void)snprintf(path, sizeof path, "%.*s%.*s/cay-doctor-%d",
				       STR_ARG(m.point), STR_ARG(own), (int)getpid());
			if (mkdir(path, 0755) < 0)
				continue;
			(void)rmdir(path);
			can |= 1u << i;
		}
	}
	return can;
}

static int clone_into(int group)
{
	struct raw_clone_args args = { .flags = RAW_CLONE_INTO_CGROUP,
				       .exit_signal = SIGCHLD,
				       .cgroup = (uint64_t)group };
	pid_t pid = raw_clone3(&args);

	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(0);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

static unsigned read_set(int dirfd, const char *name)
{
	auto_done(buf_done) struct buf text = BUF_INIT(4096);

	return io_read_file(dirfd, name, &text) < 0 ? 0 : probe_cgroup_set(buf_str(&text));
}

static void try_v2(struct probe_cgroup *f)
{
	struct cgroup g;
	char id[24];

	(void)snprintf(id, sizeof id, "doctor%d", (int)getpid());
	f->make = cgroup_new(&g, id);
	if (f->make < 0)
		return;
	f->kill = faccessat(g.fd, "cgroup.kill", W_OK, 0) == 0;
	f->freeze = faccessat(g.fd, "cgroup.freeze", W_OK, 0) == 0;
	f->offered = read_set(g.parent_fd, "cgroup.controllers");
	f->given = read_set(g.fd, "cgroup.controllers");
	f->clone_into = clone_into(g.fd);
	(void)cgroup_remove(&g, GONE_MS);
	cgroup_done(&g);
}

static void find_mount(struct str mountinfo, struct probe_cgroup *f)
{
	struct mountinfo m;

	while (mountinfo_next(&mountinfo, &m))
		if (str_is(m.type, "cgroup2") && str_copy(f->mount, sizeof f->mount, m.point))
			return;
}

void probe_cgroup(struct probe_cgroup *ret)
{
	auto_done(buf_done) struct buf mounts = BUF_INIT(PROBE_TEXT_MAX);
	auto_done(buf_done) struct buf own = BUF_INIT(PROBE_TEXT_MAX);
	struct str path;

	*ret = (struct probe_cgroup){ .make = PROBE_UNTRIED, .clone_into = PROBE_UNTRIED };
	if (!probe_file("/proc/self/mountinfo", &mounts) || !probe_file("/proc/self/cgroup", &own))
		return;
	ret->mode = probe_cgroup_mode(buf_str(&mounts));
	if (probe_cgroup_own(buf_str(&own), NULL, &path))
		(void)str_copy(ret->own, sizeof ret->own, path);
	find_mount(buf_str(&mounts), ret);
	ret->v1 = try_v1(buf_str(&mounts), buf_str(&own));
	try_v2(ret);
}
