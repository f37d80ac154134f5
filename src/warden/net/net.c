/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/net/net.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fds.h"
#include "sys/process/raw.h"
#include "wire/gateway_proto.h"

enum {
	CONFIG_MOST = 64 * 1024,
	RESTART_MS = 50,
	RESTART_MOST_MS = 5000,
	STABLE_S = 10, /* after living this long, a death resets the restart delay */
};

static void start_again(struct loop_timer *t);

static struct net *net_of(struct warden *w)
{
	struct net *n = w->net;

	if (n)
		return n;
	n = w->net = calloc(1, sizeof *w->net);
	if (!n)
		return NULL;
	*n = (struct net){ .w = w, .last = { .dir = FD_NONE }, .config = BUF_INIT(CONFIG_MOST) };
	for (int i = 0; i < NET_PARTS; i++)
		n->part[i] = (struct net_part){ .n = n, .pidfd = FD_NONE, .ledger = FD_NONE };
	return n;
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

	if (r == 0 && f.tag == TAG_NETWORK) {
		w->spec.network = true;
	} else if (r == 0 && f.tag == TAG_NET_POLICY) {
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

static void trace_gateway(struct net *n, const char *what, const struct net_part *p, int status)
{
	struct trace *t = &n->w->trace;

	(void)trace_begin(t, "net.gateway", 0, n->w->created_event);
	trace_text(t, "what", str_of(what));
	if (p)
		trace_text(t, "part", p == &n->part[NET_FRONT] ? STR("front") : STR("dialer"));
	if (WIFSIGNALED(status))
		trace_num(t, "signal", WTERMSIG(status));
	else if (status)
		trace_num(t, "code", WEXITSTATUS(status));
	(void)trace_end(t);
}

/* The exit status. The process has closed its stream: kill it if it still lives. */
static int reap(struct net_part *p)
{
	int status = 0;

	(void)raw_pidfd_signal(p->pidfd, SIGKILL);
	while (p->pid > 0 && waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
	return status;
}

static void restart_later(struct net *n)
{
	uint64_t wait;

	if (n->w->state == SANDBOX_ENDING || n->w->state == SANDBOX_GONE)
		return;
	if (clock_mono_ns() - n->started_ns > STABLE_S * NS_PER_S)
		n->failures = 0;
	wait = n->failures ? (uint64_t)RESTART_MS << (n->failures < 8 ? n->failures : 8) : 0;
	n->failures++;
	loop_timer_set(&n->w->loop, &n->restart,
		       (wait < RESTART_MOST_MS ? wait : RESTART_MOST_MS) * NS_PER_MS, start_again);
}

/* One process is useless without the other: end both, and restart both. */
void net_on_closed(struct conn *c, int err)
{
	struct net_part *p = container_of(c, struct net_part, conn);
	struct net *n = p->n;

	(void)err;
	conn_done(c);
	if (n->ending)
		return;
	if (n->w->state == SANDBOX_READY) { /* nobody has it and there is no trace: end it */
		warden_end(n->w, END_UNCLAIMED, "its gateway died");
		return;
	}
	trace_gateway(n, "died", p, reap(p));
	net_stop(n);
	net_flows_lost(n);
	net_queue_fail(n);
	restart_later(n);
}

/* The dialer gets a policy before the front, so that it knows everything that the front allows. */
static void on_policy_set(struct net *n, const struct net_part *from, const struct frame *f)
{
	struct str body = f->body;
	struct field field;
	uint64_t cut = 0, error = 0;

	while (field_next(&body, &field) > 0)
		(void)field_u64(field, field.tag == GW_T_COUNT ? &cut : &error);
	if (from == &n->part[NET_DIALER] && error == 0)
		net_queue_half_set(n);
	else
		net_queue_policy_set(n, cut, error);
	if (from == &n->part[NET_FRONT] && error) /* the dialer already has it: restart both */
		(void)shutdown(from->conn.fd, SHUT_RDWR);
}

static void pass_flow(struct net *n, const struct frame *f)
{
	struct str body = f->body, name = STR_NONE, addr = STR_NONE;
	uint64_t v[4] = { 0 };
	struct field field;
	uint32_t chan = 0;
	struct client *to = net_queue_lister(n, &chan);
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
	if (!to || conn_begin(&to->conn, MSG_C_FLOW, chan, &at) < 0)
		return;
	if (field_put(&to->conn.out, TAG_NAME, name) < 0 ||
	    field_put(&to->conn.out, TAG_ADDRESS, addr) < 0 ||
	    field_put_u64(&to->conn.out, TAG_PORT, v[0]) < 0 ||
	    field_put_u64(&to->conn.out, TAG_CALL,
			  f->chan < n->nflows ? n->flows[f->chan].call : 0) < 0 ||
	    field_put_u64(&to->conn.out, TAG_OUT_BYTES, v[1]) < 0 ||
	    field_put_u64(&to->conn.out, TAG_BYTES, v[2]) < 0 ||
	    field_put_u64(&to->conn.out, TAG_DURATION_US, v[3]) < 0)
		conn_cancel(&to->conn, at);
	else
		(void)conn_end(&to->conn, at, NULL, 0);
}

/* The gateway has no descriptors to send. */
static void close_all(const struct frame *f, int *fds)
{
	fds_discard(fds, f->nfds); /* the front parses hostile bytes: trust no descriptor */
}

void net_on_front(struct conn *c, const struct frame *f, int *fds)
{
	struct net_part *p = container_of(c, struct net_part, conn);
	struct net *n = p->n;

	close_all(f, fds);
	if (n->w->state == SANDBOX_READY) /* it has nothing to report, and there is no trace */
		return;
	if (f->type == GW_EVENT) {
		net_event(n, f);
	} else if (f->type == GW_WHOSE) {
		net_whose(n, f);
		(void)conn_send(c, GW_OWNED, f->chan, STR_NONE);
	} else if (f->type == GW_POLICY_SET) {
		on_policy_set(n, p, f);
	} else if (f->type == GW_FLOW) {
		pass_flow(n, f);
	} else if (f->type == GW_END) {
		net_queue_listed(n);
	}
}

void net_on_dialer(struct conn *c, const struct frame *f, int *fds)
{
	struct net_part *p = container_of(c, struct net_part, conn);

	close_all(f, fds);
	if (p->n->w->state == SANDBOX_READY)
		return;
	if (f->type == GW_EVENT)
		net_dial_event(p->n, f);
	else if (f->type == GW_POLICY_SET)
		on_policy_set(p->n, p, f);
}

static void start_again(struct loop_timer *t)
{
	struct net *n = container_of(t, struct net, restart);
	int r = net_start(n);

	if (r < 0) {
		loop_timer_set(&n->w->loop, &n->restart, RESTART_MOST_MS * NS_PER_MS, start_again);
		return;
	}
	trace_gateway(n, "restarted", NULL, 0);
}

bool net_has_policy(const struct warden *w)
{
	return w->net && w->net->policy;
}

static int note_policy(struct warden *w, struct err *e)
{
	struct who who = { 0 };

	if (w->asking)
		who_set(&who, w->asking->pid, w->asking->uid);
	if (net_policy_note(w->net, STR_NONE, (struct str){ w->net->policy, w->net->policy_len },
			    &who) == 0)
		return 0;
	*e = w->refusal;
	return -1;
}

int net_open(struct warden *w, struct err *e)
{
	int r;

	if (!w->net || !w->spec.network)
		return 0;
	r = w->ready_dir ? net_prepare(w->net) : net_start(w->net);
	if (r == 0)
		return w->ready_dir ? 0 : note_policy(w, e);
	(void)err_sys(e, -r, "start cay-gateway");
	return r == -ENOENT ? err_hint(e, "install all of cay, or build it with: make") : -1;
}

int net_claim(struct warden *w, struct err *e)
{
	int r;

	if (!w->spec.network)
		return 0;
	if (!net_has_policy(w))
		return err_set(e, ERR_INVALID, "bad claim: no policy for the network");
	r = net_configure(w->net);
	return r < 0 ? err_sys(e, -r, "give cay-gateway its policy") : note_policy(w, e);
}

void net_close(struct warden *w)
{
	struct net *n = w->net;

	if (!n)
		return;
	loop_timer_stop(&w->loop, &n->restart);
	n->ending = true;
	net_stop_gently(n);
	w->net = NULL;
	for (int i = 0; i < NET_PARTS; i++)
		fd_close(&n->part[i].ledger);
	net_queue_free(n);
	net_process_forget(n);
	buf_done(&n->config);
	free(n->policy);
	free(n->groups);
	free(n->flows);
	free(n);
}
