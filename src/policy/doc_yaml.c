/* SPDX-License-Identifier: Apache-2.0 */
/* YAML (libyaml) to a tree: one document, no anchors, aliases or tags. */
#include <yaml.h>

#include "policy/doc.h"

static void parser_free(yaml_parser_t *p)
{
	yaml_parser_delete(p);
}
DEFINE_AUTO(yaml_parser_t, parser_free)

static void event_free(yaml_event_t *e)
{
	yaml_event_delete(e);
}
DEFINE_AUTO(yaml_event_t, event_free)

static unsigned line_of(const yaml_mark_t *m)
{
	return (unsigned)m->line + 1;
}

static unsigned column_of(const yaml_mark_t *m)
{
	return (unsigned)m->column + 1;
}

static int fail_at(const struct doc *d, const yaml_mark_t *m, struct err *e, const char *what)
{
	return doc_fail(d, line_of(m), column_of(m), e, "%s", what);
}

static int parse_failed(const struct doc *d, const yaml_parser_t *p, struct err *e)
{
	if (p->error == YAML_MEMORY_ERROR)
		return err_sys(e, ENOMEM, "reading a policy");
	if (p->error == YAML_READER_ERROR)
		return doc_fail(d, 0, 0, e, "byte %zu: %s", p->problem_offset, p->problem);
	return doc_fail(d, line_of(&p->problem_mark), column_of(&p->problem_mark), e, "%s%s%s",
			p->problem, p->context ? ", " : "", p->context ? p->context : "");
}

static bool is_null(const yaml_event_t *v)
{
	struct str text = { (const char *)v->data.scalar.value, v->data.scalar.length };

	if (v->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	return text.n == 0 || str_is(text, "~") || str_is(text, "null");
}

static int take_scalar(struct doc *d, const yaml_event_t *v, struct err *e)
{
	const yaml_mark_t *at = &v->start_mark;
	struct str text = { (const char *)v->data.scalar.value, v->data.scalar.length };

	if (v->data.scalar.anchor || v->data.scalar.tag)
		return fail_at(d, at, e, "anchors and tags have no meaning in a policy");
	return doc_add(d, text, is_null(v), line_of(at), column_of(at), e);
}

static int take_open(struct doc *d, enum node_kind kind, const yaml_event_t *v, bool marked,
		     struct err *e)
{
	const yaml_mark_t *at = &v->start_mark;

	if (marked)
		return fail_at(d, at, e, "anchors and tags have no meaning in a policy");
	return doc_open(d, kind, line_of(at), column_of(at), e);
}

/* 1 at the end of the stream. */
static int take_event(struct doc *d, const yaml_event_t *v, struct err *e)
{
	switch (v->type) {
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	case YAML_DOCUMENT_START_EVENT:
		if (d->n)
			return fail_at(d, &v->start_mark, e, "a second document begins here");
		return 0;
	case YAML_ALIAS_EVENT:
		return fail_at(d, &v->start_mark, e, "aliases have no meaning in a policy");
	case YAML_SCALAR_EVENT:
		return take_scalar(d, v, e);
	case YAML_SEQUENCE_START_EVENT:
		return take_open(d, NODE_LIST, v,
				 v->data.sequence_start.anchor || v->data.sequence_start.tag, e);
	case YAML_MAPPING_START_EVENT:
		return take_open(d, NODE_MAP, v,
				 v->data.mapping_start.anchor || v->data.mapping_start.tag, e);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		doc_close(d);
		return 0;
	case YAML_STREAM_END_EVENT:
		return 1;
	}
	return 1;
}

int doc_read_yaml(struct doc *d, struct str text, struct err *e)
{
	auto_done(parser_free) yaml_parser_t p;
	int r = 0;

	if (!yaml_parser_initialize(&p))
		return err_sys(e, ENOMEM, "reading a policy");
	/* Force UTF-8; otherwise the first bytes could select UTF-16. */
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p, (const unsigned char *)(text.p ? text.p : ""), text.n);
	while (r == 0) {
		auto_done(event_free) yaml_event_t v = { 0 };

		if (!yaml_parser_parse(&p, &v))
			return parse_failed(d, &p, e);
		r = take_event(d, &v, e);
	}
	return r < 0 ? -1 : 0;
}
