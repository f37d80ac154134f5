/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "sys/ns/mnt.h"
#include "sys/process/proc_text.h"
#include "sys/process/raw.h"

enum {
	FACT = RAW_ATTR_RDONLY | RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC,
	TEXT_MAX = 4 << 20, /* /proc/cpuinfo of a large machine */
	TOPOLOGY_MAX = 32,  /* with more processors the masks have another form */
};

#define CPU_DIR "devices/system/cpu"

static unsigned cpus_here(cpu_set_t *set)
{
	CPU_ZERO(set);
	if (sched_getaffinity(0, sizeof *set, set) < 0 || CPU_COUNT(set) < 1)
		CPU_SET(0, set);
	return (unsigned)CPU_COUNT(set);
}

unsigned facts_cpus(const struct cell_spec *s)
{
	cpu_set_t set;
	unsigned here = cpus_here(&set);
	uint64_t want = (s->limits.cpu_milli + 999) / 1000;

	return want && want < here ? (unsigned)want : here;
}

bool facts_limited(const struct cell_spec *s)
{
	return s->limits.memory || s->limits.cpu_milli;
}

/*
 * The quota is the limit. The binding only informs runtimes of it, and any process inside may undo
 * it. Start at a processor that depends on the sandbox, so that not all sandboxes share the first
 * ones.
 */
void facts_pin(const struct cell_spec *s)
{
	unsigned want = facts_cpus(s), skip = 0;
	cpu_set_t have, set;
	unsigned here = cpus_here(&have);

	if (!s->limits.cpu_milli || want >= here)
		return;
	for (const char *at = s->id; *at; at++)
		skip = skip * 31 + (unsigned char)*at;
	skip %= here;
	CPU_ZERO(&set);
	for (int c = 0, round = 0; round < 2 * CPU_SETSIZE && want; round++, c++) {
		c %= CPU_SETSIZE;
		if (!CPU_ISSET(c, &have))
			continue;
		if (skip) {
			skip--;
			continue;
		}
		CPU_SET(c, &set);
		want--;
	}
	(void)sched_setaffinity(0, sizeof set, &set);
}

