/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/net.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/jail.h"
#include "sys/raw.h"
#include "sys/userns.h"
#include "wire/gateway_proto.h"

enum {
	CONFIG_MOST = 64 * 1024,
	RESTART_MS = 50,
	LAST_WORDS_MS = 200,
	RESTART_MOST_MS = 5000,
	STABLE_S = 10, /* it has lived that long: its death is a new story */
};

static void start_again(struct loop_timer *t);

static struct net *net_of(struct warden *w)
{
	if (!w->net) {
		w->net = calloc(1, sizeof *w->net);
		if (w->net)
			*w->net = (struct net){ .w = w,
						.pidfd = FD_NONE,
						.last = { .dir = FD_NONE },
						.config = BUF_INIT(CONFIG_MOST) };
	}
	return w->net;
}

static int keep_policy(struct net *n, struct str compiled)
{
	char *copy = compiled.n && compiled.n <= LIMIT_POLICY ? malloc(compiled.n) : NULL;

	if (!copy)
		return compiled.n ? -ENOMEM : -EINVAL;
	memcpy(copy, compiled.p, compiled.n);
	free(n->policy);
	n->policy = copy;
	n->policy_len = compiled.n;
	return 0;
}

int net_take(struct warden *w, struct field f, struct err *e)
{
	struct net *n = net_of(w);
	int r = n ? 0 : -ENOMEM;

	if (r == 0 && f.tag == TAG_NET_POLICY) {
		w->spec.network = true;
		r = keep_policy(n, f.value);
	} else if (r == 0) {
		r = field_put(&n->config,
			      f.tag == TAG_NAMESERVER ? GW_T_NAMESERVER
			      : f.tag == TAG_PROXY    ? GW_T_PROXY
						      : GW_T_NO_PROXY,
			      f.value);
	}
	return r < 0 ? err_sys(e, -r, "read the network's part of the build request") : 0;
}

static void trace_gateway(struct net *n, const char *what, int status)
{
	struct trace *t = &n->w->trace;

	(void)trace_begin(t, "net.gateway", 0, n->w->created_event);
	trace_text(t, "what", str_of(what));
	if (WIFSIGNALED(status))
		trace_num(t, "signal", WTERMSIG(status));
	else if (status)
		trace_num(t, "code", WEXITSTATUS(status));
	(void)trace_end(t);
}

static int reap(struct net *n)
{
	int status = 0;

	if (n->pidfd >= 0)
		(void)raw_pidfd_signal(n->pidfd, SIGKILL);
	while (n->pid > 0 && waitpid(n->pid, &status, 0) < 0 && errno == EINTR)
		;
	n->pid = 0;
	fd_close(&n->pidfd);
	return status;
}

/* Whoever waited for it must not wait for ever. */
static void fail_asker(struct net *n)
{
	struct err e = { 0 };

	if (!n->asker)
		return;
	(void)err_set(&e, ERR_UNAVAILABLE, "the gateway died; its successor has the last policy");
	(void)client_error(n->asker, n->asker_chan, &e, STAGE_SETUP);
	n->asker = NULL;
}

static void on_closed(struct conn *c, int err)
{
	struct net *n = container_of(c, struct net, conn);
	uint64_t wait;

	(void)err;
	conn_done(&n->conn);
	if (n->ending)
		return;
	trace_gateway(n, "died", reap(n));
	net_flows_lost(n);
	fail_asker(n);
	if (n->w->state == SANDBOX_ENDING || n->w->state == SANDBOX_GONE)
		return;
	if (clock_mono_ns() - n->started_ns > STABLE_S * NS_PER_S)
		n->failures = 0;
	wait = n->failures ? (uint64_t)RESTART_MS << (n->failures < 8 ? n->failures : 8) : 0;
	n->failures++;
	loop_timer_set(&n->w->loop, &n->restart,
		       (wait < RESTART_MOST_MS ? wait : RESTART_MOST_MS) * NS_PER_MS, start_again);
}

