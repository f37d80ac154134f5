/* SPDX-License-Identifier: Apache-2.0 */
#include "init/rlimits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum {
	CORE = 1, /* with 0 the kernel would still start the host's helper if core_pattern is a pipe
		   */
	FILES = 65536,	     /* enough for any build, few enough to close() in a loop */
	LOCKED = 8 << 20,    /* the kernel's own default */
	QUEUES = 800 * 1024, /* POSIX message queues; also the kernel's default */
	SIGNALS = 16 * 1024,
};

#define OOM_INIT    "500"
#define OOM_COMMAND "700"

static int oom_fd = FD_NONE;
static rlim_t creators_files = RLIM_INFINITY; /* soft limit */

void rlimits_begin(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	creators_files = r.rlim_cur;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

/* exact: set the requested value; otherwise keep the creator's lower soft limit. */
static int lower_files(uint64_t to, bool exact)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return -errno;
	if (getuid() != 0) /* then there is no other root inside either: continue without it */
		r.rlim_max = limit_files_inside(r.rlim_max);
	if (r.rlim_max > to)
		r.rlim_max = to;
	r.rlim_cur = exact || creators_files > r.rlim_max ? r.rlim_max : creators_files;
	return setrlimit(RLIMIT_NOFILE, &r) < 0 ? -errno : 0;
}

static int lower(int which, uint64_t to)
{
	struct rlimit r;

	if (getrlimit(which, &r) < 0)
		return -errno;
	if (r.rlim_max > to)
		r.rlim_max = to;
	r.rlim_cur = r.rlim_max;
	return setrlimit(which, &r) < 0 ? -errno : 0;
}

int rlimits_apply(const struct request *r, const char **what)
{
	const struct {
		int which;
		uint64_t to;
		const char *name;
	} rows[] = {
		{ RLIMIT_CORE, CORE, "core files" },
		{ RLIMIT_RTPRIO, 0, "real-time priority" },
		{ RLIMIT_NICE, 0, "nice values" },
		{ RLIMIT_MEMLOCK, LOCKED, "locked memory" },
		{ RLIMIT_MSGQUEUE, QUEUES, "message queues" },
		{ RLIMIT_SIGPENDING, SIGNALS, "pending signals" },
		{ RLIMIT_FSIZE, r->disk ? r->disk : RLIM_INFINITY, "the size of a file" },
		{ RLIMIT_NPROC, r->pids ? r->pids : RLIM_INFINITY, "processes" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int err = lower(rows[i].which, rows[i].to);

		*what = rows[i].name;
		if (err < 0)
			return err;
	}
	*what = "open files";
	return lower_files(r->files ? r->files : FILES, r->files);
}

static void oom_write(const char *value)
{
	if (oom_fd >= 0)
		(void)pwrite(oom_fd, value, strlen(value), 0);
}

void oom_order_begin(void)
{
	oom_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	oom_write(OOM_INIT);
}

void oom_order_command(void)
{
	oom_write(OOM_COMMAND);
}

void oom_order_init(void)
{
	oom_write(OOM_INIT);
}
