/* SPDX-License-Identifier: Apache-2.0 */
/* cay serve: serves HTTP for programs, including the E2B SDKs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/front.h"
#include "api/names.h"
#include "api/supervisor.h"
#include "api/worker.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/host/key_options.h"
#include "cli/host/serve_config.h"
#include "cli/host/serve_group.h"
#include "cli/host/serve_listen.h"
#include "cli/host/serve_notify.h"
#include "cli/host/serve_restart.h"
#include "ops/key.h"
#include "ops/pool/demand.h"

static const char *want_listen, *want_socket, *want_cert, *want_key;
static const char *want_log, *want_config, *want_pool;
static struct opt_list want_domains, want_origins;
static struct key_opts want_limits;
static bool want_check, want_restart;
static struct opt opts[] = {
	{ "listen", 0, OPT_TEXT, "ADDR:PORT",
	  "Also serve TCP; clients need a key (cay key create). Port 0: any", &want_listen },
	{ "socket", 0, OPT_TEXT, "PATH",
	  "The unix socket (default: cay.sock in the state directory)", &want_socket },
	{ "tls-cert", 0, OPT_TEXT, "FILE",
	  "Speak TLS on --listen with this certificate chain (PEM)", &want_cert },
	{ "tls-key", 0, OPT_TEXT, "FILE", "The certificate's private key (PEM)", &want_key },
	{ "domain", 0, OPT_LIST, "NAME",
	  "A name of this server: ports of sandboxes are PORT-ID.NAME. Repeat for more",
	  &want_domains },
	{ "origin", 0, OPT_LIST, "URL", "Let web pages of this origin use it. Repeat for more",
	  &want_origins },
	{ "access-log", 0, OPT_TEXT, "FILE",
	  "Write a line of JSON per request; -: to stdout (default: none)", &want_log },
	{ "pool", 0, OPT_TEXT, "N|auto",
	  "Keep up to N sandboxes ready, as clients use them (default: 0)", &want_pool },
	{ "config", 0, OPT_TEXT, "FILE",
	  "More options, as NAME = VALUE lines (default: serve.conf in the state directory)",
	  &want_config },
	{ "check", 0, OPT_FLAG, NULL, "Check options and files, and serve nothing", &want_check },
	{ "restart", 0, OPT_FLAG, NULL,
	  "Have the running server replaced by this version, without losing a request",
	  &want_restart },
	KEY_LIMIT_ROWS(want_limits),
	{ 0 },
};

enum { HTTPS = 443, ARGUMENTS_MOST = 100 };

struct serving {
	struct cay cay;
	struct serve_listen listen;
	struct serve_config config;
	struct certs certs;
	struct access_log log;
	struct handover left; /* by the program before a restart */
	bool restarted;
	struct key_limits limits; /* of keys that say nothing else */
	uint32_t pool_most;	  /* sandboxes to keep ready by demand */
	char key[KEY_TEXT];	  /* key created by this run; empty: none */
	/* The domain as clients write it, with the port if it is not the one of https. */
	char public[DOMAIN_SIZE + 8];
};

/* ---- options ---- */

/* The file that --config names must exist, others need not. */
static int read_config(struct serving *s, struct err *e)
{
	static const char installed[] = "/etc/cay/serve.conf";
	static char own[PATH_MAX];

	(void)snprintf(own, sizeof own, "%s/serve.conf", s->cay.state.dir);
	s->config.path = want_config;
	if (!s->config.path && access(own, F_OK) == 0)
		s->config.path = own;
	if (!s->config.path && strcmp(s->cay.state.dir, "/var/lib/cay") == 0 &&
	    access(installed, F_OK) == 0)
		s->config.path = installed;
	return s->config.path ? serve_config_load(&s->config, opts, e) : 0;
}

static int parse_pool(uint32_t *ret, struct err *e)
{
	const char *text = want_pool ? want_pool : "0";
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (strcmp(text, "auto") == 0)
		n = DEMAND_AUTO;
	else if (*text < '0' || *text > '9' || *end || n > READY_MOST)
		return err_set(e, ERR_INVALID,
			       "'%.100s': how many to keep ready, from 0 to %d, or auto", text,
			       READY_MOST);
	*ret = (uint32_t)n;
	return 0;
}

static int check_names(const struct serving *s, struct err *e)
{
	struct known_names names = { 0 };

	for (int i = 0; i < want_domains.n; i++)
		if (names_add_domain(&names, str_of(want_domains.items[i])) < 0) {
			(void)err_set(
				e, ERR_INVALID,
				"--domain '%.100s' is not a domain such as example.com, or one "
				"too many",
				want_domains.items[i]);
			return serve_config_blame(&s->config, &want_domains, e);
		}
	for (int i = 0; i < want_origins.n; i++)
		if (names_add_origin(&names, str_of(want_origins.items[i])) < 0) {
			(void)err_set(e, ERR_INVALID,
				      "--origin '%.100s': write https://host or http://host:port",
				      want_origins.items[i]);
			return serve_config_blame(&s->config, &want_origins, e);
		}
	return 0;
}

