/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-net: both ends of the gateway's benchmark.
 *
 *   serve ADDR PORT             request 1: echo the byte; request 2 and 8 bytes: send that many
 * bytes connect ADDR PORT N K       N connections with one exchange each, K at a time: median and
 * 99th percentile in microseconds, connections per second get ADDR PORT BYTES         one download:
 * MB/s hold ADDR PORT N            opens N connections, reports it, and waits for the end of its
 * input
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 256 * 1024 };

static char chunk[CHUNK];

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };

	must(inet_pton(AF_INET, ip, &a.sin_addr) == 1, ip);
	return a;
}

static int dial(const struct sockaddr_in *a)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	must(fd >= 0, "socket");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	must(connect(fd, (const void *)a, sizeof *a) == 0, "connect");
	return fd;
}

/* One process per download; exchanges are answered at once. */
static void serve_one(int fd)
{
	uint64_t n = 0;
	char c;

	while (read(fd, &c, 1) == 1) {
		if (c == 1) {
			if (write(fd, &c, 1) != 1)
				break;
			continue;
		}
		if (recv(fd, &n, sizeof n, MSG_WAITALL) != sizeof n || fork() != 0)
			break;
		while (n > 0) {
			ssize_t k = write(fd, chunk, n < CHUNK ? (size_t)n : CHUNK);

			if (k <= 0)
				break;
			n -= (uint64_t)k;
		}
		_exit(0);
	}
}

static __attribute__((noreturn)) void serve(const struct sockaddr_in *a)
{
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1,
	    ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = l };

	(void)signal(SIGCHLD, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	must(bind(l, (const void *)a, sizeof *a) == 0 && listen(l, 1024) == 0, "listen");
	must(epoll_ctl(ep, EPOLL_CTL_ADD, l, &ev) == 0, "epoll");
	puts("ready");
	(void)fflush(stdout);
	for (;;) {
		if (epoll_wait(ep, &ev, 1, -1) != 1)
			continue;
		if (ev.data.fd == l) {
			int fd = accept4(l, NULL, NULL, SOCK_CLOEXEC);

			ev = (struct epoll_event){ .events = EPOLLIN, .data.fd = fd };
			(void)epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
			continue;
		}
		if (recv(ev.data.fd, chunk, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && chunk[0] == 1) {
			(void)recv(ev.data.fd, chunk, 1, 0);
			(void)send(ev.data.fd, "\1", 1, MSG_NOSIGNAL);
			continue;
		}
		if (chunk[0] == 2)
			serve_one(ev.data.fd);
		(void)close(ev.data.fd);
		chunk[0] = 0;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int connects(const struct sockaddr_in *a, int n, int at_once)
{
	double *took = calloc((size_t)n, sizeof *took), begin = now_us(), all;
	int *fds = calloc((size_t)at_once, sizeof *fds);

	for (int i = 0; i < n; i += at_once) {
		for (int k = 0; k < at_once && i + k < n; k++) {
			took[i + k] = now_us();
			fds[k] = dial(a);
			must(write(fds[k], "\1", 1) == 1, "write");
		}
		for (int k = 0; k < at_once && i + k < n; k++) {
			char c;

			must(read(fds[k], &c, 1) == 1, "read");
			took[i + k] = now_us() - took[i + k];
			(void)close(fds[k]);
		}
	}
	all = now_us() - begin;
	qsort(took, (size_t)n, sizeof *took, compare);
	printf("%.1f %.1f %.0f\n", took[n / 2], took[n - 1 - n / 100], n / (all / 1e6));
	return 0;
}

static int get(const struct sockaddr_in *a, uint64_t n)
{
	double begin = now_us();
	uint64_t got = 0;
	int fd = dial(a);
	char ask[9] = "\2";

	memcpy(ask + 1, &n, sizeof n);
	must(write(fd, ask, sizeof ask) == sizeof ask, "write");
	while (got < n) {
		ssize_t k = read(fd, chunk, CHUNK);

		must(k > 0, "read");
		got += (uint64_t)k;
	}
	printf("%.1f\n", (double)n / (now_us() - begin));
	return 0;
}

static int hold(const struct sockaddr_in *a, int n)
{
	char c;

	for (int i = 0; i < n; i++) {
		int fd = dial(a);

		must(write(fd, "\1", 1) == 1 && read(fd, &c, 1) == 1, "exchange");
	}
	puts("open");
	(void)fflush(stdout);
	return read(0, &c, 1) < 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a;

	if (argc < 4)
		return 2;
	a = address(argv[2], argv[3]);
	if (strcmp(argv[1], "serve") == 0)
		serve(&a);
	if (strcmp(argv[1], "connect") == 0 && argc == 6)
		return connects(&a, atoi(argv[4]), atoi(argv[5]));
	if (strcmp(argv[1], "get") == 0 && argc == 5)
		return get(&a, strtoull(argv[4], NULL, 10));
	return strcmp(argv[1], "hold") == 0 && argc == 5 ? hold(&a, atoi(argv[4])) : 2;
}
