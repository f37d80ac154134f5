/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /sys/fs/cgroup of a sandbox with limits. The JVM and Go accept only mounts of the type cgroup or
 * cgroup2 in mountinfo, and then open files by their paths.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "driver/ns/facts.h"
#include "sys/ns/mnt.h"
#include "sys/process/raw.h"

enum {
	FACT = RAW_ATTR_RDONLY | RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC,
	GROUPS_MAX = 64 * 1024,
	NAMES_MAX = 8, /* controllers that share a hierarchy */
	PERIOD_US = 100000,
};

#define PLACE "fs/cgroup"

/* v1's value for "no limit": the largest multiple of a page. */
static const uint64_t unlimited = 0x7ffffffffffff000;

static const char *const controllers[] = { "memory", "cpu", "cpuacct", "cpuset" };

/*
 * The controllers of the v1 hierarchy that contains this one, separated by commas: they can only be
 * mounted together. text: /proc/self/cgroup, lines "number:controllers:path". False: not v1.
 */
static bool find_v1(const char *text, const char *controller, char *out, size_t size)
{
	size_t n = strlen(controller);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		const char *names, *end;

		line += *line == '\n';
		names = strchr(line, ':');
		end = names ? strchr(++names, ':') : NULL;
		for (const char *at = names; end && at < end; at += strcspn(at, ",:") + 1)
			if (strncmp(at, controller, n) == 0 && (at[n] == ',' || at[n] == ':')) {
				(void)snprintf(out, size, "%.*s", (int)(end - names), names);
				return true;
			}
	}
	return false;
}

static int put_number(int to, const char *path, int64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%" PRId64 "\n", value);
	return facts_put(to, path, text);
}

/* Make the files of the four directories in `view`, which cover the mounts. */
static int put_view(int to, const struct cell_spec *s)
{
	int64_t memory = (int64_t)(s->limits.memory ? s->limits.memory : unlimited);
	unsigned cpus = facts_cpus(s);
	char range[24], stat[128];
	const struct {
		const char *path;
		int64_t value;
	} numbers[] = {
		{ "view/memory/memory.limit_in_bytes", memory },
		{ "view/memory/memory.soft_limit_in_bytes", memory },
		{ "view/memory/memory.memsw.limit_in_bytes", memory },
		{ "view/memory/memory.usage_in_bytes", 0 },
		{ "view/memory/memory.max_usage_in_bytes", 0 },
		{ "view/memory/memory.use_hierarchy", 1 },
		{ "view/cpu/cpu.cfs_period_us", PERIOD_US },
		{ "view/cpu/cpu.cfs_quota_us",
		  s->limits.cpu_milli ? (int64_t)s->limits.cpu_milli * (PERIOD_US / 1000) : -1 },
		{ "view/cpu/cpu.shares", 1024 },
		{ "view/cpuacct/cpuacct.usage", 0 },
		{ "view/cpuset/cpuset.mems", 0 },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(numbers) && r == 0; i++)
		r = put_number(to, numbers[i].path, numbers[i].value);
	(void)snprintf(stat, sizeof stat,
		       "hierarchical_memory_limit %" PRId64 "\nhierarchical_memsw_limit %" PRId64
		       "\n",
		       memory, memory);
	if (r == 0)
		r = facts_put(to, "view/memory/memory.stat", stat);
	(void)snprintf(range, sizeof range, cpus > 1 ? "0-%u\n" : "0\n", cpus - 1);
	return r < 0 ? r : facts_put(to, "view/cpuset/cpuset.cpus", range);
}

/* A mount of the hierarchy with these controllers, detached. */
static int mount_v1(char *names)
{
	struct mnt_opt opts[NAMES_MAX + 1] = { { NULL, NULL } };
	char *save = NULL;
	int n = 0;

	for (char *at = strtok_r(names, ",", &save); at && n < NAMES_MAX;
	     at = strtok_r(NULL, ",", &save))
		opts[n++].key = at;
	return mnt_new("cgroup", opts, FACT);
}

