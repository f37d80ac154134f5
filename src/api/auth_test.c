/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"

#include <errno.h>

#include "base/clock.h"
#include "t.h"

static struct auth a;

/* The keys with these ids, as a worker would send them. */
static int replace(const char *const *ids, uint64_t expires_ns)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1 << 20);
	struct key_limits limits;

	key_limits_default(&limits);
	for (; *ids; ids++) {
		struct key_row row = { .expires_ns = expires_ns };

		(void)str_copy(row.id, sizeof row.id, str_of(*ids));
		(void)str_copy(row.owner, sizeof row.owner, str_of(*ids));
		CHECK(auth_put_key(&b, &row, &limits) == 0);
	}
	return auth_replace(&a, buf_str(&b));
}

static void a_key_keeps_its_counts_when_the_list_is_read_again(void)
{
	struct auth_key *k;

	CHECK(replace((const char *const[]){ "ka", "kb", "kc", NULL }, 0) == 0 && a.known);
	k = auth_find(&a, "kb");
	CHECK(k && k->said.scope == SCOPE_ALL && k->said.calls == 1024);
	k->calls = 3;
	CHECK(replace((const char *const[]){ "kc", "kb", "kd", NULL }, 0) == 0);
	CHECK(auth_find(&a, "kb") == k && k->calls == 3 && !auth_find(&a, "ka"));
	CHECK(auth_find(&a, "kc") && auth_find(&a, "kd") && a.n == 3);
	auth_done(&a);
}

static void a_revoked_key_lives_as_long_as_it_is_used(void)
{
	struct auth_key *k;

	CHECK(replace((const char *const[]){ "ka", "kb", NULL }, 0) == 0);
	k = auth_find(&a, "ka");
	k->http.conns = 1;
	CHECK(replace((const char *const[]){ "kb", NULL }, 0) == 0);
	CHECK(!auth_find(&a, "ka") && k->revoked && a.revoked == k);
	CHECK(replace((const char *const[]){ "kb", NULL }, 0) == 0 && a.revoked == k);
	k->http.conns = 0; /* its last connection has ended */
	CHECK(replace((const char *const[]){ NULL }, 0) == 0 && a.n == 0);
	for (k = a.revoked; k; k = k->next)
		CHECK_STR(k->said.id, "kb");
	auth_done(&a);
}

static void an_expired_key_is_not_found(void)
{
	uint64_t now = clock_real_ns();

	CHECK(replace((const char *const[]){ "ka", NULL }, now + 3600 * NS_PER_S) == 0);
	CHECK(auth_find(&a, "ka") && auth_next_expiry(&a, now) == now + 3600 * NS_PER_S);
	CHECK(replace((const char *const[]){ "ka", NULL }, now - 1) == 0);
	CHECK(!auth_find(&a, "ka") && auth_next_expiry(&a, now) == 0);
	auth_done(&a);
}

static void a_list_that_is_cut_changes_nothing(void)
{
	char cut[sizeof(struct auth_said) + 1] = "ka";

	CHECK(replace((const char *const[]){ "ka", NULL }, 0) == 0);
	CHECK(auth_replace(&a, (struct str){ cut, sizeof cut }) == -EBADMSG);
	CHECK(auth_replace(&a, (struct str){ cut, sizeof cut - 2 }) == -EBADMSG);
	CHECK(auth_find(&a, "ka"));
	auth_done(&a);
}

T_MAIN(T(a_key_keeps_its_counts_when_the_list_is_read_again),
       T(a_revoked_key_lives_as_long_as_it_is_used), T(an_expired_key_is_not_found),
       T(a_list_that_is_cut_changes_nothing))
