/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/io.h"
#include "sys/ns/userns.h"
#include "sys/process/raw.h"

/* 0, or how the child failed. */
static int await_end(pid_t pid, int pidfd, int timeout_ms)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int status = 0, r = pidfd < 0 ? 1 : poll(&p, 1, timeout_ms);

	/* Our own child, not yet reaped: the pid cannot belong to another process. */
	if (r <= 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (r <= 0)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? 0 : -EIO;
}

static int run_child(void (*fn)(void *, const void *), void *shared, const void *arg,
		     int timeout_ms)
{
	auto_close int pidfd = FD_NONE;
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
			fn(shared, arg);
		_exit(0);
	}
	pidfd = raw_pidfd_open(pid);
	return await_end(pid, pidfd, timeout_ms);
}

int probe_in_child(void (*fn)(void *result, const void *arg), void *result, size_t size,
		   const void *arg, int timeout_ms)
{
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r;

	if (shared == MAP_FAILED)
		return -errno;
	memcpy(shared, result, size);
	r = run_child(fn, shared, arg, timeout_ms);
	memcpy(result, shared, size);
	(void)munmap(shared, size);
	return r;
}

int probe_enter_userns(unsigned inside)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	auto_close int proc = FD_NONE;

	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return proc < 0 ? -errno : userns_map_self(proc, inside, uid, gid);
}

void probe_text(const char *path, char *out, size_t size)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	out[n < 0 ? 0 : n] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

long probe_number(const char *path)
{
	char text[32], *end;
	long v;

	probe_text(path, text, sizeof text);
	v = strtol(text, &end, 10);
	return end == text ? -1 : v;
}

bool probe_file(const char *path, struct buf *b)
{
	return io_read_file(AT_FDCWD, path, b) == 0;
}

struct str probe_until(struct str *rest, char c)
{
	const char *at = rest->n ? memchr(rest->p, c, rest->n) : NULL;
	struct str part = { rest->p, at ? (size_t)(at - rest->p) : rest->n };
	size_t used = part.n + (at ? 1 : 0);

	*rest = rest->n ? (struct str){ rest->p + used, rest->n - used } : STR_NONE;
	return part;
}

bool probe_line(struct str *rest, struct str *ret)
{
	if (rest->n == 0)
		return false;
	*ret = probe_until(rest, '\n');
	return true;
}

bool probe_has_word(struct str text, const char *sep, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= text.n; i++) {
		bool begins = i == 0 || strchr(sep, text.p[i - 1]);
		bool ends = i + n == text.n || strchr(sep, text.p[i + n]);

		if (begins && ends && memcmp(text.p + i, word, n) == 0)
			return true;
	}
	return false;
}
