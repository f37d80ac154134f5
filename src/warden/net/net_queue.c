/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of clients to the gateway, one at a time: a new policy, or the list of connections. The
 * gateway answers in order, and requests have no ids.
 *
 * A policy is stored and traced after both processes of the gateway have confirmed it. Until then
 * the sandbox keeps the last policy, and so does a restarted gateway.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/sha256.h"
#include "warden/net/net.h"
#include "wire/gateway_proto.h"

struct net_ask {
	struct net_ask *next;
	struct client *client; /* NULL: it has disconnected */
	uint32_t chan;
	char *policy; /* NULL: a request for the list */
	size_t len;
	struct who who;
};

static void ask_free(struct net_ask *a)
{
	free(a->policy);
	free(a);
}

static struct net_ask *take_first(struct net *n)
{
	struct net_ask *a = n->asks;

	if (a)
		n->asks = a->next;
	return a;
}

static void fail(const struct net_ask *a, const struct err *why)
{
	if (a->client)
		(void)client_error(a->client, a->chan, why, STAGE_SETUP);
}

/* Send the first request, if the gateway has answered all earlier ones. */
static int send_first(struct net *n)
{
	const struct net_ask *a = n->asks;

	if (!a)
		return 0;
	if (!a->policy)
		return conn_send(&n->part[NET_FRONT].conn, GW_LIST, 0, STR_NONE);
	return conn_send(&n->part[NET_DIALER].conn, GW_POLICY, 0,
			 (struct str){ a->policy, a->len });
}

static void send_next(struct net *n)
{
	struct err e = { 0 };
	int r;

	while ((r = send_first(n)) < 0) {
		struct net_ask *a = take_first(n);

		(void)err_sys(&e, -r, "ask the gateway");
		fail(a, &e);
		ask_free(a);
	}
}

void net_queue_fail(struct net *n)
{
	struct net_ask *a;
	struct err e = { 0 };

	(void)err_set(&e, ERR_UNAVAILABLE,
		      "the gateway died; its successor has the last policy that it was given");
	while ((a = take_first(n))) {
		fail(a, &e);
		ask_free(a);
	}
}

static int adopt(struct net *n, struct net_ask *a)
{
	auto_free char *was = n->policy;
	struct str from = { was, n->policy_len };

	n->policy_len = a->len;
	n->policy = TAKE_PTR(a->policy);
	return net_policy_note(n, from, (struct str){ n->policy, n->policy_len }, &a->who);
}

void net_queue_policy_set(struct net *n, uint64_t cut, uint64_t error)
{
	struct net_ask *a = n->asks;
	struct err e = { 0 };

	if (!a || !a->policy) /* the first policy, which no client waits for */
		return;
	(void)take_first(n);
	if (error) {
		(void)err_sys(&e, (int)(error & 0xfff), "the gateway refused the policy");
		fail(a, &e);
	} else if (adopt(n, a) < 0) {
		(void)err_set(&e, ERR_FAILED, "write the trace");
		fail(a, &e);
	} else if (a->client) {
		(void)CONN_SAY(&a->client->conn, MSG_C_POLICY_SET, a->chan,
			       { TAG_COUNT, cut, NULL });
	}
	ask_free(a);
	send_next(n);
}

void net_queue_half_set(struct net *n)
{
	struct conn *front = &n->part[NET_FRONT].conn;
	const struct net_ask *a = n->asks;

	if (!a || !a->policy)
		return;
	/* If the front cannot get the policy, the dialer must not keep it: restart both. */
	if (conn_send(front, GW_POLICY, 0, (struct str){ a->policy, a->len }) < 0)
		(void)shutdown(n->part[NET_DIALER].conn.fd, SHUT_RDWR);
}

struct client *net_queue_lister(const struct net *n, uint32_t *ret_chan)
{
	const struct net_ask *a = n->asks;

	if (!a || a->policy)
		return NULL;
	*ret_chan = a->chan;
	return a->client;
}

void net_queue_listed(struct net *n)
{
	struct net_ask *a = n->asks;

	if (!a || a->policy)
		return;
	(void)take_first(n);
	if (a->client)
		(void)conn_send(&a->client->conn, MSG_C_END, a->chan, STR_NONE);
	ask_free(a);
	send_next(n);
}

static int refuse(const struct net *n, struct err *e)
{
	int waiting = 0;

	if (!n || !n->w->spec.network) {
		(void)err_set(e, ERR_CONFLICT, "the sandbox has no network");
		return err_hint(e, "give it one when it is made: cay create --net PRESET|FILE");
	}
	if (n->part[NET_DIALER].pid <= 0)
		return err_set(e, ERR_UNAVAILABLE, "the gateway is being started again");
	for (const struct net_ask *a = n->asks; a; a = a->next)
		waiting++;
	return waiting >= LIMIT_NET_ASKS
		       ? err_set(e, ERR_LIMIT, "%d requests wait for the gateway", waiting)
		       : 0;
}

/* Takes a. */
static int enqueue(struct net *n, struct net_ask *a, struct err *e)
{
	struct net_ask **end = &n->asks;
	int r;

	while (*end)
		end = &(*end)->next;
	*end = a;
	if (n->asks != a)
		return 0;
	r = send_first(n);
	if (r < 0) {
		ask_free(take_first(n));
		return err_sys(e, -r, "ask the gateway");
	}
	return 0;
}

int net_set_policy(struct client *c, const struct frame *f, struct err *e)
{
	struct str body = f->body, policy = STR_NONE;
	struct field field;
	struct net_ask *a;

	if (refuse(c->w->net, e) < 0)
		return -1;
	while (field_next(&body, &field) > 0)
		if (field.tag == TAG_NET_POLICY)
			policy = field.value;
	if (!policy.n || policy.n > LIMIT_POLICY)
		return err_set(e, ERR_INVALID, "no policy, or one that is too long");
	a = calloc(1, sizeof *a);
	if (a)
		*a = (struct net_ask){ .client = c, .chan = f->chan, .len = policy.n };
	if (!a || !(a->policy = malloc(policy.n))) {
		free(a);
		return err_sys(e, ENOMEM, "set the policy");
	}
	memcpy(a->policy, policy.p, policy.n);
	who_set(&a->who, c->pid, c->uid);
	return enqueue(c->w->net, a, e);
}

int net_list(struct client *c, uint32_t chan, struct err *e)
{
	struct net_ask *a;

	if (refuse(c->w->net, e) < 0)
		return -1;
	a = calloc(1, sizeof *a);
	if (!a)
		return err_sys(e, ENOMEM, "list connections");
	*a = (struct net_ask){ .client = c, .chan = chan };
	return enqueue(c->w->net, a, e);
}

void net_forget_client(struct client *c)
{
	if (!c->w->net)
		return;
	for (struct net_ask *a = c->w->net->asks; a; a = a->next)
		if (a->client == c)
			a->client = NULL;
}

void net_queue_free(struct net *n)
{
	struct net_ask *a;

	while ((a = take_first(n)))
		ask_free(a);
}

bool net_policy_hash(const struct warden *w, char out[SHA256_HEX])
{
	uint8_t hash[SHA256_SIZE];

	if (!w->net || !w->net->policy)
		return false;
	sha256(w->net->policy, w->net->policy_len, hash);
	sha256_hex(hash, out);
	return true;
}
