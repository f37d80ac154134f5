/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second wall. Somebody on the host gives a directory of the host away, to a socket that we
 * listen on; everyone may do everything with it, as far as its permissions say.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

enum { ACCESS_NONE = 3 }; /* open(2): for neither; musl's O_ACCMODE has more bits */

/* The directory, or the check has no sense. */
static int given(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char byte, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space
	};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), peer, got = -1;

	(void)snprintf(a.sun_path, sizeof a.sun_path, "%s", param("GIVER"));
	(void)unlink(a.sun_path);
	if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || chmod(a.sun_path, 0777) < 0 ||
	    listen(fd, 1) < 0)
		_exit(UNSET);
	peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	(void)unlink(a.sun_path);
	if (peer < 0 || recvmsg(peer, &m, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m))
		_exit(UNSET);
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
	return got;
}

/* a: flags, mode */
static int opened(const struct check *c)
{
	return result(openat(given(), c->path, (int)c->a[0] | O_CLOEXEC, (mode_t)c->a[1]));
}

static int opened_after_chdir(const struct check *c)
{
	return fchdir(given()) < 0 ? -errno : result(open(c->path, O_RDONLY | O_CLOEXEC));
}

static int opened_by_proc(const struct check *c)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s", given(), c->path);
	return result(open(path, O_RDONLY | O_CLOEXEC));
}

static int executed(const struct check *c)
{
	char *argv[] = { "true", NULL };
	int dir = given();
	char *envp[] = { NULL };

	/* Ends with 0 where it could. */
	(void)syscall(SYS_execveat, dir, c->path, argv, envp, 0);
	return -errno;
}

/* Each leaves the directory as it was. */
static int changed(const struct check *c)
{
	int dir = given(), r;

	switch (c->a[0]) {
	case 0:
		r = result(mkdirat(dir, "new", 0700));
		(void)unlinkat(dir, "new", AT_REMOVEDIR);
		return r;
	case 1:
		r = result(symlinkat("secret", dir, "new"));
		break;
	case 2:
		r = result(mkfifoat(dir, "new", 0600));
		break;
	case 3:
		r = result(linkat(dir, "secret", dir, "new", 0));
		break;
	case 4:
		r = result(openat(dir, "new", O_CREAT | O_EXCL | ACCESS_NONE | O_CLOEXEC, 0600));
		break;
	case 5: /* those of the host's */
		return result(unlinkat(dir, "spare", 0));
	case 6:
		return result(unlinkat(dir, "empty", AT_REMOVEDIR));
	default:
		if (renameat(dir, "secret", dir, "new") < 0)
			return -errno;
		return result(renameat(dir, "new", dir, "secret"));
	}
	(void)unlinkat(dir, "new", 0);
	return r;
}

/* Opened for neither reading nor writing, a device can still be asked. */
static int device_asked(const struct check *c)
{
	int fd = openat(given(), c->path, ACCESS_NONE | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -errno : result(ioctl(fd, TCGETS, &(char[128]){ 0 }));
}

static int truncated(const struct check *c)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s", given(), c->path);
	return result(truncate(path, 6)); /* as long as it is */
}

static int bound(const struct check *c)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int dir = given(), fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	(void)snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/%s", dir, c->path);
	r = result(bind(fd, (struct sockaddr *)&a, sizeof a));
	(void)unlinkat(dir, c->path, 0);
	return r;
}

#define WALL "EACCES|EXDEV"

/* clang-format off */
static const struct check checks[] = {
	{ "leak-read", "reading through it", opened, PLAIN, .dev = WALL, .a = { O_RDONLY }, .path = "secret" },
	{ "leak-write", "writing through it", opened, PLAIN, .dev = WALL, .a = { O_WRONLY }, .path = "secret" },
	{ "leak-list", "listing it", opened, PLAIN, .dev = WALL, .a = { O_RDONLY | O_DIRECTORY }, .path = "." },
	{ "leak-up", "leaving it upwards", opened, PLAIN, .dev = WALL, .a = { O_RDONLY | O_DIRECTORY }, .path = "../.." },
	{ "leak-etc", "the host's files from there", opened, PLAIN, .dev = WALL, .a = { O_RDONLY }, .path = "../../../../../../etc/passwd" },
	{ "leak-temporary", "a file without a name in it", opened, PLAIN, .lacks = "EOPNOTSUPP", .dev = WALL, .a = { O_TMPFILE | O_RDWR, 0600 }, .path = "." },
	{ "leak-chdir", "as the working directory", opened_after_chdir, PLAIN, .dev = WALL, .path = "secret" },
	{ "leak-proc", "by its name in /proc", opened_by_proc, PLAIN, .dev = WALL, .path = "secret" },
	{ "leak-execute", "a program in it", executed, PLAIN, .dev = WALL, .path = "true" },
	{ "leak-truncate", "cutting a file in it", truncated, PLAIN, .dev = WALL, .path = "secret" },
	{ "leak-mkdir", "a directory in it", changed, PLAIN, .dev = WALL, .a = { 0 } },
	{ "leak-symlink", "a link in it", changed, PLAIN, .dev = WALL, .a = { 1 } },
	{ "leak-fifo", "a pipe in it", changed, PLAIN, .dev = WALL, .a = { 2 } },
	{ "leak-link", "another name in it", changed, PLAIN, .lacks = "EPERM", .dev = WALL "|EPERM", .a = { 3 } },
	{ "leak-create", "a file in it", changed, PLAIN, .dev = WALL, .a = { 4 } },
	{ "leak-unlink", "a file removed from it", changed, PLAIN, .dev = WALL, .a = { 5 } },
	{ "leak-rmdir", "a directory removed from it", changed, PLAIN, .dev = WALL, .a = { 6 } },
	{ "leak-rename", "renaming in it", changed, PLAIN, .dev = WALL, .a = { 7 } },
	{ "leak-device", "asking a device of the host", device_asked, PLAIN, .allowed = "ENOTTY", .dev = WALL, .path = "../../../../../../dev/null" },
	{ "leak-bind", "a socket in it", bound, PLAIN, .dev = WALL, .path = "new" },
};
/* clang-format on */

const struct topic leak_topic = { "leak", checks, sizeof checks / sizeof checks[0] };
