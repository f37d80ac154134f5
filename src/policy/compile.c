/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/compile.h"

#include <stdio.h>

#include "base/suggest.h"
#include "policy/compile_rule.h"
#include "policy/format.h"
#include "wire/frame.h"
#include "wire/host.h"

enum { EXTENDS_MAX = 4 };

enum top_key { T_VERSION, T_EXTENDS, T_DEFAULT, T_LIMITS, T_RULES, T_COUNT };
static const char *const top_keys[] = { "version", "extends", "default", "limits", "rules" };
static const char *const actions[] = { "deny", "allow" };

void policy_builder_init(struct policy_builder *b)
{
	*b = (struct policy_builder){ .rules = BUF_INIT(LIMIT_POLICY) };
}

void policy_builder_done(struct policy_builder *b)
{
	buf_done(&b->rules);
}

static int count_rule(struct policy_builder *b, struct err *e)
{
	if (++b->nrules > LIMIT_POLICY_RULES)
		return err_set(e, ERR_INVALID,
			       "the policy has more than %d rules, with what it "
			       "extends",
			       LIMIT_POLICY_RULES);
	return 0;
}

/* Ids in one document must differ. Compares only written ids; rule-N is by count. */
static int check_id(struct compile *c, const struct node *list, const struct node *rule)
{
	const struct node *mine = NULL;

	for (const struct node *v = doc_node(c->d, rule->first); v; v = doc_node(c->d, v->next))
		if (str_is(doc_key(c->d, v), "id"))
			mine = v;
	if (!mine)
		return 0;
	for (const struct node *r = doc_node(c->d, list->first); r != rule;
	     r = doc_node(c->d, r->next))
		for (const struct node *v = doc_node(c->d, r->first); v;
		     v = doc_node(c->d, v->next))
			if (str_is(doc_key(c->d, v), "id") &&
			    str_eq(doc_text(c->d, v), doc_text(c->d, mine)))
				return compile_fail(c, mine, "the id '%.*s' is used twice",
						    STR_ARG(doc_text(c->d, mine)));
	return 0;
}

static int add_rules(struct policy_builder *b, struct compile *c, const struct node *list,
		     bool needs_action)
{
	unsigned number = 0;

	if (list->is_null)
		return 0;
	if (list->kind != NODE_LIST)
		return compile_fail(c, list, "'rules' must be a list");
	for (const struct node *r = doc_node(c->d, list->first); r; r = doc_node(c->d, r->next)) {
		(void)snprintf(c->where, sizeof c->where, "rules[%u]", number);
		if (count_rule(b, c->e) < 0 ||
		    compile_rule(c, r, ++number, needs_action, &b->rules) < 0 ||
		    check_id(c, list, r) < 0)
			return -1;
	}
	c->where[0] = '\0';
	return 0;
}

static int take_version(struct compile *c, const struct node *n)
{
	if (n->kind == NODE_TEXT && str_is(doc_text(c->d, n), "1"))
		return 0;
	return compile_fail(c, n, "version must be 1");
}

/* The document's own values win over those that it extends. */
static int take_default(struct policy_builder *b, struct compile *c, const struct node *n)
{
	int i = compile_word(c, n, "default", actions, ARRAY_LEN(actions));

	if (i < 0)
		return -1;
	if (!b->has_def) {
		b->def = i == POLICY_ACT_ALLOW ? POLICY_ACT_ALLOW : POLICY_ACT_DENY;
		b->has_def = true;
	}
	return 0;
}

static int take_limits(struct policy_builder *b, struct compile *c, const struct node *n)
{
	struct policy_limits l = { 0 };

	if (n->is_null)
		return 0;
	if (compile_limits(c, n, false, &l) < 0)
		return -1;
#define X(tag, member, rule) b->limits.member = b->limits.member ? b->limits.member : l.member;
	POLICY_LIMITS(X)
#undef X
	return 0;
}

static int find_preset(struct compile *c, const struct node *n, const struct policy_preset **ret)
{
	const char *names[8];
	size_t count = 0;
	int i;

	for (const struct policy_preset *p;
	     count < ARRAY_LEN(names) && (p = policy_preset_at(count)); count++)
		names[count] = p->name;
	i = compile_word(c, n, "preset", names, count);
	if (i < 0)
		return -1;
	*ret = policy_preset_at((size_t)i);
	return 0;
}

static int add_document(struct policy_builder *b, const struct policy_document *source,
			const struct policy_preset *preset, unsigned depth, struct err *e);

static int add_preset(struct policy_builder *b, const struct policy_preset *p, unsigned depth,
		      struct err *e)
{
	char file[64];
	struct policy_document source = { .file = file, .text = p->text };

	(void)snprintf(file, sizeof file, "preset %s", p->name);
	return add_document(b, &source, p, depth, e);
}

