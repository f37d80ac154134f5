/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/doc.h"

#include <stdarg.h>
#include <stdio.h>

enum { KEYS_MAX = 64, FIRST_NODES = 64, KEY_SHOWN = 48 };

int doc_fail(const struct doc *d, unsigned line, unsigned column, struct err *e, const char *fmt,
	     ...)
{
	char msg[sizeof e->msg];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	if (line)
		return err_set(e, ERR_INVALID, "%s:%u:%u: %s", d->file, line, column, msg);
	return err_set(e, ERR_INVALID, "%s: %s", d->file, msg);
}

static int no_memory(struct err *e)
{
	return err_sys(e, ENOMEM, "reading a policy");
}

/* Append a node to the open list or map. Returns its index, or 0. */
static unsigned node_new(struct doc *d, unsigned line, unsigned column, struct err *e)
{
	if (d->n == 0)
		d->n = 1;
	if (d->n > LIMIT_POLICY_NODES) {
		(void)doc_fail(d, line, column, e, "the document has more than %d values",
			       LIMIT_POLICY_NODES);
		return 0;
	}
	if (d->n >= d->cap) {
		unsigned cap = d->cap ? d->cap * 2 : FIRST_NODES;
		struct node *nodes = reallocarray(d->nodes, cap, sizeof *nodes);

		if (!nodes) {
			(void)no_memory(e);
			return 0;
		}
		d->nodes = nodes;
		d->cap = cap;
	}
	d->nodes[d->n] = (struct node){ .line = line, .column = column };
	return d->n++;
}

/* Attach the node to the open list or map, under the pending key. */
static void attach(struct doc *d, unsigned i)
{
	struct node *parent = d->depth ? &d->nodes[d->open[d->depth - 1]] : NULL;
	struct node *n = &d->nodes[i];

	if (!parent)
		return;
	n->key = d->key;
	n->key_n = d->keyed ? d->key_n : 0;
	n->key_line = d->key_line;
	n->key_column = d->key_column;
	d->keyed = false;
	if (parent->last)
		d->nodes[parent->last].next = i;
	else
		parent->first = i;
	parent->last = i;
	parent->count++;
}

static int keep_text(struct doc *d, struct str text, size_t *ret_at, unsigned line, unsigned column,
		     struct err *e)
{
	int r;

	*ret_at = d->text.len;
	r = buf_add_str(&d->text, text);
	if (r == -E2BIG)
		return doc_fail(d, line, column, e, "the document is too long");
	return r < 0 ? no_memory(e) : 0;
}

static const struct node *open_map(const struct doc *d)
{
	const struct node *n = d->depth ? &d->nodes[d->open[d->depth - 1]] : NULL;

	return n && n->kind == NODE_MAP ? n : NULL;
}

static int take_key(struct doc *d, struct str text, unsigned line, unsigned column, struct err *e)
{
	const struct node *map = open_map(d);

	for (unsigned i = map->first; i; i = d->nodes[i].next)
		if (str_eq(doc_key(d, &d->nodes[i]), text))
			return doc_fail(d, line, column, e, "the key '%.*s' is repeated",
					text.n < KEY_SHOWN ? (int)text.n : KEY_SHOWN, text.p);
	if (map->count >= KEYS_MAX)
		return doc_fail(d, line, column, e, "there are too many keys");
	if (keep_text(d, text, &d->key, line, column, e) < 0)
		return -1;
	d->key_n = text.n;
	d->key_line = line;
	d->key_column = column;
	d->keyed = true;
	return 0;
}

int doc_add(struct doc *d, struct str text, bool is_null, unsigned line, unsigned column,
	    struct err *e)
{
	unsigned i;

	if (open_map(d) && !d->keyed)
		return take_key(d, text, line, column, e);
	i = node_new(d, line, column, e);
	if (!i || keep_text(d, text, &d->nodes[i].text, line, column, e) < 0)
		return -1;
	d->nodes[i].text_n = text.n;
	d->nodes[i].is_null = is_null;
	attach(d, i);
	return 0;
}

int doc_open(struct doc *d, enum node_kind kind, unsigned line, unsigned column, struct err *e)
{
	unsigned i;

	if (open_map(d) && !d->keyed)
		return doc_fail(d, line, column, e, "a key must be plain text");
	if (d->depth == LIMIT_POLICY_DEPTH)
		return doc_fail(d, line, column, e, "lists and maps are nested too deeply");
	i = node_new(d, line, column, e);
	if (!i)
		return -1;
	d->nodes[i].kind = kind;
	attach(d, i);
	d->open[d->depth++] = i;
	return 0;
}

void doc_close(struct doc *d)
{
	if (d->depth)
		d->depth--;
}

int doc_parse(struct doc *d, const struct policy_document *source, struct err *e)
{
	*d = (struct doc){ .file = source->file, .text = BUF_INIT(2 * LIMIT_POLICY_TEXT) };
	if (source->text.n > LIMIT_POLICY_TEXT)
		return doc_fail(d, 0, 0, e, "a policy has at most %d KiB",
				LIMIT_POLICY_TEXT / 1024);
	if (source->format == POLICY_JSON)
		return doc_read_json(d, source->text, e);
	return doc_read_yaml(d, source->text, e);
}

void doc_done(struct doc *d)
{
	free(d->nodes);
	buf_done(&d->text);
	*d = (struct doc){ 0 };
}
