/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/create.h"

#include <errno.h>
#include <stdlib.h>

#include "ops/create/creation.h"

/* A directory copy is made durable separately, before any row refers to it. */
static bool is_copying(const struct create_spec *specs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (specs[i].copy)
			return true;
	return false;
}

/* Write all rows in one durable commit. */
static int begin_all(struct cay *c, struct creation *ns, const struct create_spec *specs, size_t n,
		     struct err *e)
{
	int r = 0;

	if (n == 1 || is_copying(specs, n)) {
		for (size_t i = 0; i < n && r == 0; i++)
			r = creation_create(&ns[i], &specs[i], e);
		return r;
	}
	if (cay_catalog(c, e) < 0 || catalog_batch_begin(c->catalog, e) < 0)
		return -1;
	for (size_t i = 0; i < n && r == 0; i++)
		r = creation_create(&ns[i], &specs[i], e);
	return catalog_batch_end(c->catalog, r, e);
}

static int release_all(struct cay *c, struct creation *ns, size_t n, struct err *e)
{
	int r = 0;

	if (n == 1)
		return creation_release(&ns[0], e);
	if (catalog_batch_begin(c->catalog, e) < 0)
		return -1;
	for (size_t i = 0; i < n && r == 0; i++)
		r = creation_release(&ns[i], e);
	return catalog_batch_end(c->catalog, r, e);
}

void created_fill(struct created *ret, const struct creation *n)
{
	*ret = (struct created){ .created_ns = n->row.created_ns,
				 .start_us = n->start_us,
				 .claimed = n->from == FROM_POOL,
				 .warnings = n->warnings };
	(void)str_copy(ret->id, sizeof ret->id, str_of(n->row.id));
	(void)str_copy(ret->name, sizeof ret->name, str_of(n->row.name));
	(void)str_copy(ret->template_, sizeof ret->template_, str_of(n->row.template_));
	(void)str_copy(ret->top, sizeof ret->top, str_of(n->row.top));
}

static int create_all(struct cay *c, struct creation *ns, const struct create_spec *specs, size_t n,
		      struct err *e)
{
	struct err ignored = { 0 };
	int r = begin_all(c, ns, specs, n, e);

	for (size_t i = 0; i < n && r == 0; i++)
		r = creation_await(&ns[i], e);
	if (r == 0)
		r = release_all(c, ns, n, e);
	for (size_t i = 0; i < n && r < 0; i++)
		(void)creation_destroy(&ns[i], &ignored);
	for (size_t i = 0; i < n && r == 0; i++)
		(void)catalog_note_template(c->catalog, ns[i].row.template_, "builtin", &ignored);
	return r;
}

int op_create(struct cay *c, const struct create_spec *specs, size_t n, struct created *ret,
	      struct err *e)
{
	auto_free struct creation *ns = calloc(n, sizeof *ns);
	int r;

	if (n == 0 || n > CREATE_MOST)
		return err_set(e, ERR_INVALID, "%zu sandboxes at once: 1 to %d", n, CREATE_MOST);
	if (!ns)
		return err_sys(e, ENOMEM, "make sandboxes");
	for (size_t i = 0; i < n; i++)
		creation_init(&ns[i], c);
	r = create_all(c, ns, specs, n, e);
	for (size_t i = 0; i < n; i++) {
		if (r == 0)
			created_fill(&ret[i], &ns[i]);
		creation_done(&ns[i]);
	}
	return r;
}
