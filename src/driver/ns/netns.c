/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/ns/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { STACK = 16384 };

static int lo_up(void)
{
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	if (fd < 0)
		return -errno;
	return ioctl(fd, SIOCSIFFLAGS, &ifr) < 0 ? -errno : 0;
}

/*
 * Runs in the caller's memory and with its descriptors, at the same time. So it makes only system
 * calls, which change nothing but errno, and only on failure.
 */
static int make(void *arg)
{
	struct netns *n = arg;
	int fd, r;

	if (unshare(CLONE_NEWNET) < 0) {
		n->made = -errno;
		return 1;
	}
	r = lo_up();
	fd = r < 0 ? r : open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	n->made = fd < 0 && r == 0 ? -errno : fd;
	return 0;
}

int netns_begin(struct netns *n)
{
	static char stack[STACK] __attribute__((aligned(16)));
	pid_t pid;

	*n = (struct netns){ .made = -ECHILD };
	pid = clone(make, stack + sizeof stack, CLONE_VM | CLONE_FILES | SIGCHLD, n);
	if (pid < 0)
		return -errno;
	n->helper = pid;
	return 0;
}

int netns_take(struct netns *n)
{
	if (n->helper <= 0)
		return -ECHILD;
	while (waitpid(n->helper, NULL, 0) < 0 && errno == EINTR)
		;
	n->helper = 0;
	return n->made;
}
