/* SPDX-License-Identifier: Apache-2.0 */
/* cay serve: serves HTTP for programs, including the E2B SDKs. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/front.h"
#include "api/supervisor.h"
#include "api/worker.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/host/key_options.h"
#include "ops/key.h"

static const char *want_listen, *want_socket;
static struct opt_list want_domains, want_origins;
static struct key_opts want_limits;
static struct opt opts[] = {
	{ "listen", 0, OPT_TEXT, "ADDR:PORT",
	  "Also serve TCP; clients need a key (cay key create). Port 0: any", &want_listen },
	{ "socket", 0, OPT_TEXT, "PATH",
	  "The unix socket (default: cay.sock in the state directory)", &want_socket },
	{ "domain", 0, OPT_LIST, "NAME",
	  "A name of this server; names below it are ports of sandboxes. Repeat for more",
	  &want_domains },
	{ "origin", 0, OPT_LIST, "URL", "Let web pages of this origin use it. Repeat for more",
	  &want_origins },
	KEY_LIMIT_ROWS(want_limits),
	{ 0 },
};

enum { BACKLOG = 1024 };

struct serving {
	struct cay cay;
	char socket[sizeof((struct sockaddr_un *)0)->sun_path];
	char address[80];   /* ADDR:PORT as bound; empty: none */
	char key[KEY_TEXT]; /* key created by this run; empty: none */
};

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

static int listen_unix(struct serving *s, int *ret_fd, struct err *e)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char path[sizeof s->cay.state.dir + 16];
	mode_t before;
	int r;

	(void)snprintf(path, sizeof path, "%s/cay.sock", s->cay.state.dir);
	if (!str_copy(s->socket, sizeof s->socket, str_of(want_socket ? want_socket : path)))
		return err_set(e, ERR_INVALID, "the path of the socket is too long: '%s'",
			       want_socket ? want_socket : path);
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

static void note_address(struct serving *s, int fd)
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
		(void)snprintf(s->address, sizeof s->address, "%s:%u", text, ntohs(in->sin_port));
	} else {
		(void)inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof text);
		(void)snprintf(s->address, sizeof s->address, "[%s]:%u", text,
			       ntohs(in6->sin6_port));
	}
}

