/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/sys of a sandbox. Most settings belong to the whole machine, and some count what everyone
 * does (fs/file-nr, fs/aio-nr, kernel/pty/nr). Through such a number, one sandbox could signal
 * another. So a sandbox gets copies of settings that programs read and that only the host changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/random.h"
#include "driver/ns/procfs.h"
#include "sys/ns/mnt.h"
#include "sys/process/raw.h"

enum {
	KNOBS_RO = RAW_ATTR_RDONLY | RAW_ATTR_NOSUID | RAW_ATTR_NODEV | RAW_ATTR_NOEXEC,
	VALUE_MAX = 512,
	NAMES = 12,
};

#define KNOBS "/proc/sys"

/* Copied when the sandbox starts. A directory comes before those below it. */
static const struct {
	const char *dir;
	const char *names[NAMES];
} copied[] = {
	{ "crypto", { "fips_enabled" } },
	{ "fs", { "file-max", "nr_open", "pipe-max-size" } },
	{ "fs/inotify", { "max_queued_events", "max_user_instances", "max_user_watches" } },
	{ "kernel",
	  { "cap_last_cap", "ngroups_max", "osrelease", "ostype", "overflowgid", "overflowuid",
	    "pid_max", "shmmax", "threads-max", "version" } },
	{ "kernel/random", { NULL } },
	{ "kernel/seccomp", { "actions_avail" } },
	{ "kernel/yama", { "ptrace_scope" } },
	{ "vm", { "max_map_count", "mmap_min_addr", "overcommit_memory", "swappiness" } },
};

/* Bound: the kernel shows each reader the value of its own namespace, or a new value each time. */
static const struct {
	const char *path;
	bool is_dir;
} bound[] = {
	{ KNOBS "/kernel/hostname", false },
	{ KNOBS "/kernel/random/uuid", false },
	{ KNOBS "/net", true },
	{ KNOBS "/user", true },
};

/* The name of bound[i] below /proc/sys. */
static const char *bound_name(size_t i)
{
	return bound[i].path + sizeof KNOBS;
}

static int put_value(int dir, const char *name, const char *text, size_t n)
{
	auto_close int fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);

	if (fd < 0)
		return -errno;
	return n ? io_write_all(fd, text, n) : 0;
}

/* A setting that this kernel lacks, or that we may not read, is missing inside. */
static int copy_value(int from, int to, const char *name)
{
	auto_close int fd = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[VALUE_MAX];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);

	return n <= 0 ? 0 : put_value(to, name, text, (size_t)n);
}

static int new_dir(int to, const char *name)
{
	int fd;

	if (mkdirat(to, name, 0555) < 0)
		return -errno;
	fd = openat(to, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int copy_dir(int from, int to, size_t i)
{
	auto_close int source =
		openat(from, copied[i].dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int target = FD_NONE;
	int r = 0;

	if (source < 0)
		return 0;
	target = new_dir(to, copied[i].dir);
	if (target < 0)
		return target;
	for (size_t j = 0; j < NAMES && copied[i].names[j] && r == 0; j++)
		r = copy_value(source, target, copied[i].names[j]);
	return r;
}

/* The host's boot id would tell two sandboxes that they run on one host. */
static int make_boot_id(int to)
{
	unsigned char b[16];
	char text[40];
	int r = random_bytes(b, sizeof b), n = 0;

	if (r < 0)
		return r;
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* RFC 4122: version 4 */
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof b; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%02x",
			      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
	text[n++] = '\n';
	return put_value(to, "kernel/random/boot_id", text, (size_t)n);
}

static int make_points(int from, int to)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(bound) && r == 0; i++) {
		const char *name = bound_name(i);
		auto_close int dir = FD_NONE;

		if (faccessat(from, name, F_OK, 0) < 0)
			continue;
		if (bound[i].is_dir)
			r = dir = new_dir(to, name);
		else
			r = put_value(to, name, NULL, 0);
		r = r < 0 ? r : 0;
	}
	return r;
}

/* to: the new /proc/sys, still writable. */
static int fill(int from, int to)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(copied) && r == 0; i++)
		r = copy_dir(from, to, i);
	if (r == 0)
		r = make_boot_id(to);
	return r < 0 ? r : make_points(from, to);
}

int knobs_new(struct tree *t, int from)
{
	static const struct mnt_opt opts[] = { { "size", "512k" },
					       { "mode", "0555" },
					       { NULL, NULL } };
	auto_close int fd = mnt_new("tmpfs", opts, KNOBS_RO & ~(unsigned)RAW_ATTR_RDONLY);
	mode_t mask =
		umask(0); /* the caller's umask may be anything, and a chmod per file takes time */
	int r = fd < 0 ? fd : fill(from, fd);

	(void)umask(mask);
	(void)snprintf(t->what, sizeof t->what, "make /proc/sys");
	if (r == 0)
		r = mnt_make_readonly(fd);
	return r < 0 ? r : TAKE_FD(fd);
}

int knobs_bind(struct tree *t)
{
	auto_close int on = openat(t->proc_fd, "sys", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (on < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(bound); i++) {
		auto_close int source = openat(t->knobs_fd, bound_name(i), O_PATH | O_CLOEXEC);
		auto_close int bind = FD_NONE;
		int r;

		if (source < 0 && errno == ENOENT)
			continue;
		bind = source < 0 ? -errno : mnt_bind(source, KNOBS_RO, 0, FD_NONE);
		r = bind < 0 ? bind : mnt_attach_at(bind, on, bound_name(i));
		if (r < 0) {
			(void)snprintf(t->what, sizeof t->what, "bind %s", bound[i].path);
			return r;
		}
	}
	return 0;
}

int knobs_expect(struct fixed_mount *out)
{
	int n = 0;

	out[n++] = (struct fixed_mount){
		.path = KNOBS, .type = "tmpfs", .root = "/", .attrs = KNOBS_RO, .optional = true
	};
	for (size_t i = 0; i < ARRAY_LEN(bound); i++)
		out[n++] = (struct fixed_mount){ .path = bound[i].path,
						 .type = "proc",
						 .root = bound[i].path + strlen("/proc"),
						 .attrs = KNOBS_RO,
						 .optional = true };
	return n;
}
