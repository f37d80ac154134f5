/* SPDX-License-Identifier: Apache-2.0 */
/* The warden and its gateway: restarts after a death, and one request at a time. */
#include <errno.h>

#include "t.h"
#include "warden/fixture.h"
#include "warden/net/net.h"
#include "wire/gateway_proto.h"

static struct fx_client *me = &fx.client[0];

static void begin(void)
{
	fx_begin();
	fx_build(&(struct fx_want){ .network = true });
	fx_lease(me);
	fx_settle();
	CHECK(fx_gateway.started == 1);
}

static int count(uint8_t type)
{
	int n = 0;

	for (int i = 0; i < fx_gateway.ngot; i++)
		n += fx_gateway.got[i] == type;
	return n;
}

static void ask_policy(uint32_t chan, const char *text)
{
	FX_SEND(me, MSG_C_POLICY, chan, { TAG_NET_POLICY, 0, text });
}

static void it_gets_its_policy_first(void)
{
	begin();
	CHECK(fx_gateway.got[0] == GW_CONFIG && fx_gateway.got[1] == GW_POLICY);
	fx_end();
}

static void one_that_cannot_be_started_is_no_sandbox(void)
{
	fx_begin();
	fx_gateway.fail = ENOENT;
	fx_send_build(&(struct fx_want){ .network = true });
	fx_await_error(me, "start cay-gateway");
	fx_await_end("it could not be built");
	CHECK(fake.count[FAKE_DESTROY] == 1);
	fx_end();
}

static void a_policy_is_kept_when_the_gateway_has_it(void)
{
	begin();
	fx_gateway.mute = true;
	ask_policy(1, "second");
	fx_settle();
	CHECK(memcmp(fx.w->net->policy, "policy", 6) == 0);
	CHECK(conn_send(&fx_gateway.conn, GW_POLICY_SET, 0, STR_NONE) == 0);
	CHECK(fx_await(me, MSG_C_POLICY_SET)->chan == 1);
	CHECK(fx.w->net->policy_len == 6 && memcmp(fx.w->net->policy, "second", 6) == 0);
	fx_end();
}

static void requests_are_answered_in_their_order(void)
{
	begin();
	fx_gateway.mute = true;
	ask_policy(1, "second");
	CHECK(fx_send_raw(me, MSG_C_NET, 2, STR_NONE) == 0);
	ask_policy(3, "third");
	fx_settle();
	/* An answer without a request changes nothing. */
	CHECK(conn_send(&fx_gateway.conn, GW_END, 0, STR_NONE) == 0);
	fx_settle();
	CHECK(count(GW_POLICY) == 2 && count(GW_LIST) == 0 && !fx_came(me, MSG_C_END));
	CHECK(conn_send(&fx_gateway.conn, GW_POLICY_SET, 0, STR_NONE) == 0);
	CHECK(fx_await(me, MSG_C_POLICY_SET)->chan == 1);
	fx_settle();
	CHECK(count(GW_LIST) == 1 && count(GW_POLICY) == 2);
	CHECK(conn_send(&fx_gateway.conn, GW_END, 0, STR_NONE) == 0);
	CHECK(fx_await(me, MSG_C_END)->chan == 2);
	fx_settle();
	CHECK(conn_send(&fx_gateway.conn, GW_POLICY_SET, 0, STR_NONE) == 0);
	CHECK(fx_await(me, MSG_C_POLICY_SET)->chan == 3);
	fx_end();
}

static void one_that_dies_is_started_again_with_the_last_policy(void)
{
	begin();
	fx_gateway.mute = true;
	ask_policy(1, "second");
	fx_settle();
	conn_done(&fx_gateway.conn);
	fx_await_error(me, "the gateway died");
	fx_settle();
	CHECK(fx_gateway.started == 2 && memcmp(fx.w->net->policy, "policy", 6) == 0);
	/* The delay grows after a second early death. */
	conn_done(&fx_gateway.conn);
	fx_settle();
	CHECK(fx_gateway.started == 2);
	ask_policy(2, "third");
	fx_await_error(me, "started again");
	fx_pass_ms(200);
	CHECK(fx_gateway.started == 3 && !fx.ended);
	fx_end();
}

static void who_asked_may_be_gone(void)
{
	struct fx_client *other;

	begin();
	fx_gateway.mute = true;
	other = fx_connect(false);
	CHECK(fx_send_raw(other, MSG_C_NET, 2, STR_NONE) == 0);
	fx_settle();
	fx_hang_up(other);
	fx_settle();
	CHECK(conn_send(&fx_gateway.conn, GW_END, 0, STR_NONE) == 0);
	fx_settle();
	CHECK(!fx.ended);
	fx_end();
}