int facts_put(int dir_fd, const char *path, const char *text)
{
	auto_close int fd = FD_NONE;
	char dir[128];

	for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
		(void)snprintf(dir, sizeof dir, "%.*s", (int)(end - path), path);
		if (mkdirat(dir_fd, dir, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	fd = openat(dir_fd, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
	return fd < 0 ? -errno : io_write_all(fd, text, strlen(text));
}

static int put_topology(int sys, unsigned cpus)
{
	const uint32_t all = (uint32_t)((1ull << cpus) - 1);
	int r = 0;

	for (unsigned i = 0; i < cpus && r == 0; i++) {
		const struct {
			const char *name;
			uint32_t value;
			bool mask;
		} rows[] = { { "thread_siblings", 1u << i, true },
			     { "core_siblings", all, true },
			     { "core_id", i, false },
			     { "physical_package_id", 0, false } };

		for (size_t j = 0; j < ARRAY_LEN(rows) && r == 0; j++) {
			char path[96], text[16];

			(void)snprintf(path, sizeof path, CPU_DIR "/cpu%u/topology/%s", i,
				       rows[j].name);
			(void)snprintf(text, sizeof text, rows[j].mask ? "%x\n" : "%u\n",
				       rows[j].value);
			r = facts_put(sys, path, text);
		}
	}
	return r;
}

static int put_cpus(int sys, unsigned cpus)
{
	static const char *const names[] = { CPU_DIR "/online", CPU_DIR "/possible",
					     CPU_DIR "/present" };
	char range[24];
	int r = 0;

	(void)snprintf(range, sizeof range, cpus > 1 ? "0-%u\n" : "0\n", cpus - 1);
	for (size_t i = 0; i < ARRAY_LEN(names) && r == 0; i++)
		r = facts_put(sys, names[i], range);
	return r < 0 || cpus > TOPOLOGY_MAX ? r : put_topology(sys, cpus);
}

static int put_meminfo(int to, uint64_t bytes)
{
	static const char *const empty[] = { "Buffers",	     "Cached",	   "SwapCached",  "Active",
					     "Inactive",     "SwapTotal",  "SwapFree",	  "Dirty",
					     "AnonPages",    "Mapped",	   "Shmem",	  "Slab",
					     "SReclaimable", "SUnreclaim", "Committed_AS" };
	static const char *const full[] = { "MemTotal", "MemFree", "MemAvailable", "CommitLimit" };
	auto_done(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(full) && r == 0; i++)
		r = buf_printf(&b, "%s:%*" PRIu64 " kB\n", full[i], (int)(23 - strlen(full[i])),
			       bytes / 1024);
	for (size_t i = 0; i < ARRAY_LEN(empty) && r == 0; i++)
		r = buf_printf(&b, "%s:%*d kB\n", empty[i], (int)(23 - strlen(empty[i])), 0);
	return r < 0 ? r : facts_put(to, "meminfo", b.data);
}

/* The host's description of its first processors; their numbers and features are no secret. */
static int put_cpuinfo(int to, unsigned cpus)
{
	auto_done(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	int r = io_read_file(AT_FDCWD, "/proc/cpuinfo", &b);
	char *end = b.data;

	if (r < 0 || !b.data)
		return r;
	for (unsigned i = 0; i < cpus && end; i++) {
		end = strstr(end, "\n\n");
		end = end ? end + 2 : NULL;
	}
	if (end)
		*end = '\0';
	return facts_put(to, "cpuinfo", b.data);
}

static int put_stat(int to, unsigned cpus)
{
	auto_done(buf_done) struct buf host = BUF_INIT(TEXT_MAX);
	auto_done(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
	int r = io_read_file(AT_FDCWD, "/proc/stat", &host);
	struct str btime;

	if (r == 0)
		r = buf_add_c(&b, "cpu  0 0 0 0 0 0 0 0 0 0\n");
	for (unsigned i = 0; i < cpus && r == 0; i++)
		r = buf_printf(&b, "cpu%u 0 0 0 0 0 0 0 0 0 0\n", i);
	btime = proc_value(buf_str(&host), "btime ");
	if (r == 0)
		r = buf_printf(&b,
			       "intr 0\nctxt 0\nbtime %.*s\nprocesses 0\nprocs_running 1\n"
			       "procs_blocked 0\nsoftirq 0\n",
			       STR_ARG(btime));
	return r < 0 ? r : facts_put(to, "stat", b.data);
}

/* Mount our files over those of /proc. */
static int cover_proc(struct tree *t)
{
	static const struct mnt_opt opts[] = { { "size", "8m" },
					       { "mode", "0555" },
					       { NULL, NULL } };
	const struct cell_limits *l = &t->spec->limits;
	const char *const names[] = { l->memory ? "meminfo" : NULL, l->cpu_milli ? "cpuinfo" : NULL,
				      l->cpu_milli ? "stat" : NULL, "cgroups" };
	auto_close int facts = mnt_new("tmpfs", opts, FACT & ~(unsigned)RAW_ATTR_RDONLY);
	int r = tree_put(t, facts, "facts");

	if (r == 0 && l->memory)
		r = put_meminfo(facts, l->memory);
	if (r == 0 && l->cpu_milli)
		r = put_cpuinfo(facts, facts_cpus(t->spec));
	if (r == 0 && l->cpu_milli)
		r = put_stat(facts, facts_cpus(t->spec));
	if (r == 0)
		r = facts_controllers(facts);
	for (size_t i = 0; i < ARRAY_LEN(names) && r == 0; i++) {
		auto_close int file = FD_NONE, bind = FD_NONE;

		if (!names[i])
			continue;
		file = openat(facts, names[i], O_PATH | O_CLOEXEC);
		bind = file < 0 ? -errno : mnt_bind(file, FACT, 0, FD_NONE);
		r = bind < 0 ? bind : mnt_attach_at(bind, t->proc_fd, names[i]);
	}
	return r;
}

int tree_facts(struct tree *t, bool grouped)
{
	static const struct mnt_opt opts[] = { { "size", "2m" },
					       { "mode", "0555" },
					       { NULL, NULL } };
	mode_t mask = umask(0); /* the caller's umask may be anything */
	int r;

	(void)snprintf(t->what, sizeof t->what, "make /sys");
	t->sys_fd = mnt_new("tmpfs", opts, FACT & ~(unsigned)RAW_ATTR_RDONLY);
	r = tree_put(t, t->sys_fd, "sys");
	if (r == 0)
		r = put_cpus(t->sys_fd, facts_cpus(t->spec));
	if (r == 0 && facts_limited(t->spec))
		r = facts_groups(t, t->sys_fd, grouped);
	if (r == 0)
		r = mnt_make_readonly(t->sys_fd);
	if (r == 0 && facts_limited(t->spec)) {
		(void)snprintf(t->what, sizeof t->what, "show the limits in /proc");
		r = cover_proc(t);
	}
	(void)umask(mask);
	return r;
}

int facts_expect(struct fixed_mount *out)
{
	/* Group names depend on the warden's position, so any root is allowed. */
	static const struct {
		const char *path, *type, *root;
	} all[] = {
		{ "/proc/meminfo", "tmpfs", "/meminfo" },
		{ "/proc/cpuinfo", "tmpfs", "/cpuinfo" },
		{ "/proc/stat", "tmpfs", "/stat" },
		{ "/proc/cgroups", "tmpfs", "/cgroups" },
		{ "/sys/fs/cgroup", "cgroup2", NULL },
		{ "/sys/fs/cgroup/memory", "cgroup", NULL },
		{ "/sys/fs/cgroup/memory", "tmpfs", "/view/memory" },
		{ "/sys/fs/cgroup/cpu", "cgroup", NULL },
		{ "/sys/fs/cgroup/cpu", "tmpfs", "/view/cpu" },
		{ "/sys/fs/cgroup/cpuacct", "cgroup", NULL },
		{ "/sys/fs/cgroup/cpuacct", "tmpfs", "/view/cpuacct" },
		{ "/sys/fs/cgroup/cpuset", "cgroup", NULL },
		{ "/sys/fs/cgroup/cpuset", "tmpfs", "/view/cpuset" },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		out[i] = (struct fixed_mount){ .path = all[i].path,
					       .type = all[i].type,
					       .root = all[i].root,
					       .attrs = FACT,
					       .maybe = true };
	return (int)ARRAY_LEN(all);
}
