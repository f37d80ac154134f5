/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/ledger.h"

#include "t.h"

static struct ledger ledger;
static const struct policy_limits ten = { .connections = 10 };

static struct policy policy_of(const struct policy_rule *rules, size_t n)
{
	return (struct policy){ .rules = rules, .nrules = n };
}

static void use(const char *id, uint64_t connections)
{
	struct meter_used *u = ledger_find(&ledger, str_of(id));

	CHECK(u);
	u->connections += connections;
}

static void a_kept_rule_continues_its_count(void)
{
	const struct policy_rule one[] = { { .id = STR("a"), .limits = ten },
					   { .id = STR("b"), .limits = ten } };
	const struct policy_rule two[] = { { .id = STR("c"), .limits = ten },
					   { .id = STR("b"), .limits = ten } };
	struct policy p = policy_of(one, 2), q = policy_of(two, 2);

	ledger_fit(&ledger, &p);
	use("a", 3);
	use("b", 4);
	ledger_fit(&ledger, &p);
	CHECK(ledger_find(&ledger, STR("a"))->connections == 3);
	ledger_fit(&ledger, &q);
	CHECK(ledger_find(&ledger, STR("b"))->connections == 4);
	CHECK(!ledger_find(&ledger, STR("a")));
	CHECK(ledger_find(&ledger, STR("c"))->connections == 0);
	ledger_fit(&ledger, &p);
	CHECK(ledger_find(&ledger, STR("a"))->connections == 0);
}

static void a_rule_without_limits_has_no_entry(void)
{
	const struct policy_rule rules[] = { { .id = STR("a") } };
	struct policy p = policy_of(rules, 1);

	ledger_fit(&ledger, &p);
	CHECK(!ledger_find(&ledger, STR("a")));
}

static void the_largest_policy_fits_also_after_another(void)
{
	static struct policy_rule rules[LIMIT_POLICY_RULES];
	static char names[LIMIT_POLICY_RULES][16];
	struct policy p = policy_of(rules, LIMIT_POLICY_RULES);

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < LIMIT_POLICY_RULES; i++) {
			(void)snprintf(names[i], sizeof names[i], "%d-%d", round, i);
			rules[i] = (struct policy_rule){ .id = str_of(names[i]), .limits = ten };
		}
		ledger_fit(&ledger, &p);
		for (int i = 0; i < LIMIT_POLICY_RULES; i++)
			CHECK(ledger_find(&ledger, str_of(names[i])));
	}
}

static void a_meter_continues_from_the_kept_count(void)
{
	struct meter_used kept = { .bytes = { 5, 6 }, .connections = 9 };
	struct meter m;

	meter_init(&m, &ten, NULL, 0);
	meter_keep(&m, &kept);
	CHECK(meter_open(&m, 0) == METER_OK && kept.connections == 10);
	CHECK(meter_open(&m, 0) == METER_CONNECTIONS && kept.connections == 10);
	meter_undo(&m);
	CHECK(kept.connections == 9 && meter_open(&m, 0) == METER_OK && m.open == 1);
	meter_add(&m, METER_DOWN, 4, 0);
	CHECK(kept.bytes[METER_UP] == 5 && kept.bytes[METER_DOWN] == 10);
}

T_MAIN(T(a_kept_rule_continues_its_count), T(a_rule_without_limits_has_no_entry),
       T(the_largest_policy_fits_also_after_another), T(a_meter_continues_from_the_kept_count))
