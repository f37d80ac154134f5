/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host/serve_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { BACKLOG = 1024, STATE_PATH = 4096 };

static bool is_other_file(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode);
}

/* True if a server answers there. Removes the socket of a dead server. */
static bool socket_is_served(const struct sockaddr_un *a)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool served = fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) == 0;

	if (fd >= 0)
		(void)close(fd);
	return served;
}

/* A restart: clients may wait in its queue. */
static bool is_left(struct serve_listen *s, const char *name, int *ret_fd)
{
	int fd = s->left ? handover_listener(s->left, name) : FD_NONE;

	if (fd >= 0)
		*ret_fd = fd;
	return fd >= 0;
}

int serve_listen_unix(struct serve_listen *s, int *ret_fd, struct err *e)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char path[STATE_PATH + 16];
	mode_t before;
	int r;

	(void)snprintf(path, sizeof path, "%s/cay.sock", s->state_dir);
	if (!str_copy(s->socket, sizeof s->socket, str_of(s->want_socket ? s->want_socket : path)))
		return err_set(e, ERR_INVALID, "the path of the socket is too long: '%s'",
			       s->want_socket ? s->want_socket : path);
	(void)snprintf(s->unix_name, sizeof s->unix_name, "unix:%s", s->socket);
	if (is_left(s, s->unix_name, ret_fd))
		return 0;
	(void)str_copy(a.sun_path, sizeof a.sun_path, str_of(s->socket));
	if (is_other_file(s->socket))
		return err_set(e, ERR_CONFLICT, "'%s' exists already, and is not a socket",
			       s->socket);
	if (socket_is_served(&a))
		return err_set(e, ERR_CONFLICT, "a server runs already at '%s'", s->socket);
	(void)unlink(s->socket);
	/* Every process that can connect acts as the host's user. */
	before = umask(0177);
	r = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&a, sizeof a);
	(void)umask(before);
	if (r < 0 || listen(fd, BACKLOG) < 0)
		return err_sys(e, errno, "listen at '%s'", s->socket);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* "ADDR:PORT", "[ADDR]:PORT" or "PORT", which means the loopback address. */
static int parse_address(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len,
			 struct err *e)
{
	struct sockaddr_in *in = (void *)ret;
	struct sockaddr_in6 *in6 = (void *)ret;
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	char host[64] = "127.0.0.1", *end;
	unsigned long number = strtoul(port, &end, 10);
	size_t n = colon ? (size_t)(colon - text) : 0;

	*ret = (struct sockaddr_storage){ 0 };
	if (colon && n > 1 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (*port < '0' || *port > '9' || *end || number > 65535 ||
	    (colon && !str_copy(host, sizeof host, (struct str){ text, n })))
		return err_set(e, ERR_INVALID, "'%s' is not ADDR:PORT", text);
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)number);
		*ret_len = sizeof *in;
	} else if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)number);
		*ret_len = sizeof *in6;
	} else {
		return err_set(e, ERR_INVALID, "'%s' is not an address; write 127.0.0.1:3000",
			       host);
	}
	return 0;
}

static void note_address(struct serve_listen *s, int fd)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof a;
	const struct sockaddr_in *in = (const void *)&a;
	const struct sockaddr_in6 *in6 = (const void *)&a;
	char text[INET6_ADDRSTRLEN] = "";

	if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return;
	if (a.ss_family == AF_INET) {
		(void)inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
		s->port = ntohs(in->sin_port);
		(void)snprintf(s->address, sizeof s->address, "%s:%u", text, s->port);
	} else {
		(void)inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof text);
		s->port = ntohs(in6->sin6_port);
		(void)snprintf(s->address, sizeof s->address, "[%s]:%u", text, s->port);
	}
}

int serve_listen_tcp(struct serve_listen *s, int *ret_fd, struct err *e)
{
	struct sockaddr_storage a;
	auto_close int fd = FD_NONE;
	socklen_t len;
	int one = 1;

	if (parse_address(s->want_listen, &a, &len, e) < 0)
		return -1;
	(void)snprintf(s->tcp_name, sizeof s->tcp_name, "tcp:%s", s->want_listen);
	if (is_left(s, s->tcp_name, ret_fd)) {
		note_address(s, *ret_fd);
		return 0;
	}
	fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(e, errno, "make a socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, BACKLOG) < 0) {
		if (errno != EADDRINUSE)
			return err_sys(e, errno, "listen at '%s'", s->want_listen);
		(void)err_set(e, ERR_CONFLICT, "'%s' is already in use", s->want_listen);
		return err_hint(e, "try --listen 127.0.0.1:0");
	}
	note_address(s, fd);
	*ret_fd = TAKE_FD(fd);
	return 0;
}