/* The gateway reads hostile bytes, and may have become hostile itself. */
static void whatever_it_says_the_sandbox_goes_on(void)
{
	begin();
	for (int type = 0; type < 256; type++) {
		if (!fx_gateway.conn.loop) {
			fx_pass_ms(6000);
			CHECK(fx_gateway.conn.loop);
		}
		(void)conn_send(&fx_gateway.conn, (uint8_t)type, (uint32_t)type << 24, STR_NONE);
		(void)conn_send(&fx_gateway.conn, (uint8_t)type, 1, STR("\1\0\377\377\377\377x"));
		fx_settle();
		CHECK(!fx.ended);
	}
	fx_end();
}

static void without_a_network_there_is_nothing_to_ask(void)
{
	fx_begin();
	fx_build(&(struct fx_want){ 0 });
	fx_lease(me);
	ask_policy(1, "second");
	fx_await_error(me, "no network");
	CHECK(fx_send_raw(me, MSG_C_NET, 2, STR_NONE) == 0);
	fx_await_error(me, "no network");
	fx_end();
}

static void begin_ready(bool network)
{
	fx_begin();
	fx_build(&(struct fx_want){ .network = network, .ready = true });
	CHECK(fx_send_raw(me, MSG_C_KEEP, 0, STR_NONE) == 0);
	fx_settle();
}

static void that_of_a_ready_sandbox_waits_for_the_policy_of_the_owner(void)
{
	begin_ready(true);
	CHECK(fx_gateway.started == 1 && fx_gateway.ngot == 0);
	/* Whatever it says before, nothing is written. */
	for (int type = 0; type < 256; type++)
		(void)conn_send(&fx_gateway.conn, (uint8_t)type, 1, STR("x"));
	fx_settle();
	CHECK(!fx.ended && !fx_exists("trace.jsonl"));
	FX_SEND(me, MSG_C_CLAIM, 0, { TAG_READY_DIR, 0, "ready" }, { TAG_NET_POLICY, 0, "theirs" },
		{ TAG_NAMESERVER, 0, "127.0.0.1" });
	(void)fx_await(me, MSG_C_READY);
	fx_settle();
	CHECK(fx_gateway.started == 1 && fx_gateway.got[0] == GW_CONFIG &&
	      fx_gateway.got[1] == GW_POLICY);
	CHECK(memcmp(fx.w->net->policy, "theirs", 6) == 0 && fx_exists("policy"));
	/* From now on a death is no end. */
	conn_done(&fx_gateway.conn);
	fx_settle();
	CHECK(fx_gateway.started == 2 && !fx.ended);
	fx_end();
}

static void a_claim_without_a_policy_gets_no_network(void)
{
	begin_ready(true);
	FX_SEND(me, MSG_C_CLAIM, 0, { TAG_READY_DIR, 0, "ready" });
	fx_await_error(me, "no policy for the network");
	CHECK(fx_gateway.ngot == 0);
	fx_await_end("it could not be given to its owner");
	fx_end();
	begin_ready(false);
	FX_SEND(me, MSG_C_CLAIM, 0, { TAG_READY_DIR, 0, "ready" }, { TAG_NET_POLICY, 0, "policy" });
	fx_await_error(me, "without a network gets none");
	CHECK(fx_gateway.started == 0);
	fx_await_end("it could not be given to its owner");
	fx_end();
}

static void a_ready_sandbox_ends_with_its_gateway(void)
{
	begin_ready(true);
	conn_done(&fx_gateway.conn);
	fx_await_end("its gateway died");
	CHECK(fx_gateway.started == 1);
	fx_end();
}

T_MAIN(T(that_of_a_ready_sandbox_waits_for_the_policy_of_the_owner),
       T(a_claim_without_a_policy_gets_no_network), T(a_ready_sandbox_ends_with_its_gateway),
       T(it_gets_its_policy_first), T(one_that_cannot_be_started_is_no_sandbox),
       T(a_policy_is_kept_when_the_gateway_has_it), T(requests_are_answered_in_their_order),
       T(one_that_dies_is_started_again_with_the_last_policy), T(who_asked_may_be_gone),
       T(whatever_it_says_the_sandbox_goes_on), T(without_a_network_there_is_nothing_to_ask))
