/* SPDX-License-Identifier: Apache-2.0 */
/* cay port: forwards a host port to a port inside. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "loop/relay.h"
#include "ops/connect.h"
#include "wire/host.h"

enum { BACKLOG = 128, PAIRS_MOST = 512 };

struct pair {
	struct relay relay;
	struct link_dial dial;
	struct forward *f;
	struct pair *next;
	int fd; /* the host side, while the inner side connects */
};

struct forward {
	struct link *link;
	struct loop *loop;
	struct loop_io listen_io, sig_io;
	struct loop_timer listen_timer;
	int listen_fd;
	uint16_t port;
	struct pair *pairs;
	int npairs;
	struct err *e;
	bool over;
	int result;
};

static const char *listen_at;
static struct opt opts[] = {
	{ "listen", 0, OPT_TEXT, "[ADDR:]PORT",
	  "Where to listen on the host; default: 127.0.0.1 and the same port, or 0 for any",
	  &listen_at },
	{ 0 },
};

static void pair_free(struct pair *p)
{
	struct forward *f = p->f;

	for (struct pair **at = &f->pairs; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	f->npairs--;
	fd_close(&p->fd);
	free(p);
}

static void on_relay_ended(struct relay *r)
{
	relay_done(r);
	pair_free(container_of(r, struct pair, relay));
}

static void listen_again(struct loop_timer *t)
{
	struct forward *f = container_of(t, struct forward, listen_timer);

	(void)loop_mod(f->loop, &f->listen_io, EPOLLIN);
}

/*
 * Disable Nagle's algorithm: small alternating writes, as of a debugger or a web socket, would wait
 * for each other.
 */
static void without_delay(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void on_dialed(struct link_dial *d, int fd, const struct err *why)
{
	struct pair *p = container_of(d, struct pair, dial);

	if (fd >= 0) {
		without_delay(p->fd);
		without_delay(fd);
		/* relay_begin() takes both descriptors, even on failure. */
		if (relay_begin(&p->relay, p->f->loop, TAKE_FD(p->fd), fd, on_relay_ended) == 0)
			return;
	} else {
		fputs("cay: ", stderr);
		out_safe_to(stderr, str_of(why->msg));
		putc('\n', stderr);
	}
	pair_free(p);
}

static void on_accept(struct loop_io *io, uint32_t events)
{
	enum { PAUSE_MS = 100, DIAL_MS = 30000 };
	struct forward *f = container_of(io, struct forward, listen_io);
	int fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct pair *p;

	(void)events;
	/* A pending connection keeps the listener ready: without a pause the loop would spin. */
	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		(void)loop_mod(f->loop, &f->listen_io, 0);
		loop_timer_set(f->loop, &f->listen_timer, PAUSE_MS * NS_PER_MS, listen_again);
	}
	if (fd < 0)
		return;
	p = f->npairs < PAIRS_MOST ? calloc(1, sizeof *p) : NULL;
	if (!p) {
		(void)close(fd);
		return;
	}
	*p = (struct pair){ .f = f, .next = f->pairs, .fd = fd, .dial.done = on_dialed };
	f->pairs = p;
	f->npairs++;
	if (link_dial(f->link, &p->dial, f->port, DIAL_MS) < 0)
		pair_free(p);
}

static void on_closed(struct link *l, const struct err *why)
{
	struct forward *f = link_owner(l);

	(void)why;
	f->result = err_set(f->e, ERR_UNAVAILABLE, "the sandbox ended");
	f->over = true;
}

static void on_signal(struct loop_io *io, uint32_t events)
{
	(void)events;
	container_of(io, struct forward, sig_io)->over = true;
}

static int parse_listen(const char *text, uint16_t port, struct sockaddr_storage *ret,
			socklen_t *ret_len, struct err *e)
{
	struct host h = { .ip = { .len = 4, .b = { 127, 0, 0, 1 } } };

	if (text && strcmp(text, "0") == 0) {
		port = 0;
	} else if (text && port_parse(str_of(text), &port) < 0) {
		uint16_t given = 0;

		if (authority_parse(str_of(text), &h, &given) < 0 || !h.ip.len)
			return err_set(e, ERR_INVALID, "--listen '%s': PORT, ADDR or ADDR:PORT",
				       text);
		port = given ? given : port;
	}
	*ret_len = ip_to_sockaddr(&h.ip, port, ret);
	return 0;
}

static int open_listener(struct forward *f, struct err *e)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t n = 0;
	int on = 1;

	if (parse_listen(listen_at, f->port, &sa, &n, e) < 0)
		return -1;
	f->listen_fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->listen_fd < 0)
		return err_sys(e, errno, "make a socket");
	(void)setsockopt(f->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(f->listen_fd, (void *)&sa, n) < 0 || listen(f->listen_fd, BACKLOG) < 0)
		return err_sys(e, errno, "listen at '%s'", listen_at ? listen_at : "the same port");
	return 0;
}

static void say_where(const struct cmd_ctx *ctx, const struct forward *f)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t n = sizeof sa;
	char text[IP_TEXT];
	uint16_t port = 0;
	struct ip ip;

	(void)getsockname(f->listen_fd, (void *)&sa, &n);
	ip = ip_of_sockaddr((void *)&sa, &port);
	ip_text(&ip, text);
	if (ctx->json) {
		struct json_line j;

		json_line_begin(&j);
		json_obj(&j.json);
		json_put_text(&j.json, "address", text);
		json_put_i64(&j.json, "port", port);
		json_end(&j.json);
		json_line_print(&j);
	} else if (!ctx->quiet) {
		printf(ip.len == 16 ? "[%s]:%u\n" : "%s:%u\n", text, port);
	}
	(void)fflush(stdout);
}

static int watch_signals(struct forward *f)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : loop_add(f->loop, &f->sig_io, fd, EPOLLIN, on_signal);
}

static int forward(struct forward *f, struct err *e)
{
	static const struct link_ops ops = { .closed = on_closed };
	int r = watch_signals(f);

	link_watch(f->link, &ops, f);
	if (r == 0)
		r = loop_add(f->loop, &f->listen_io, f->listen_fd, EPOLLIN, on_accept);
	if (r == 0)
		r = loop_run_until(f->loop, &f->over);
	return r < 0 ? err_sys(e, -r, "wait for connections") : f->result;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(link_free) struct link *l = NULL;
	struct forward f = { .e = e, .listen_fd = FD_NONE };

	if (cmd_need_args(ctx, 2, 2, "a SANDBOX and a PORT", e) < 0)
		return -1;
	if (port_parse(str_of(ctx->args[1]), &f.port) < 0)
		return err_set(e, ERR_INVALID, "'%s' is not a port", ctx->args[1]);
	if (cli_open_state(&c, e) < 0 || op_connect(&c, ctx->args[0], &l, e) < 0 ||
	    open_listener(&f, e) < 0)
		return -1;
	cli_let_go(&c);
	f.link = l;
	f.loop = &c.loop;
	say_where(ctx, &f);
	return forward(&f, e);
}

const struct cmd cmd_port = {
	.name = "port",
	.synopsis = "[options] SANDBOX PORT",
	.summary = "Reach a port inside a sandbox from the host",
	.details = "Listens on the host and passes every connection to that port inside, until it "
		   "is interrupted or the sandbox ends. A server inside may listen on 127.0.0.1 or "
		   "[::1] only. "
		   "Works without a network too. The address is printed once it listens.",
	.examples = "cay port work 3000\n"
		    "cay port work 8080 --listen 0\n"
		    "cay port work 3000 --listen 0.0.0.0:3000",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "sandbox",
};
