/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/network.h"

#include <errno.h>
#include <string.h>

#include "ops/create/options.h"
#include "ops/policy.h"
#include "policy/address.h"
#include "policy/policy.h"
#include "wire/json_write.h"

enum { TARGETS_MOST = 256 };

static const char everything[] = "0.0.0.0/0";

/* ---- what was said ---- */

static int wrong(struct err *e, const char *key, const char *value, const char *what)
{
	(void)err_set(e, ERR_INVALID, "network.%s: '%.253s' %s", key, value, what);
	return err_field(e, "network.%s", key);
}

/* A rule for an address opens also what no name can: networks of the host, metadata services. */
static int check_address(const char *key, const char *text, const struct cidr *c, struct err *e)
{
	if (strcmp(text, everything) == 0 || address_classify(&c->ip).class == ADDRESS_GLOBAL)
		return 0;
	return wrong(e, key, text, "is not a public address");
}

static int check_target(const char *key, const char *text, bool names, struct err *e)
{
	struct cidr c;

	if (cidr_parse(str_of(text), &c) == 0)
		return names ? check_address(key, text, &c, e) : 0;
	if (!names)
		return wrong(e, key, text, "is neither an address nor a range");
	/* Names are checked where they are compiled. */
	return text[0] ? 0 : wrong(e, key, text, "is no name");
}

static int read_targets(const json_t *o, const char *key, bool names, const json_t **ret,
			struct err *e)
{
	const json_t *list = json_object_get(o, key);

	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list) || json_array_size(list) > TARGETS_MOST) {
		(void)err_set(e, ERR_INVALID, "network.%s must be a list of at most %d texts", key,
			      TARGETS_MOST);
		return err_field(e, "network.%s", key);
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);
		const char *text = json_string_value(v);

		if (!text || strlen(text) != json_string_length(v))
			return wrong(e, key, "", "is not a text");
		if (check_target(key, text, names, e) < 0)
			return -1;
	}
	if (json_array_size(list))
		*ret = list;
	return 0;
}

static bool is_empty(const json_t *v)
{
	return json_is_null(v) || json_is_false(v) ||
	       (json_is_object(v) && json_object_size(v) == 0) ||
	       (json_is_array(v) && json_array_size(v) == 0);
}

static int refuse_unknown(const json_t *rules, bool create, struct err *e)
{
	static const char *const known[] = { "allowOut", "denyOut",
					     "allow_internet_access", /* only of an update */
					     "allowPublicTraffic" };  /* only of a creation */
	json_t *value;
	const char *key;

	json_object_foreach((json_t *)rules, key, value)
	{
		bool found = false;

		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			found |= i != (create ? 2 : 3) && strcmp(key, known[i]) == 0;
		if (!found && !is_empty(value)) {
			(void)err_set(e, ERR_INVALID, "network.%.64s is not supported", key);
			return err_field(e, "network.%.64s", key);
		}
	}
	return 0;
}

int e2b_network_read(const json_t *rules, bool create, struct e2b_network *ret, struct err *e)
{
	ret->public_traffic = true;
	if (!rules || json_is_null(rules))
		return 0;
	if (!json_is_object(rules))
		return err_set(e, ERR_INVALID, "network must be an object");
	if (refuse_unknown(rules, create, e) < 0 ||
	    (create && field_bool(rules, "allowPublicTraffic", &ret->public_traffic, e) < 0) ||
	    (!create && field_bool(rules, "allow_internet_access", &ret->internet, e) < 0) ||
	    read_targets(rules, "allowOut", true, &ret->allow, e) < 0 ||
	    read_targets(rules, "denyOut", false, &ret->deny, e) < 0)
		return -1;
	ret->given = ret->allow || ret->deny;
	return 0;
}

/* ---- as a policy ---- */

static bool has_everything(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)), everything) == 0)
			return true;
	return false;
}

/* Those that are addresses, or those that are not, as the list `key`. */
static unsigned put_targets(struct json *j, const char *key, const json_t *list, bool addresses)
{
	unsigned n = 0;
	struct cidr c;

	json_put_arr(j, key);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if ((cidr_parse(str_of(text), &c) == 0) == addresses) {
			json_c(j, text);
			n++;
		}
	}
	/* Where all of it is meant, the other family is, too. */
	if (addresses && has_everything(list))
		json_c(j, "::/0");
	json_end(j);
	return n;
}

static unsigned count(const json_t *list, bool addresses)
{
	auto_done(buf_done) struct buf b = BUF_INIT(LIMIT_POLICY);
	struct json j;
	unsigned n;

	json_init(&j, &b);
	json_obj(&j);
	n = put_targets(&j, "n", list, addresses);
	json_end(&j);
	return n;
}

static void begin_rule(struct json *j, const char *id, const char *action)
{
	json_obj(j);
	json_put_c(j, "id", id);
	json_put_c(j, "action", action);
}

/* As openly as the preset `open`: E2B's rules know neither ports nor protocols. */
static void end_allowed(struct json *j)
{
	json_put_c(j, "ports", "1-65535");
	json_put_c(j, "protocol", "any");
	json_put_obj(j, "tls");
	json_put_bool(j, "mismatch", true);
	json_put_bool(j, "missing", true);
	json_put_bool(j, "ech", true);
	json_end(j);
	json_end(j);
}

static void put_allowed(struct json *j, const json_t *list)
{
	if (count(list, false)) {
		begin_rule(j, "allow-out-names", "allow");
		(void)put_targets(j, "hosts", list, false);
		end_allowed(j);
	}
	if (!count(list, true))
		return;
	begin_rule(j, "allow-out-addresses", "allow");
	(void)put_targets(j, "addresses", list, true);
	end_allowed(j);
	/* Names that resolve to them, too. */
	begin_rule(j, "allow-out-resolved", "allow");
	json_put_c(j, "hosts", "**");
	(void)put_targets(j, "addresses", list, true);
	end_allowed(j);
}

int e2b_network_compile(const struct e2b_network *n, struct buf *policy, struct err *e)
{
	auto_done(buf_done) struct buf text = BUF_INIT(LIMIT_POLICY);
	struct policy_spec spec = { .file = "network.json" };
	struct json j;

	json_init(&j, &text);
	json_obj(&j);
	json_put_i64(&j, "version", 1);
	json_put_c(&j, "extends", n->internet && !has_everything(n->deny) ? "open" : "none");
	json_put_arr(&j, "rules");
	put_allowed(&j, n->allow);
	if (n->deny) {
		begin_rule(&j, "deny-out", "deny");
		(void)put_targets(&j, "addresses", n->deny, true);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	if (json_done(&j) < 0)
		return err_set(e, ERR_INVALID, "the rules of the network are too long");
	spec.text = buf_str(&text);
	return op_policy_compile(&spec, policy, NULL, e);
}

bool e2b_is_private(const struct sandbox_row *row)
{
	auto_done(options_free) json_t *options = options_load(row);

	return options_has_label(options, E2B_PRIVATE_LABEL);
}

bool e2b_resumes(const struct sandbox_row *row)
{
	auto_done(options_free) json_t *options = options_load(row);

	return options_has_label(options, E2B_RESUME_LABEL);
}