static void on_policy_set(struct net *n, const struct frame *f)
{
	struct str body = f->body;
	struct field field;
	uint64_t cut = 0, error = 0;
	struct err e = { 0 };

	while (field_next(&body, &field) > 0)
		(void)field_u64(field, field.tag == GW_T_COUNT ? &cut : &error);
	if (!n->asker)
		return;
	if (error) {
		(void)err_sys(&e, (int)error, "the gateway refused the policy");
		(void)client_error(n->asker, n->asker_chan, &e, STAGE_SETUP);
	} else {
		(void)CONN_SAY(&n->asker->conn, MSG_C_POLICY_SET, n->asker_chan,
			       { TAG_COUNT, cut, NULL });
	}
	n->asker = NULL;
}

static void pass_flow(struct net *n, const struct frame *f)
{
	struct str body = f->body, name = STR_NONE, addr = STR_NONE;
	uint64_t v[4] = { 0 };
	struct field field;
	size_t at;

	while (field_next(&body, &field) > 0) {
		if (field.tag == GW_T_NAME)
			name = field.value;
		else if (field.tag == GW_T_ADDR)
			addr = field.value;
		else
			(void)field_u64(field, field.tag == GW_T_PORT	? &v[0]
					       : field.tag == GW_T_UP	? &v[1]
					       : field.tag == GW_T_DOWN ? &v[2]
									: &v[3]);
	}
	if (!n->asker || conn_begin(&n->asker->conn, MSG_C_FLOW, n->asker_chan, &at) < 0)
		return;
	if (field_put(&n->asker->conn.out, TAG_NAME, name) < 0 ||
	    field_put(&n->asker->conn.out, TAG_ADDRESS, addr) < 0 ||
	    field_put_u64(&n->asker->conn.out, TAG_PORT, v[0]) < 0 ||
	    field_put_u64(&n->asker->conn.out, TAG_CALL,
			  f->chan < n->nflows ? n->flows[f->chan].call : 0) < 0 ||
	    field_put_u64(&n->asker->conn.out, TAG_OUT_BYTES, v[1]) < 0 ||
	    field_put_u64(&n->asker->conn.out, TAG_BYTES, v[2]) < 0 ||
	    field_put_u64(&n->asker->conn.out, TAG_DURATION_US, v[3]) < 0)
		conn_cancel(&n->asker->conn, at);
	else
		(void)conn_end(&n->asker->conn, at, NULL, 0);
}

static void on_frame(struct conn *c, const struct frame *f, int *fds)
{
	struct net *n = container_of(c, struct net, conn);

	for (int i = 0; i < f->nfds; i++) /* it has nothing to give */
		fd_close(&fds[i]);
	if (f->type == GW_EVENT) {
		net_event(n, f);
	} else if (f->type == GW_WHOSE) {
		net_whose(n, f);
		(void)conn_send(&n->conn, GW_OWNED, f->chan, STR_NONE);
	} else if (f->type == GW_POLICY_SET) {
		on_policy_set(n, f);
	} else if (f->type == GW_FLOW) {
		pass_flow(n, f);
	} else if (f->type == GW_END && n->asker) {
		(void)conn_send(&n->asker->conn, MSG_C_END, n->asker_chan, STR_NONE);
		n->asker = NULL;
	}
}

static int send_config(struct net *n)
{
	int fds[NET_FDS], count = 0, r;
	size_t at = 0;

	for (int i = 0; i < NET_FDS && n->w->cell.net_fds[i] >= 0; i++) {
		fds[i] = fcntl(n->w->cell.net_fds[i], F_DUPFD_CLOEXEC, 0);
		if (fds[i] < 0)
			return -errno;
		count++;
	}
	r = conn_begin(&n->conn, GW_CONFIG, 0, &at);
	if (r == 0)
		r = buf_add_str(&n->conn.out, buf_str(&n->config));
	if (r == 0 && !n->w->cell.has_cgroup)
		r = field_put_u64(&n->conn.out, GW_T_ASK, 1);
	if (r == 0)
		r = conn_end(&n->conn, at, fds, count);
	return r < 0 ? r
		     : conn_send(&n->conn, GW_POLICY, 0, (struct str){ n->policy, n->policy_len });
}