static int check_options(struct cmd_ctx *ctx, struct serving *s, struct err *e)
{
	if (parse_pool(&s->pool_most, e) < 0)
		return serve_config_blame(&s->config, &want_pool, e);
	if (!want_cert != !want_key)
		return cmd_usage(ctx, e, "--tls-cert and --tls-key belong together");
	if (want_cert && !want_listen)
		return cmd_usage(ctx, e, "TLS is for TCP: --tls-cert needs --listen");
	return check_names(s, e) < 0 ? -1 : key_opts_read(&want_limits, &s->limits, e);
}

/* ---- what is printed ---- */

static void print_sdk_lines(const struct serving *s, const char *key)
{
	const char *scheme = want_cert ? "https" : "http", *address = s->listen.address;

	printf("To use it with the E2B SDK:\n");
	if (want_cert && want_domains.n)
		printf("  export E2B_DOMAIN=%s\n"
		       "  export E2B_API_URL=https://api.%s\n",
		       s->public, s->public);
	else
		printf("  export E2B_API_URL=%s://%s\n"
		       "  export E2B_SANDBOX_URL=%s://%s\n",
		       scheme, address, scheme, address);
	printf("  export E2B_API_KEY=%s\n\n", key);
}

static void print_notice(void *ctx, const char *text)
{
	(void)ctx;
	(void)fprintf(stderr, "cay serve: %s\n", text);
}

static void print_next_steps(void *ctx)
{
	const struct serving *s = ctx;

	serve_notify("READY=1");
	if (s->restarted) {
		print_notice(ctx, "The server was restarted");
		return;
	}
	printf("Serving at %s\n", s->listen.socket);
	if (s->listen.address[0]) {
		const char *key = s->key[0] ? s->key : "YOUR_KEY";
		const char *scheme = want_cert ? "https" : "http";

		printf("Serving at %s://%s\n\n", scheme, s->listen.address);
		print_sdk_lines(s, key);
		if (s->key[0])
			printf("This key was made just now and is not shown again.\n");
		else
			printf("Make a key with: cay key create NAME\n");
		printf("Try: curl -H 'X-API-Key: %s' %s://%s/sandboxes\n", key, scheme,
		       s->listen.address);
	} else {
		printf("Try: curl --unix-socket %s http://localhost/sandboxes\n", s->listen.socket);
		printf("For other machines and the E2B SDK: cay serve --listen 127.0.0.1:3000\n");
	}
	(void)fflush(stdout);
}

static bool config_changed(void *ctx)
{
	const struct serving *s = ctx;

	return serve_config_changed(&s->config);
}

/* ---- serving ---- */

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

static int set_variable(const char *name, const char *value, struct err *e)
{
	return setenv(name, value, 1) < 0 ? err_sys(e, errno, "set %s", name) : 0;
}

/* Workers put it into answers: a client's getHost() uses it. */
static int announce_domain(struct serving *s, struct err *e)
{
	char name[DOMAIN_SIZE + 8], text[DOMAIN_SIZE + 100];
	const char *domain = want_domains.n ? want_domains.items[0] : NULL;

	if (!domain)
		return unsetenv("CAY_SERVE_DOMAIN");
	(void)str_copy(s->public, sizeof s->public, str_of(domain));
	if (want_cert && s->listen.port != HTTPS)
		(void)snprintf(s->public, sizeof s->public, "%s:%u", domain, s->listen.port);
	(void)snprintf(name, sizeof name, "80-id.%s", domain);
	if (want_cert && !certs_cover(&s->certs, name)) {
		(void)snprintf(text, sizeof text,
			       "the certificate is not valid for *.%s: clients will refuse ports",
			       domain);
		print_notice(s, text);
	}
	return set_variable("CAY_SERVE_DOMAIN", s->public, e);
}

/* The words that this process was started with: a restart uses them again. */
static char **own_arguments(void)
{
	static char *argv[ARGUMENTS_MOST + 1];
	static char text[64 * 1024];
	auto_close int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	int i = 0;

	for (ssize_t at = 0; at < n && i < ARGUMENTS_MOST; at += (ssize_t)strlen(text + at) + 1)
		argv[i++] = text + at;
	return argv;
}