static int listen_tcp(struct serving *s, int *ret_fd, struct err *e)
{
	struct sockaddr_storage a;
	auto_close int fd = FD_NONE;
	socklen_t len;
	int one = 1;

	if (parse_address(want_listen, &a, &len, e) < 0)
		return -1;
	fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(e, errno, "make a socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, BACKLOG) < 0) {
		if (errno != EADDRINUSE)
			return err_sys(e, errno, "listen at '%s'", want_listen);
		(void)err_set(e, ERR_CONFLICT, "'%s' is already in use", want_listen);
		return err_hint(e, "try --listen 127.0.0.1:0");
	}
	note_address(s, fd);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int count_key(void *ctx, const struct key_row *row)
{
	(void)row;
	*(bool *)ctx = true;
	return 1;
}

/* A network server needs at least one key: without keys no client could use it. */
static int need_key(struct serving *s, struct err *e)
{
	const struct key_spec spec = { .name = "default" };
	struct key_row row;
	bool some = false;

	if (op_key_list(&s->cay, count_key, &some, e) < 0)
		return -1;
	return some ? 0 : op_key_create(&s->cay, &spec, s->key, &row, e);
}

static void print_next_steps(void *ctx)
{
	const struct serving *s = ctx;

	printf("Serving at %s\n", s->socket);
	if (s->address[0]) {
		const char *key = s->key[0] ? s->key : "YOUR_KEY";

		printf("Serving at http://%s\n\n", s->address);
		printf("To use it with the E2B SDK:\n"
		       "  export E2B_API_URL=http://%s\n"
		       "  export E2B_SANDBOX_URL=http://%s\n"
		       "  export E2B_API_KEY=%s\n\n",
		       s->address, s->address, key);
		if (s->key[0])
			printf("This key was made just now and is not shown again.\n");
		else
			printf("Make a key with: cay key create NAME\n");
		printf("Try: curl -H 'X-API-Key: %s' http://%s/sandboxes\n", key, s->address);
	} else {
		printf("Try: curl --unix-socket %s http://localhost/sandboxes\n", s->socket);
		printf("For other machines and the E2B SDK: cay serve --listen 127.0.0.1:3000\n");
	}
	(void)fflush(stdout);
}

static int serve(struct serving *s, struct err *e)
{
	char state[sizeof s->cay.state.dir + 16];
	char *argv[] = { "cay", "serve-worker", NULL };
	struct supervisor_config config = { .state = &s->cay.state,
					    .program = s->cay.programs.cay,
					    .worker_argv = argv,
					    .worker_envp = environ,
					    .front_role = "serve-front",
					    .domains = want_domains.items,
					    .ndomains = want_domains.n,
					    .origins = want_origins.items,
					    .norigins = want_origins.n,
					    .ready = print_next_steps,
					    .ctx = s };
	auto_close int local = FD_NONE, network = FD_NONE;
	int r;

	(void)snprintf(state, sizeof state, "CAY_STATE=%s", s->cay.state.dir);
	if (putenv(state) != 0)
		return err_sys(e, ENOMEM, "start the server");
	if (want_listen && listen_tcp(s, &network, e) < 0)
		return -1;
	if (listen_unix(s, &local, e) < 0)
		return -1;
	config.listeners[config.nlisteners++] = local;
	if (network >= 0)
		config.listeners[config.nlisteners++] = network;
	r = supervise(&config, e);
	(void)unlink(s->socket);
	return r;
}

static int check_names(struct err *e)
{
	struct known_names names = { 0 };

	for (int i = 0; i < want_domains.n; i++)
		if (names_add_domain(&names, str_of(want_domains.items[i])) < 0)
			return err_set(e, ERR_INVALID,
				       "--domain '%.100s' is not a host name, or one too many",
				       want_domains.items[i]);
	for (int i = 0; i < want_origins.n; i++)
		if (names_add_origin(&names, str_of(want_origins.items[i])) < 0)
			return err_set(e, ERR_INVALID,
				       "--origin '%.100s': write https://host or http://host:port",
				       want_origins.items[i]);
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	struct key_limits limits;
	struct serving s = { 0 };
	int r;

	if (cmd_need_args(ctx, 0, 0, "", e) < 0 || check_names(e) < 0 ||
	    key_opts_read(&want_limits, &limits, e) < 0 || cli_open(&s.cay, e) < 0)
		return -1;
	r = cay_programs(&s.cay, e);
	if (r == 0)
		r = op_key_server_limits(&s.cay, &limits, e);
	if (r == 0 && want_listen)
		r = need_key(&s, e);
	/* Workers open their own catalog. */
	if (s.cay.catalog)
		catalog_close(TAKE_PTR(s.cay.catalog));
	if (r == 0)
		r = serve(&s, e);
	cay_close(&s.cay);
	return r;
}

static int run_worker(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cay_close) struct cay c = { 0 };

	(void)ctx;
	/* A signal that stops the server must not stop a worker: it finishes its job. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	if (cli_open_state(&c, e) < 0)
		return -1;
	return api_worker_run(&c, e);
}

static int run_front(struct cmd_ctx *ctx, struct err *e)
{
	(void)ctx;
	return front_run(e);
}

const struct cmd cmd_serve = {
	.name = "serve",
	.synopsis = "[--listen ADDR:PORT] [options]",
	.summary = "Serve sandboxes to programs over HTTP, as the E2B SDKs speak it",
	.details =
		"Serves a unix socket that only its user can open. With --listen also TCP: each "
		"client needs a key, and sees the sandboxes that this key made. The first server "
		"with --listen makes a key and prints it. The limits hold for all keys that say "
		"nothing else (cay key create). Sandboxes outlive the server. There is "
		"no TLS: for other machines put a proxy in front. Stop it with SIGTERM or ^C.",
	.examples = "cay serve --listen 127.0.0.1:3000\ncay serve --socket /run/cay.sock",
	.run = run,
	.opts = opts,
};

const struct cmd cmd_serve_front = {
	.name = "serve-front",
	.synopsis = "",
	.summary = "The part of cay serve that reads what clients send",
	.run = run_front,
	.hidden = true,
};

const struct cmd cmd_serve_worker = {
	.name = "serve-worker",
	.synopsis = "",
	.summary = "The part of cay serve that does what clients ask for",
	.run = run_worker,
	.hidden = true,
};
