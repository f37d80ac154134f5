/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: contain-probe list
 *        contain-probe run [KEY=VALUE...]
 *        contain-probe plain|ns|root [KEY=VALUE...]
 *        contain-probe bare INIT_PID=N [KEY=VALUE...]
 *
 * `list` prints the table. `run` tries every row. The name of a setting tries only the rows whose
 * control is that setting: outside a sandbox, process 1 of a row for `ns` must never be the host's.
 * `bare` tries the rows with an outcome for it, in the namespaces of a sandbox with all rights over
 * the inner ones. All but `list` print `NAME NUMBER`: 0 got through, > 0 an error, < 0 a signal.
 * Without arguments the probe does nothing, with success.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { SECONDS = 20 };

static const struct topic *const topics[] = {
	&calls_topic, &mounts_topic,  &spaces_topic,	&sockets_topic, &net_topic,  &proc_topic,
	&sys_topic,   &devices_topic, &processes_topic, &reach_topic,	&leak_topic, &self_topic,
};
#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

static char **params;

const char *param(const char *key)
{
	size_t n = strlen(key);

	for (char **p = params; *p; p++)
		if (strncmp(*p, key, n) == 0 && (*p)[n] == '=')
			return *p + n + 1;
	_exit(UNSET);
}

long param_number(const char *key)
{
	return strtol(param(key), NULL, 10);
}

int result(long r)
{
	return r < 0 ? -errno : 0;
}

int run_call(const struct check *c)
{
	return result(syscall(c->nr, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]));
}

/* A cover is an empty file of a tmpfs. It can be opened, and nothing comes of it. */
static int opened(const char *path, int flags)
{
	int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	return S_ISREG(st.st_mode) && st.st_size == 0 && fs.f_type == TMPFS_MAGIC ? -ENODATA : 0;
}

int run_open(const struct check *c)
{
	return opened(c->path, O_RDONLY);
}

int run_write_open(const struct check *c)
{
	return opened(c->path, O_WRONLY);
}

int run_read(const struct check *c)
{
	int fd = open(c->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char some[8]; /* the least that some files give */
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, some, sizeof some);
	return n < 0 ? -errno : n == 0 ? -ENODATA : 0;
}

void own_mounts(void)
{
	if (unshare(CLONE_NEWNS) == 0)
		(void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

void own_tmp(void)
{
	own_mounts();
	(void)mount("tmp", "/tmp", "tmpfs", 0, NULL);
	if (chdir("/tmp") < 0)
		_exit(UNSET);
}

/* Each in a process of its own, whatever it does to itself. */
static int attempt(const struct check *c)
{
	int st = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(SECONDS);
		_exit(-c->run(c));
	}
	if (pid < 0 || waitpid(pid, &st, 0) < 0)
		return UNSET;
	return WIFSIGNALED(st) ? -WTERMSIG(st) : WEXITSTATUS(st);
}

/*
 * Into the sandbox from outside, as no command ever comes there: neither filter nor Landlock, and
 * every capability in the user namespace in which commands run.
 */
static int enter(void)
{
	static const char *const names[] = { "net", "ipc", "uts", "cgroup", "pid", "mnt" };
	int fds[COUNT(names)], user, outer, root;
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%s/ns/user", param("INIT_PID"));
	user = open(path, O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof path, "/proc/%s/root", param("INIT_PID"));
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < COUNT(names); i++) {
		(void)snprintf(path, sizeof path, "/proc/%s/ns/%s", param("INIT_PID"), names[i]);
		fds[i] = open(path, O_RDONLY | O_CLOEXEC);
	}
	/* Who is not root has rights over the other namespaces only from within the outer one. */
	outer = user < 0 ? -1 : ioctl(user, NS_GET_PARENT);
	if (outer < 0 || (geteuid() != 0 && setns(outer, CLONE_NEWUSER) < 0))
		return -errno;
	for (int i = 0; i < COUNT(names); i++)
		if (setns(fds[i], 0) < 0)
			return -errno;
	if (setns(user, CLONE_NEWUSER) < 0)
		return -errno;
	for (int i = 0; i < COUNT(names); i++)
		(void)close(fds[i]);
	(void)close(user);
	(void)close(outer);
	(void)setgroups(0, NULL);
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		(void)0; /* it has one uid, and all the rights nevertheless */
	if (fchdir(root) < 0 || chroot(".") < 0)
		return -errno;
	return result(close(root));
}

static const char * or (const char *value, const char *other)
{
	return value ? value : other;
}

static const char *const settings[] = { "plain", "ns", "root" };

static void list(const struct topic *g, const struct check *c)
{
	const char *dev = or (c->dev, "EPERM");

	printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c->name, g->name, c->tries,
	       settings[c->control], or (c->allowed, "ok"), or (c->lacks, "-"), dev,
	       or (c->root, dev), or (c->locked, dev), or (c->bare, "-"));
}

static bool is_asked(const char *what, const struct check *c)
{
	if (strcmp(what, "run") == 0)
		return true;
	return strcmp(what, "bare") == 0 ? c->bare != NULL
					 : strcmp(what, settings[c->control]) == 0;
}

static void each(const char *what)
{
	for (int i = 0; i < COUNT(topics); i++) {
		for (int j = 0; j < topics[i]->n; j++) {
			const struct check *c = &topics[i]->checks[j];

			if (strcmp(what, "list") == 0)
				list(topics[i], c);
			else if (is_asked(what, c))
				printf("%s %d\n", c->name, attempt(c));
			(void)fflush(stdout);
		}
	}
}

int main(int argc, char **argv)
{
	int err = 0;

	if (argc < 2)
		return 0;
	params = argv + 2;
	if (strcmp(argv[1], "bare") == 0)
		err = enter();
	if (err < 0) {
		(void)fprintf(stderr, "cannot enter: %s\n", strerror(-err));
		return 1;
	}
	each(argv[1]);
	return 0;
}
