/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/net/nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/netplan.h"
#include "sys/net/netlink.h"

#define TABLE "cay"

enum {
	PRIORITY_NAT = -100,
	PRIORITY_FILTER = 10, /* after address translation */
	IP4_SRC = 12,
	IP4_DST = 16,
	IP6_SRC = 8,
	IP6_DST = 24,
	DST_PORT = 2,
};

static void nft_begin(struct netlink *n, int msg, int flags)
{
	struct nfgenmsg g = { .nfgen_family = NFPROTO_INET };

	netlink_begin(n, (uint16_t)((NFNL_SUBSYS_NFTABLES << 8) | msg),
		      (uint16_t)(NLM_F_CREATE | NLM_F_ACK | flags), &g, sizeof g);
}

static void batch(struct netlink *n, uint16_t edge)
{
	struct nfgenmsg g = { .res_id = htons(NFNL_SUBSYS_NFTABLES) };

	netlink_begin(n, edge, 0, &g, sizeof g);
	netlink_end(n);
}

static void chain(struct netlink *n, const char *name, const char *type, int priority)
{
	size_t hook;

	nft_begin(n, NFT_MSG_NEWCHAIN, 0);
	netlink_text(n, NFTA_CHAIN_TABLE, TABLE);
	netlink_text(n, NFTA_CHAIN_NAME, name);
	hook = netlink_nest(n, NFTA_CHAIN_HOOK);
	netlink_be32(n, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
	netlink_be32(n, NFTA_HOOK_PRIORITY, (uint32_t)priority);
	netlink_unnest(n, hook);
	netlink_be32(n, NFTA_CHAIN_POLICY, NF_ACCEPT);
	netlink_text(n, NFTA_CHAIN_TYPE, type);
	netlink_end(n);
}

static size_t rule(struct netlink *n, const char *in_chain)
{
	nft_begin(n, NFT_MSG_NEWRULE, NLM_F_APPEND);
	netlink_text(n, NFTA_RULE_TABLE, TABLE);
	netlink_text(n, NFTA_RULE_CHAIN, in_chain);
	return netlink_nest(n, NFTA_RULE_EXPRESSIONS);
}

static void rule_end(struct netlink *n, size_t exprs)
{
	netlink_unnest(n, exprs);
	netlink_end(n);
}

struct expr {
	size_t elem, data;
};

static struct expr expr(struct netlink *n, const char *name)
{
	struct expr e = { .elem = netlink_nest(n, NFTA_LIST_ELEM) };

	netlink_text(n, NFTA_EXPR_NAME, name);
	e.data = netlink_nest(n, NFTA_EXPR_DATA);
	return e;
}

static void expr_end(struct netlink *n, struct expr e)
{
	netlink_unnest(n, e.data);
	netlink_unnest(n, e.elem);
}

static void value(struct netlink *n, uint16_t attr, const void *v, size_t size)
{
	size_t nest = netlink_nest(n, attr);

	netlink_put(n, NFTA_DATA_VALUE, v, size);
	netlink_unnest(n, nest);
}

static void compare(struct netlink *n, uint32_t op, const void *v, size_t size)
{
	struct expr e = expr(n, "cmp");

	netlink_be32(n, NFTA_CMP_SREG, NFT_REG_1);
	netlink_be32(n, NFTA_CMP_OP, op);
	value(n, NFTA_CMP_DATA, v, size);
	expr_end(n, e);
}

static void is_equal(struct netlink *n, const void *v, size_t size)
{
	compare(n, NFT_CMP_EQ, v, size);
}

static void meta_is(struct netlink *n, uint32_t key, uint8_t v)
{
	struct expr e = expr(n, "meta");

	netlink_be32(n, NFTA_META_KEY, key);
	netlink_be32(n, NFTA_META_DREG, NFT_REG_1);
	expr_end(n, e);
	is_equal(n, &v, sizeof v);
}

static void load_packet(struct netlink *n, uint32_t base, uint32_t offset, size_t size)
{
	struct expr e = expr(n, "payload");

	netlink_be32(n, NFTA_PAYLOAD_DREG, NFT_REG_1);
	netlink_be32(n, NFTA_PAYLOAD_BASE, base);
	netlink_be32(n, NFTA_PAYLOAD_OFFSET, offset);
	netlink_be32(n, NFTA_PAYLOAD_LEN, (uint32_t)size);
	expr_end(n, e);
}

static void packet_is(struct netlink *n, uint32_t base, uint32_t offset, const void *v, size_t size)
{
	load_packet(n, base, offset, size);
	is_equal(n, v, size);
}

static void load(struct netlink *n, uint32_t reg, const void *v, size_t size)
{
	struct expr e = expr(n, "immediate");

	netlink_be32(n, NFTA_IMMEDIATE_DREG, reg);
	value(n, NFTA_IMMEDIATE_DATA, v, size);
	expr_end(n, e);
}

static void accept_it(struct netlink *n)
{
	struct expr e = expr(n, "immediate");
	size_t data, verdict;

	netlink_be32(n, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = netlink_nest(n, NFTA_IMMEDIATE_DATA);
	verdict = netlink_nest(n, NFTA_DATA_VERDICT);
	netlink_be32(n, NFTA_VERDICT_CODE, NF_ACCEPT);
	netlink_unnest(n, verdict);
	netlink_unnest(n, data);
	expr_end(n, e);
}

/* The program's send fails at once with EPERM, and it gets an ICMP error. */
static void reject_it(struct netlink *n)
{
	uint8_t code = NFT_REJECT_ICMPX_ADMIN_PROHIBITED;
	struct expr e = expr(n, "reject");

	netlink_be32(n, NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
	netlink_put(n, NFTA_REJECT_ICMP_CODE, &code, sizeof code);
	expr_end(n, e);
}

/* One of the two families: its packet layout, and the gateway's address. */
struct family {
	uint8_t nfproto;
	size_t size;
	uint32_t src, dst;
	const void *gateway;
	const void *loopback;
	size_t loopback_size;
};

static void lead(struct netlink *n, const struct family *f, uint8_t protocol, uint16_t from_port,
		 uint16_t to_port)
{
	uint16_t from = htons(from_port), to = htons(to_port);
	size_t r = rule(n, "lead");
	struct expr e;

	meta_is(n, NFT_META_NFPROTO, f->nfproto);
	meta_is(n, NFT_META_L4PROTO, protocol);
	if (from_port)
		packet_is(n, NFT_PAYLOAD_TRANSPORT_HEADER, DST_PORT, &from, sizeof from);
	load(n, NFT_REG_1, f->gateway, f->size);
	load(n, NFT_REG_2, &to, sizeof to);
	e = expr(n, "nat");
	netlink_be32(n, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	netlink_be32(n, NFTA_NAT_FAMILY, f->nfproto);
	netlink_be32(n, NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
	netlink_be32(n, NFTA_NAT_REG_PROTO_MIN, NFT_REG_2);
	expr_end(n, e);
	rule_end(n, r);
}

static void pass(struct netlink *n, const char *in_chain, const struct family *f, uint32_t offset,
		 const void *address, size_t size)
{
	size_t r = rule(n, in_chain);

	meta_is(n, NFT_META_NFPROTO, f->nfproto);
	packet_is(n, NFT_PAYLOAD_NETWORK_HEADER, offset, address, size);
	accept_it(n);
	rule_end(n, r);
}

/* Multicast stays on the loopback device, which is the only one: it reaches only those inside. */
static void pass_multicast(struct netlink *n, const struct family *f)
{
	bool v4 = f->nfproto == NFPROTO_IPV4;
	uint8_t first = v4 ? 224 : 0xff, last = v4 ? 239 : 0xff;
	size_t r = rule(n, "refuse");

	meta_is(n, NFT_META_NFPROTO, f->nfproto);
	load_packet(n, NFT_PAYLOAD_NETWORK_HEADER, f->dst, 1);
	compare(n, NFT_CMP_GTE, &first, sizeof first);
	compare(n, NFT_CMP_LTE, &last, sizeof last);
	accept_it(n);
	rule_end(n, r);
}

static void family_rules(struct netlink *n, const struct family *f)
{
	pass(n, "lead", f, f->dst, f->loopback, f->loopback_size);
	lead(n, f, IPPROTO_TCP, 0, NETPLAN_PORT_TCP);
	lead(n, f, IPPROTO_UDP, NETPLAN_PORT_DNS, NETPLAN_PORT_DNS);
	pass(n, "refuse", f, f->dst, f->loopback, f->loopback_size);
	pass(n, "refuse", f, f->dst, f->gateway, f->size);
	pass(n, "refuse", f, f->src, f->gateway, f->size);
	pass_multicast(n, f);
}

int nft_lead_to_gateway(bool ipv6)
{
	static const uint8_t net127 = 127, one[16] = { [15] = 1 };
	const uint32_t gateway4 = htonl(NETPLAN_GATEWAY4);
	const struct family v4 = { NFPROTO_IPV4, 4, IP4_SRC, IP4_DST, &gateway4, &net127, 1 };
	const struct family v6 = { NFPROTO_IPV6,     16,  IP6_SRC,   IP6_DST,
				   netplan_gateway6, one, sizeof one };
	auto_close int fd = netlink_open(NETLINK_NETFILTER);
	struct netlink n = { .len = 0 };
	size_t r;

	if (fd < 0)
		return fd;
	batch(&n, NFNL_MSG_BATCH_BEGIN);
	nft_begin(&n, NFT_MSG_NEWTABLE, 0);
	netlink_text(&n, NFTA_TABLE_NAME, TABLE);
	netlink_end(&n);
	chain(&n, "lead", "nat", PRIORITY_NAT);
	chain(&n, "refuse", "filter", PRIORITY_FILTER);
	family_rules(&n, &v4);
	if (ipv6)
		family_rules(&n, &v6);
	r = rule(&n, "refuse");
	reject_it(&n);
	rule_end(&n, r);
	batch(&n, NFNL_MSG_BATCH_END);
	return netlink_talk(&n, fd);
}
