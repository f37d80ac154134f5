/* SPDX-License-Identifier: Apache-2.0 */
/* Maps, lists, words and limits of a document. */
#include <stdarg.h>
#include <stdio.h>

#include "base/number.h"
#include "base/suggest.h"
#include "policy/compile_rule.h"
#include "policy/format.h"
#include "wire/frame.h"

enum { SHOWN = 64, WORD = 64 };

int compile_fail(struct compile *c, const struct node *at, const char *fmt, ...)
{
	char msg[sizeof c->e->msg];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	return doc_fail(c->d, at ? at->line : 0, at ? at->column : 0, c->e, "%s%s%s", c->where,
			c->where[0] ? ": " : "", msg);
}

/* For "%.*s" in a message. */
#define SHOW(s) (int)((s).n < SHOWN ? (s).n : SHOWN), (s).p

static int unknown(struct compile *c, const struct node *at, const char *what, struct str text,
		   const char *const *words, size_t n)
{
	struct suggest s = { 0 };
	char word[WORD], all[256] = "";
	size_t len = 0;

	if (str_copy(word, sizeof word, text)) {
		s.word = word;
		for (size_t i = 0; i < n; i++)
			suggest_offer(&s, words[i]);
	}
	if (s.best)
		return compile_fail(c, at, "unknown %s '%s'; did you mean '%s'?", what, word,
				    s.best);
	for (size_t i = 0; i < n && len < sizeof all; i++)
		len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", i ? ", " : "",
					words[i]);
	return compile_fail(c, at, "unknown %s '%.*s'; there are: %s", what, SHOW(text), all);
}

int compile_map(struct compile *c, const struct node *map, const char *const *names, size_t n,
		const struct node **ret)
{
	memset(ret, 0, n * sizeof *ret);
	if (map->kind != NODE_MAP)
		return compile_fail(c, map, "a map of keys and values is required here");
	for (const struct node *v = doc_node(c->d, map->first); v; v = doc_node(c->d, v->next)) {
		struct str key = doc_key(c->d, v);
		size_t i = 0;

		while (i < n && !str_is(key, names[i]))
			i++;
		if (i == n) {
			struct node at = { .line = v->key_line, .column = v->key_column };

			return unknown(c, &at, "key", key, names, n);
		}
		ret[i] = v;
	}
	return 0;
}

int compile_word(struct compile *c, const struct node *n, const char *what,
		 const char *const *words, size_t nwords)
{
	if (n->kind != NODE_TEXT)
		return compile_fail(c, n, "%s must be one word", what);
	for (size_t i = 0; i < nwords; i++)
		if (str_is(doc_text(c->d, n), words[i]))
			return (int)i;
	return unknown(c, n, what, doc_text(c->d, n), words, nwords);
}

int compile_items(struct compile *c, const struct node *n, const char *what,
		  int (*fn)(struct compile *c, const struct node *item, void *ctx), void *ctx)
{
	if (n->kind == NODE_MAP)
		return compile_fail(c, n, "'%s' must be a list", what);
	if (n->is_null || (n->kind == NODE_LIST && n->count == 0))
		return compile_fail(c, n, "'%s' is empty", what);
	if (n->count > LIMIT_POLICY_ITEMS)
		return compile_fail(c, n, "'%s' has more than %d items", what, LIMIT_POLICY_ITEMS);
	if (n->kind == NODE_TEXT)
		return fn(c, n, ctx);
	for (const struct node *v = doc_node(c->d, n->first); v; v = doc_node(c->d, v->next)) {
		if (v->kind != NODE_TEXT || v->is_null)
			return compile_fail(c, v, "the items of '%s' must be text", what);
		if (fn(c, v, ctx) < 0)
			return -1;
	}
	return 0;
}

/* In a rate, "10M/s" means "10M". */
static int take_limit(struct compile *c, const struct node *n, const char *name, uint64_t *ret)
{
	bool rate = strncmp(name, "rate_", 5) == 0;
	bool bytes = strncmp(name, "bytes", 5) == 0 || strcmp(name, "rate_up") == 0 ||
		     strcmp(name, "rate_down") == 0;
	struct str text = doc_text(c->d, n);
	char word[WORD];
	int r = -1;

	if (rate && text.n > 2 && text.p[text.n - 2] == '/' && text.p[text.n - 1] == 's')
		text.n -= 2;
	if (n->kind == NODE_TEXT && str_copy(word, sizeof word, text))
		r = bytes ? size_parse(word, ret) : count_parse(word, ret);
	if (r == 0)
		return 0;
	return compile_fail(c, n, "%s: '%.*s' is not %s%s; leave it out for no limit", name,
			    SHOW(doc_text(c->d, n)),
			    bytes ? "a size like 500K or 2G" : "a number from 1 on",
			    rate ? ", a second" : "");
}

int compile_limits(struct compile *c, const struct node *map, bool of_rule, struct policy_limits *l)
{
#define X(tag, member, rule) #member,
	static const char *const names[] = { POLICY_LIMITS(X) };
#undef X
	const struct node *at[ARRAY_LEN(names)];
	size_t i = 0;

	if (compile_map(c, map, names, ARRAY_LEN(names), at) < 0)
		return -1;
#define X(tag, member, rule) \
	if (at[i] && of_rule && !(rule)) \
		return compile_fail(c, at[i], "%s applies to the whole sandbox, not to a rule", \
				    names[i]); \
	if (at[i] && take_limit(c, at[i], names[i], &l->member) < 0) \
		return -1; \
	i++;
	POLICY_LIMITS(X)
#undef X
	return 0;
}

int limits_put(struct buf *out, const struct policy_limits *l)
{
	int r = 0;

#define X(tag, member, rule) \
	if (r == 0 && l->member) \
		r = field_put_u64(out, tag, l->member);
	POLICY_LIMITS(X)
#undef X
	return r;
}
