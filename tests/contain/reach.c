/* SPDX-License-Identifier: Apache-2.0 */
/* Things that the suite has laid out on the host, and descriptors that it let leak. */
#include <fcntl.h>
#include <mqueue.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

/* c->path is the parameter that has the path. */
static int opened(const struct check *c)
{
	return result(open(param(c->path), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

static int connected(const struct check *c)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const char *name = param(c->path);
	int fd = socket(AF_UNIX, (int)c->a[0] | SOCK_CLOEXEC, 0);
	size_t at = (size_t)c->a[1]; /* 1: an abstract name */

	if (fd < 0)
		return -errno;
	(void)snprintf(a.sun_path + at, sizeof a.sun_path - at, "%s", name);
	return result(
		connect(fd, (struct sockaddr *)&a,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + at + strlen(name))));
}

static int by_key(const struct check *c)
{
	key_t key = (key_t)param_number("IPC_KEY");

	switch (c->a[0]) {
	case 0:
		return result(shmget(key, 0, 0));
	case 1:
		return result(semget(key, 0, 0));
	default:
		return result(msgget(key, 0));
	}
}

static int queue(const struct check *c)
{
	(void)c;
	return result(mq_open(param("QUEUE"), O_RDONLY | O_CLOEXEC));
}

static int leaked(const struct check *c)
{
	return result(fcntl((int)param_number(c->path), F_GETFD));
}

static int any_descriptor(const struct check *c)
{
	(void)c;
	for (int fd = 3; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 0;
	return -EBADF;
}

#define AWAY "ENOENT|EACCES|EPERM"

/* clang-format off */
static const struct check checks[] = {
	{ "file-tmp", "a file in the host's /tmp", opened, PLAIN, .dev = AWAY, .bare = AWAY, .path = "HOST_FILE" },
	{ "file-var-tmp", "a file in the host's /var/tmp", opened, PLAIN, .dev = AWAY, .bare = AWAY, .path = "HOST_VAR_FILE" },
	{ "file-shm", "a file in the host's /dev/shm", opened, PLAIN, .dev = AWAY, .bare = AWAY, .path = "HOST_SHM_FILE" },
	{ "file-state", "the state directory", opened, PLAIN, .dev = AWAY, .bare = AWAY, .path = "STATE" },
	{ "file-catalog", "the catalog", opened, PLAIN, .dev = AWAY, .bare = AWAY, .path = "CATALOG" },
	{ "file-upper", "the sandbox's own layer, from behind", opened, PLAIN, .dev = AWAY, .bare = AWAY, .path = "SANDBOXES" },
	{ "file-cwd", "the directory where cay was started", opened, PLAIN, .dev = AWAY, .bare = AWAY, .path = "CWD" },
	{ "abstract-stream", "a socket of the host without a path", connected, PLAIN, .dev = "ECONNREFUSED|EPERM", .bare = "ECONNREFUSED", .a = { SOCK_STREAM, 1 }, .path = "ABSTRACT" },
	{ "abstract-datagram", "a datagram socket of the host without a path", connected, PLAIN, .dev = "ECONNREFUSED|EPERM", .bare = "ECONNREFUSED", .a = { SOCK_DGRAM, 1 }, .path = "ABSTRACT_DGRAM" },
	{ "path-stream", "a socket of the host", connected, PLAIN, .dev = AWAY, .bare = AWAY, .a = { SOCK_STREAM }, .path = "SOCKET" },
	{ "path-control", "the socket of the warden", connected, PLAIN, .dev = AWAY, .bare = AWAY, .a = { SOCK_STREAM }, .path = "CONTROL" },
	{ "shm-key", "shared memory of the host", by_key, PLAIN, .lacks = "ENOSYS", .dev = "ENOENT", .bare = "ENOENT", .a = { 0 } },
	{ "sem-key", "semaphores of the host", by_key, PLAIN, .lacks = "ENOSYS", .dev = "ENOENT", .bare = "ENOENT", .a = { 1 } },
	{ "msg-key", "messages of the host", by_key, PLAIN, .lacks = "ENOSYS", .dev = "ENOENT", .bare = "ENOENT", .a = { 2 } },
	{ "queue", "a message queue of the host", queue, PLAIN, .lacks = "ENOSYS", .dev = "ENOENT", .bare = "ENOENT" },
	{ "fd-directory", "a directory that leaked into cay", leaked, PLAIN, .dev = "EBADF", .path = "FD_DIRECTORY" },
	{ "fd-file", "a file that leaked into cay", leaked, PLAIN, .dev = "EBADF", .path = "FD_FILE" },
	{ "fd-socket", "a socket that leaked into cay", leaked, PLAIN, .dev = "EBADF", .path = "FD_SOCKET" },
	{ "fd-memory", "memory that leaked into cay", leaked, PLAIN, .dev = "EBADF", .path = "FD_MEMORY" },
	{ "fd-any", "any descriptor at all", any_descriptor, PLAIN, .dev = "EBADF" },
};
/* clang-format on */

const struct topic reach_topic = { "reach", checks, sizeof checks / sizeof checks[0] };