static int add_document(struct policy_builder *b, const struct policy_document *source,
			const struct policy_preset *preset, unsigned depth, struct err *e)
{
	auto_done(doc_done) struct doc d = { 0 };
	struct compile c = { .d = &d, .e = e, .prefix = "" };
	const struct policy_preset *base = NULL;
	const struct node *at[T_COUNT];
	char prefix[32];

	if (doc_parse(&d, source, e) < 0)
		return -1;
	if (d.n < 2)
		return doc_fail(&d, 0, 0, e, "the document is empty");
	if (preset) {
		(void)snprintf(prefix, sizeof prefix, "%s/", preset->name);
		c.prefix = prefix;
		c.origin = source->file;
	}
	if (compile_map(&c, doc_node(&d, 1), top_keys, T_COUNT, at) < 0 ||
	    (at[T_VERSION] && take_version(&c, at[T_VERSION]) < 0) ||
	    (at[T_EXTENDS] && find_preset(&c, at[T_EXTENDS], &base) < 0) ||
	    (at[T_DEFAULT] && take_default(b, &c, at[T_DEFAULT]) < 0) ||
	    (at[T_LIMITS] && take_limits(b, &c, at[T_LIMITS]) < 0))
		return -1;
	if (at[T_RULES] &&
	    add_rules(b, &c, at[T_RULES], at[T_DEFAULT] && b->def == POLICY_ACT_ALLOW) < 0)
		return -1;
	if (base && depth == EXTENDS_MAX)
		return compile_fail(&c, at[T_EXTENDS], "presets extend each other too deeply");
	return base ? add_preset(b, base, depth + 1, e) : 0;
}

int policy_add_document(struct policy_builder *b, const struct policy_document *d, struct err *e)
{
	if (b->has_document)
		return err_set(e, ERR_INVALID, "%s: a policy is made from one document", d->file);
	b->has_document = true;
	(void)str_copy(b->name, sizeof b->name, str_of(d->file));
	return add_document(b, d, NULL, 0, e);
}

int policy_add_preset(struct policy_builder *b, const struct policy_preset *p, struct err *e)
{
	if (b->has_document)
		return err_set(e, ERR_INVALID, "preset %s: a policy is made from one document",
			       p->name);
	b->has_document = true;
	(void)str_copy(b->name, sizeof b->name, str_of(p->name));
	return add_preset(b, p, 0, e);
}

/* The port after the last colon, unless the colons belong to an IPv6 address. */
static bool split_port(struct str *text, uint16_t *ret)
{
	size_t colon = text->n;
	struct cidr c;

	if (cidr_parse(*text, &c) != -EINVAL)
		return false;
	while (colon > 0 && text->p[colon - 1] != ':')
		colon--;
	if (colon == 0 || port_parse((struct str){ text->p + colon, text->n - colon }, ret) < 0)
		return false;
	text->n = colon - 1;
	return true;
}

static int draft_target(struct draft *r, const char *target, const char **ret_why)
{
	struct str text = str_of(target);
	uint16_t port = 0;
	struct cidr c;
	int ret = 0;

	if (split_port(&text, &port))
		ret = draft_ports(r, port, port);
	if (ret < 0)
		return ret;
	if (text.n > 2 && text.p[0] == '[' && text.p[text.n - 1] == ']')
		text = (struct str){ text.p + 1, text.n - 2 };
	if (cidr_parse(text, &c) != -EINVAL)
		return draft_address(r, text, ret_why);
	return draft_host(r, text, ret_why);
}

int policy_add_target(struct policy_builder *b, enum policy_action action, const char *target,
		      struct err *e)
{
	const char *option = action == POLICY_ACT_ALLOW ? "--allow" : "--deny", *why = "";
	auto_done(draft_done) struct draft r;
	int ret;

	draft_init(&r);
	r.action = action;
	(void)snprintf(r.id, sizeof r.id, "cli/%s-%u", option + 2, ++b->ntargets);
	(void)snprintf(r.origin, sizeof r.origin, "%s", option);
	if (count_rule(b, e) < 0)
		return -1;
	ret = draft_target(&r, target, &why);
	if (ret == 0)
		ret = draft_put(&r, &b->rules, &why);
	if (ret == -EINVAL) {
		(void)err_set(e, ERR_INVALID, "%s: '%s' %s", option, target, why);
		return err_hint(e, "write HOST[:PORT], a pattern like '*.example.com', an "
				   "address or a range");
	}
	return ret < 0 ? err_sys(e, -ret, "%s '%s'", option, target) : 0;
}

int policy_build(struct policy_builder *b, struct buf *ret, struct err *e)
{
	auto_done(buf_done) struct buf limits = BUF_INIT(LIMIT_PATH);
	int r = limits_put(&limits, &b->limits);

	if (r == 0)
		r = field_put_u64(ret, P_VERSION, POLICY_FORMAT);
	if (r == 0)
		r = field_put_u64(ret, P_DEFAULT, b->def);
	if (r == 0)
		r = field_put_c(ret, P_NAME, b->name);
	if (r == 0 && limits.len)
		r = field_put(ret, P_LIMITS, buf_str(&limits));
	if (r == 0)
		r = buf_add_str(ret, buf_str(&b->rules));
	if (r == -E2BIG || ret->len > LIMIT_POLICY)
		return err_set(e, ERR_INVALID, "the policy is larger than %d KiB when compiled",
			       LIMIT_POLICY / 1024);
	return r < 0 ? err_sys(e, -r, "compiling a policy") : 0;
}
