/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "link/wait.h"
#include "policy/compile.h"
#include "policy/describe.h"
#include "store/snapshots.h"

static bool is_json(struct str name, struct str text)
{
	static const struct str ext = STR(".json");

	/* JSON is YAML, but not every YAML reader accepts all of it. An object begins with '{'. */
	if (name.n > ext.n && memcmp(name.p + name.n - ext.n, ext.p, ext.n) == 0)
		return true;
	return text.n > 1 && text.p[0] == '{' && (text.p[1] == '"' || text.p[1] == '\n');
}

static int no_preset(const char *name, struct err *e)
{
	struct suggest s = { .word = name };
	const struct policy_preset *p;

	for (size_t i = 0; (p = policy_preset_at(i)); i++)
		suggest_offer(&s, p->name);
	if (s.best)
		(void)err_set(e, ERR_NOT_FOUND, "no preset '%s'; did you mean '%s'?", name, s.best);
	else
		(void)err_set(e, ERR_NOT_FOUND, "no preset '%s'", name);
	return err_code(e, "policy.preset", name);
}

static int add_base(struct policy_builder *b, const struct policy_spec *s, struct err *e)
{
	const char *name = s->preset ? s->preset : "none";
	const struct policy_preset *p;

	if (s->file) {
		const struct policy_document d = {
			.file = s->file,
			.text = s->text,
			.format = is_json(str_of(s->file), s->text) ? POLICY_JSON : POLICY_YAML,
		};

		return policy_add_document(b, &d, e);
	}
	p = policy_preset_find(str_of(name));
	return p ? policy_add_preset(b, p, e) : no_preset(name, e);
}

static int add_targets(struct policy_builder *b, enum policy_action action,
		       const struct text_list *list, struct err *e)
{
	for (int i = 0; i < list->n; i++)
		if (policy_add_target(b, action, list->items[i], e) < 0)
			return -1;
	return 0;
}

int op_policy_compile(const struct policy_spec *s, struct buf *ret_compiled, struct policy **ret,
		      struct err *e)
{
	auto_done(policy_builder_done) struct policy_builder b;
	int r;

	policy_builder_init(&b);
	if (add_targets(&b, POLICY_ACT_DENY, &s->deny, e) < 0 ||
	    add_targets(&b, POLICY_ACT_ALLOW, &s->allow, e) < 0 || add_base(&b, s, e) < 0 ||
	    policy_build(&b, ret_compiled, e) < 0)
		return -1;
	if (!ret)
		return 0;
	r = policy_decode(buf_str(ret_compiled), ret);
	return r < 0 ? err_sys(e, -r, "the compiled policy cannot be read") : 0;
}

