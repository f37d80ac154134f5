/* SPDX-License-Identifier: Apache-2.0 */
/* bench-whose N: the median time in microseconds to find the owner of one of N open connections. */
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "sys/net/netlink.h"
#include "sys/net/sockdiag.h"

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static struct sockdiag_end end_of(int fd, int (*name)(int, struct sockaddr *, socklen_t *))
{
	struct sockaddr_in a = { 0 };
	socklen_t n = sizeof a;
	struct sockdiag_end e = { .family = AF_INET };

	must(name(fd, (void *)&a, &n) == 0, "name of a socket");
	e.port = ntohs(a.sin_port);
	memcpy(e.addr, &a.sin_addr, 4);
	return e;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 500, diag = netlink_open(NETLINK_SOCK_DIAG);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof a;
	uint64_t *took = calloc((size_t)n, sizeof *took), median;

	must(diag >= 0 && took && bind(l, (void *)&a, size) == 0 && listen(l, n) == 0 &&
		     getsockname(l, (void *)&a, &size) == 0,
	     "begin");
	for (int i = 0; i < n; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct sockdiag_end local, remote;
		struct sockdiag_owner o;

		must(connect(fd, (void *)&a, sizeof a) == 0, "connect");
		local = end_of(fd, getsockname);
		remote = end_of(fd, getpeername);
		took[i] = clock_mono_ns();
		must(sockdiag_find(diag, IPPROTO_TCP, &local, &remote, &o) == 0 && o.inode, "find");
		took[i] = clock_mono_ns() - took[i];
	}
	qsort(took, (size_t)n, sizeof *took, compare);
	median = took[n / 2];
	printf("%.2f\n", (double)median / (double)NS_PER_US);
	return 0;
}
