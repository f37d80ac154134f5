/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document as a tree, independent of its format. Values are text: the key decides what a value
 * means, so `no` or 1e3 have no second meaning. The number of values, the depth and the size are
 * bounded. No references, tags or repeated keys.
 */
#pragma once

#include "base/buf.h"
#include "policy/compile.h"

enum node_kind { NODE_TEXT, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	unsigned line, column; /* from 1; 0: unknown */
	bool is_null;	       /* empty, or "null" */
	size_t key, key_n;     /* in a map: position of its key in doc.text */
	unsigned key_line, key_column;
	size_t text, text_n;
	unsigned first, last, next; /* indices of children and siblings; 0: none */
	unsigned count;		    /* number of children */
};

struct doc {
	const char *file;
	struct node *nodes; /* nodes[1] is the top */
	unsigned n, cap;
	struct buf text;
	unsigned open[LIMIT_POLICY_DEPTH];
	unsigned depth;
	/* the key whose value comes next */
	bool keyed;
	size_t key, key_n;
	unsigned key_line, key_column;
};

/* On failure e names the file, line and column. */
int doc_parse(struct doc *d, const struct policy_document *source, struct err *e);
void doc_done(struct doc *d);
DEFINE_AUTO(struct doc, doc_done)

static inline const struct node *doc_node(const struct doc *d, unsigned i)
{
	return i ? &d->nodes[i] : NULL;
}

static inline struct str doc_text(const struct doc *d, const struct node *n)
{
	return (struct str){ d->text.data + n->text, n->text_n };
}

static inline struct str doc_key(const struct doc *d, const struct node *n)
{
	return (struct str){ d->text.data + n->key, n->key_n };
}

/* "FILE:LINE:COLUMN: where: message". Returns -1. */
int doc_fail(const struct doc *d, unsigned line, unsigned column, struct err *e, const char *fmt,
	     ...) ERR_FMT(5, 6);

/* For the format readers: build the tree from front to back. */
int doc_add(struct doc *d, struct str text, bool is_null, unsigned line, unsigned column,
	    struct err *e);
int doc_open(struct doc *d, enum node_kind kind, unsigned line, unsigned column, struct err *e);
void doc_close(struct doc *d);
int doc_read_yaml(struct doc *d, struct str text, struct err *e);
int doc_read_json(struct doc *d, struct str text, struct err *e);