/* Writes the recipe with this policy. 1; 0 if it has no policy and so no network; or -errno. */
static int rewrite(struct str recipe, struct str policy, struct buf *out)
{
	struct field f;
	int found = 0, r;

	while ((r = field_next(&recipe, &f)) > 0) {
		bool is = f.tag == TAG_NET_POLICY;

		found |= is;
		r = field_put(out, f.tag, is ? policy : f.value);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : found;
}

/*
 * Forks inherit the policy. Store it for them first: otherwise a fork made in between could reach
 * hosts that the sandbox no longer can.
 */
static int set_policy(struct cay *c, struct link *l, const char *id, struct str policy,
		      uint64_t *ret_cut, struct err *e)
{
	auto_done(buf_done) struct buf was = BUF_INIT(LIMIT_FRAME_BODY);
	auto_done(buf_done) struct buf now = BUF_INIT(LIMIT_FRAME_BODY);
	/* No cancellation between the row and its result. */
	struct waiter steady = { .loop = c->wait.loop, .cancel_fd = FD_NONE };
	struct err ignored = { 0 };
	int r = catalog_recipe(c->catalog, id, &was, e);

	if (r < 0 && e->kind != ERR_NOT_FOUND)
		return -1;
	/* A sandbox that ends with its command has no recipe and no forks. */
	r = r < 0 ? 0 : rewrite(buf_str(&was), policy, &now);
	if (r < 0)
		return err_sys(e, -r, "write the policy for forks of '%s'", id);
	if (r > 0 && catalog_set_recipe(c->catalog, id, buf_str(&now), e) < 0)
		return -1;
	if (link_policy(l, &steady, policy, ret_cut, e) == 0)
		return 0;
	if (r > 0)
		(void)catalog_set_recipe(c->catalog, id, buf_str(&was), &ignored);
	return -1;
}

void policy_set_result_done(struct policy_set_result *r)
{
	json_decref(r->added);
	json_decref(r->removed);
	json_decref(r->dropped);
	*r = (struct policy_set_result){ 0 };
}

static json_t *json_of(struct str s)
{
	return json_stringn(s.p ? s.p : "", s.n);
}

static int note_added(void *ctx, const struct policy_rule *r, struct str text)
{
	struct policy_set_result *ret = ctx;

	(void)r;
	return json_array_append_new(ret->added, json_of(text)) < 0 ? -ENOMEM : 0;
}

/* A rule of --allow or --deny has exactly one target. */
static int note_removed(void *ctx, const struct policy_rule *r, struct str text)
{
	struct policy_set_result *ret = ctx;
	char target[LIMIT_PATH], address[CIDR_TEXT] = "";

	if (json_array_append_new(ret->removed, json_of(text)) < 0)
		return -ENOMEM;
	if (!str_is(r->origin, "--allow") && !str_is(r->origin, "--deny"))
		return 0;
	if (r->naddresses)
		cidr_text(&r->addresses[0], address);
	(void)snprintf(target, sizeof target, "%.*s %.*s%s", STR_ARG(r->origin),
		       r->nhosts ? (int)r->hosts[0].n : 0, r->nhosts ? r->hosts[0].p : "", address);
	return json_array_append_new(ret->dropped, json_string(target)) < 0 ? -ENOMEM : 0;
}

static int compare(const struct policy *was, struct str compiled, struct policy_set_result *ret)
{
	auto_done(policy_free) struct policy *is = NULL;
	int r = policy_decode(compiled, &is);

	ret->added = json_array();
	ret->removed = json_array();
	ret->dropped = json_array();
	if (r == 0)
		r = policy_each_added(was, is, note_added, ret);
	if (r == 0 && was)
		r = policy_each_added(is, was, note_removed, ret);
	return r;
}

int op_policy_set(struct cay *c, const char *ref, struct str compiled,
		  struct policy_set_result *ret, struct err *e)
{
	auto_done(sandbox_row_done) struct sandbox_row row = { 0 };
	auto_done(policy_record_done) struct policy_record was = { 0 };
	auto_done(policy_set_result_done) struct policy_set_result r = { 0 };
	auto_done(link_free) struct link *l = NULL;
	int failed;

	if (cay_catalog(c, e) < 0 || catalog_find(c->catalog, ref, &row, e) < 0 ||
	    link_connect(&c->wait, &c->state, row.id, &l, e) < 0)
		return -1;
	/* A warden of version 2 has no lease and needs none. */
	if (link_lease(l, &c->wait, e) < 0 && strcmp(e->code, "lease.none") != 0)
		return -1;
	/* Compare before the change: a later error would hide that the policy was set. */
	if (policy_record_now(c, row.id, &was, e) < 0)
		return -1;
	failed = compare(was.now, compiled, &r);
	if (failed < 0)
		return err_sys(e, -failed, "compare the policies of sandbox '%s'", row.id);
	if (set_policy(c, l, row.id, compiled, &r.cut, e) < 0)
		return -1;
	*ret = r;
	r = (struct policy_set_result){ 0 };
	return 0;
}

static void put_array(struct json *j, const char *key, const json_t *array)
{
	auto_free char *text = json_dumps(array, JSON_COMPACT);

	json_put_raw(j, key, text ? str_of(text) : STR("[]"));
}

void json_policy_set(struct json *j, const struct policy_set_result *r)
{
	json_obj(j);
	json_put_u64(j, "connections_cut", r->cut);
	put_array(j, "added", r->added);
	put_array(j, "removed", r->removed);
	json_end(j);
}