/* It lies beside us, as init does. */
static void find_program(const struct warden *w, char out[LIMIT_PATH])
{
	const char *slash = strrchr(w->spec.init, '/');

	(void)snprintf(out, LIMIT_PATH, "%.*s/cay-gateway", (int)(slash - w->spec.init),
		       w->spec.init);
}

static int start(struct net *n)
{
	static const struct conn_ops ops = { .frame = on_frame, .closed = on_closed };
	char program[LIMIT_PATH];
	uint32_t last = n->w->spec.uid_base + USERNS_IDS - 1;
	struct jail j = { .program = program,
			  .name = "cay-gateway",
			  .uid = n->w->rootful ? last : getuid(),
			  .gid = n->w->rootful ? last : getgid() };
	int pair[2], r;

	find_program(n->w, program);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	j.stream_fd = pair[1];
	r = jail_start(&j, &n->pid, &n->pidfd);
	(void)close(pair[1]);
	if (r < 0) {
		(void)close(pair[0]);
		return r;
	}
	n->started_ns = clock_mono_ns();
	r = conn_init(&n->conn, &n->w->loop, pair[0], &ops);
	return r < 0 ? r : send_config(n);
}

static void start_again(struct loop_timer *t)
{
	struct net *n = container_of(t, struct net, restart);
	int r = start(n);

	if (r < 0) {
		loop_timer_set(&n->w->loop, &n->restart, RESTART_MOST_MS * NS_PER_MS, start_again);
		return;
	}
	trace_gateway(n, "restarted", 0);
}

int net_open(struct warden *w, struct err *e)
{
	int r;

	if (!w->net || !w->spec.network)
		return 0;
	r = start(w->net);
	if (r == 0)
		return 0;
	(void)err_sys(e, -r, "start cay-gateway");
	return r == -ENOENT ? err_hint(e, "install all of cay, or build it with: make") : -1;
}

void net_close(struct warden *w)
{
	struct net *n = w->net;

	if (!n)
		return;
	loop_timer_stop(&w->loop, &n->restart);
	n->ending = true;
	if (n->conn.loop)
		(void)conn_drain(&n->conn, LAST_WORDS_MS);
	conn_done(&n->conn);
	w->net = NULL;
	(void)reap(n);
	net_process_forget(n);
	buf_done(&n->config);
	free(n->policy);
	free(n->groups);
	free(n->flows);
	free(n);
}

static int busy(struct net *n, struct err *e)
{
	if (!n || !n->w->spec.network) {
		(void)err_set(e, ERR_CONFLICT, "the sandbox has no network");
		return err_hint(e, "give it one when it is made: cay create --net PRESET|FILE");
	}
	if (n->pid <= 0)
		return err_set(e, ERR_UNAVAILABLE, "the gateway is being started again");
	return n->asker ? err_set(e, ERR_CONFLICT, "another client asks just now") : 0;
}

int net_set_policy(struct client *c, const struct frame *f, struct err *e)
{
	struct net *n = c->w->net;
	struct str body = f->body;
	struct field field;
	int r = -EINVAL;

	if (busy(n, e) < 0)
		return -1;
	while (field_next(&body, &field) > 0)
		if (field.tag == TAG_NET_POLICY)
			r = keep_policy(n, field.value);
	if (r == 0)
		r = conn_send(&n->conn, GW_POLICY, 0, (struct str){ n->policy, n->policy_len });
	if (r < 0)
		return err_sys(e, -r, "set the policy");
	n->asker = c;
	n->asker_chan = f->chan;
	(void)trace_begin(&c->w->trace, "policy.set", 0, c->w->created_event);
	return warden_trace_end(c->w) < 0 ? err_set(e, ERR_FAILED, "write the trace") : 0;
}

int net_list(struct client *c, uint32_t chan, struct err *e)
{
	struct net *n = c->w->net;

	if (busy(n, e) < 0)
		return -1;
	n->asker = c;
	n->asker_chan = chan;
	return conn_send(&n->conn, GW_LIST, 0, STR_NONE) < 0 ? err_set(e, ERR_FAILED, "ask") : 0;
}

void net_forget_client(struct client *c)
{
	if (c->w->net && c->w->net->asker == c)
		c->w->net->asker = NULL;
}