/* Cover the mount at once, so that no process inside sees the groups themselves. */
static int show_v1(int sys_fd, int view, const char *controller, char *names)
{
	auto_close int group = FD_NONE, files = FD_NONE, cover = FD_NONE;
	char path[48];
	int r;

	(void)snprintf(path, sizeof path, PLACE "/%s", controller);
	group = mount_v1(names);
	if (group < 0)
		return group;
	if (mkdirat(sys_fd, path, 0755) < 0)
		return -errno;
	files = openat(view, controller, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cover = files < 0 ? -errno : mnt_bind(files, FACT, 0, FD_NONE);
	if (cover < 0)
		return cover;
	r = mnt_attach_at(group, sys_fd, path);
	return r < 0 ? r : mnt_attach(cover, group);
}

static int show_all_v1(struct tree *t, int sys_fd, const char *own)
{
	static const struct mnt_opt opts[] = { { "size", "512k" },
					       { "mode", "0755" },
					       { NULL, NULL } };
	auto_close int top = mnt_new("tmpfs", opts, FACT & ~(unsigned)RAW_ATTR_RDONLY);
	auto_close int view = FD_NONE;
	char names[128];
	int r = tree_put(t, top, "groups");

	if (r == 0)
		r = put_view(top, t->spec);
	view = openat(top, "view", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(controllers) && r == 0; i++)
		if (find_v1(own, controllers[i], names, sizeof names))
			r = show_v1(sys_fd, view, controllers[i], names);
	return r;
}

int facts_groups(struct tree *t, int sys_fd, bool grouped)
{
	auto_done(buf_done) struct buf own = BUF_INIT(GROUPS_MAX);
	auto_close int group = FD_NONE;
	char names[128];
	int r = io_read_file(AT_FDCWD, "/proc/self/cgroup", &own);

	(void)snprintf(t->what, sizeof t->what, "make /sys/fs/cgroup");
	if (r < 0 || !own.data)
		return 0;
	if (mkdirat(sys_fd, "fs", 0755) < 0 || mkdirat(sys_fd, PLACE, 0755) < 0)
		return -errno;
	if (find_v1(own.data, "memory", names, sizeof names) ||
	    find_v1(own.data, "cpu", names, sizeof names))
		return show_all_v1(t, sys_fd, own.data);
	if (!grouped) /* the group would be the caller's own */
		return 0;
	group = mnt_new("cgroup2", NULL, FACT);
	return group < 0 ? group : mnt_attach_at(group, sys_fd, PLACE);
}

/* The number of a v1 hierarchy; 0: the controller belongs to v2. */
static int hierarchy_of(const char *text, const char *controller)
{
	char names[128], line[160];
	const char *at;

	if (!find_v1(text, controller, names, sizeof names))
		return 0;
	(void)snprintf(line, sizeof line, ":%s:", names);
	at = strstr(text, line);
	while (at && at > text && at[-1] != '\n')
		at--;
	return at ? atoi(at) : 0;
}

/* The JVM reports an error if some v1 controllers have a hierarchy and others have none. */
int facts_controllers(int to)
{
	auto_done(buf_done) struct buf own = BUF_INIT(GROUPS_MAX);
	auto_done(buf_done) struct buf b = BUF_INIT(GROUPS_MAX);
	static const char *const names[] = {
		"cpuset", "cpu", "cpuacct", "blkio", "memory", "pids"
	};
	int r = io_read_file(AT_FDCWD, "/proc/self/cgroup", &own), numbers[ARRAY_LEN(names)];
	bool v1 = false;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		numbers[i] = own.data ? hierarchy_of(own.data, names[i]) : 0;
		v1 |= numbers[i] != 0;
	}
	if (r == 0)
		r = buf_add_c(&b, "#subsys_name\thierarchy\tnum_cgroups\tenabled\n");
	for (size_t i = 0; i < ARRAY_LEN(names) && r == 0; i++)
		if (!v1 || numbers[i])
			r = buf_printf(&b, "%s\t%d\t1\t1\n", names[i], numbers[i]);
	return r < 0 ? r : facts_put(to, "cgroups", b.data);
}