static int serve(struct serving *s, struct err *e)
{
	char *argv[] = { "cay", "serve-worker", NULL };
	struct supervisor_config config = { .state = &s->cay.state,
					    .program = s->cay.programs.cay,
					    .worker_argv = argv,
					    .front_role = "serve-front",
					    .certs = want_cert ? &s->certs : NULL,
					    .log = want_log ? &s->log : NULL,
					    .domains = want_domains.items,
					    .ndomains = want_domains.n,
					    .origins = want_origins.items,
					    .norigins = want_origins.n,
					    .ready = print_next_steps,
					    .config_changed = config_changed,
					    .say = print_notice,
					    .ctx = s };
	auto_close int local = FD_NONE, network = FD_NONE, pools = FD_NONE;
	int r;

	if (want_listen && serve_listen_tcp(&s->listen, &network, e) < 0)
		return serve_config_blame(&s->config, &want_listen, e);
	if (serve_listen_unix(&s->listen, &local, e) < 0)
		return serve_config_blame(&s->config, &want_socket, e);
	if (set_variable("CAY_STATE", s->cay.state.dir, e) < 0 || announce_domain(s, e) < 0)
		return -1;
	if (s->pool_most && demand_open(&s->cay, s->pool_most, &pools, e) < 0)
		return -1;
	handover_close_listeners(&s->left);
	config.worker_envp = environ;
	config.left = s->restarted ? &s->left : NULL;
	config.restart_argv = own_arguments();
	config.listener_names[config.nlisteners] = s->listen.unix_name;
	config.listeners[config.nlisteners++] = local;
	if (network >= 0) {
		config.listener_names[config.nlisteners] = s->listen.tcp_name;
		config.tls_listeners = want_cert ? 1u << config.nlisteners : 0;
		config.listeners[config.nlisteners++] = network;
	}
	r = supervise(&config, e);
	serve_notify("STOPPING=1");
	demand_close(&s->cay, &pools);
	(void)unlink(s->listen.socket);
	return r;
}

static int prepare(struct cmd_ctx *ctx, struct serving *s, struct err *e)
{
	if (check_options(ctx, s, e) < 0)
		return -1;
	s->listen = (struct serve_listen){ .state_dir = s->cay.state.dir,
					   .want_listen = want_listen,
					   .want_socket = want_socket,
					   .left = &s->left };
	s->certs = (struct certs){ .cert_path = want_cert, .key_path = want_key };
	s->log.path = want_log;
	if (want_cert && certs_load(&s->certs, e) < 0)
		return serve_config_blame(&s->config, &want_cert, e);
	if (want_log && access_log_open(&s->log, e) < 0)
		return serve_config_blame(&s->config, &want_log, e);
	if (cay_programs(&s->cay, e) < 0)
		return -1;
	if (want_check)
		return 0;
	if (op_key_server_limits(&s->cay, &s->limits, e) < 0)
		return -1;
	return want_listen ? need_key(s, e) : 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	struct serving s = { .log.fd = FD_NONE };
	int r;

	if (cmd_need_args(ctx, 0, 0, "", e) < 0)
		return -1;
	r = handover_read(&s.left, e);
	if (r < 0 || cli_open(&s.cay, e) < 0)
		return -1;
	s.restarted = r == 1;
	r = read_config(&s, e);
	if (r == 0)
		r = want_restart ? serve_restart(s.cay.state.dir, want_socket, e)
				 : prepare(ctx, &s, e);
	/* Workers open their own catalog. */
	if (s.cay.catalog)
		catalog_close(TAKE_PTR(s.cay.catalog));
	if (r == 0 && !want_restart && !want_check)
		r = serve(&s, e);
	access_log_close(&s.log);
	certs_done(&s.certs);
	cay_close(&s.cay);
	free(s.config.text);
	return r;
}

static int run_worker(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cay_close) struct cay c = { 0 };

	(void)ctx;
	/* A signal that stops the server must not stop a worker: it finishes its job. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	if (cli_open_state(&c, e) < 0)
		return -1;
	serve_group_join(c.state.dir);
	return api_worker_run(&c, e);
}

static int run_front(struct cmd_ctx *ctx, struct err *e)
{
	(void)ctx;
	return front_run(e);
}

const struct cmd cmd_serve = {
	.name = "serve",
	.synopsis = "[--listen ADDR:PORT [--tls-cert FILE --tls-key FILE]] [options]",
	.summary = "Serve sandboxes to programs over HTTP, as the E2B SDKs speak it",
	.details =
		"Serves a unix socket that only its user can open. With --listen also TCP: each "
		"client needs a key, and sees the sandboxes that this key made. The first "
		"server with --listen makes a key and prints it. The limits hold for keys that say "
		"nothing else (cay key create). Sandboxes outlive the server. "
		"Without --tls-cert, clients of other machines need a proxy that speaks TLS. A "
		"certificate that was replaced is read within seconds, or at once after SIGHUP, "
		"which also opens the access log again and takes a changed config file. "
		"--restart, or SIGUSR2, replaces the running program by the one on disk: no "
		"request fails, and plain connections stay open. With --pool it keeps "
		"sandboxes ready, as many of each kind as clients made within ten seconds in "
		"the last five to ten minutes, up to N in all, or 64 with auto, and in at most "
		"a sixteenth of the free memory. They end with the server. Stop the server "
		"with SIGTERM or ^C.",
	.examples = "cay serve --listen 127.0.0.1:3000\n"
		    "cay serve --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem\n"
		    "cay serve --restart",
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
