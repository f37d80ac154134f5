/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes.h"

#include <errno.h>

#include "base/clock.h"
#include "warden/changes/changes_merge.h"

enum { WALK_SHARE = 30, WALK_FREE_NS = 1000000 };

struct changes {
	int dirfd; /* borrowed */
	int nroots;
	struct changes_index index; /* empty until the first walk is done */
	uint64_t due_ns;	    /* clock_mono_ns() at which the next walk is due */
	struct changes_root roots[];
};

DEFINE_AUTO_PTR(struct changes, changes_free)

static void merge_free(struct changes_merge *m)
{
	changes_reader_done(&m->old);
	changes_writer_done(&m->new);
	changes_tree_done(&m->tree);
}
DEFINE_AUTO_PTR(struct changes_merge, merge_free)

static struct changes_merge *merge_new(struct changes *c, struct changes_report *report)
{
	/*
	 * Static and not cleared: it has a number per level, more than a small walk touches. Heap
	 * memory would be mapped and unmapped for each walk.
	 */
	static struct changes_merge merge;
	struct changes_merge *m = &merge;

	changes_reader_init(&m->old, &c->index);
	changes_writer_init(&m->new, c->dirfd, &c->index);
	changes_tree_init(&m->tree);
	m->report = report;
	return m;
}

/* On failure the index stays unchanged: the next walk finds the same differences again. */
static int walk(struct changes *c, struct changes_report *report, const struct changes_sink *to,
		struct err *e)
{
	auto_done(merge_free) struct changes_merge *m = merge_new(c, report);
	int r = changes_merge(m, c->roots, c->nroots);

	if (r == 0 && report && report->ndiffs)
		r = changes_report_match(report);
	if (r < 0)
		return err_sys(e, -r, "cannot look for changed files");
	if (report && changes_report_emit(report, to, m->tree.unlisted, e) < 0)
		return -1;
	r = changes_writer_commit(&m->new, &c->index);
	return r < 0 ? err_sys(e, -r, "cannot write the index of files") : 0;
}

int changes_new(int dirfd, const struct changes_root *roots, int nroots, struct changes **ret,
		struct err *e)
{
	size_t size = sizeof(struct changes) + (size_t)nroots * sizeof *roots;
	auto_done(changes_free) struct changes *c = malloc(size);

	if (!c)
		return err_sys(e, ENOMEM, "cannot watch for changed files");
	*c = (struct changes){ .dirfd = dirfd, .nroots = nroots, .index = CHANGES_INDEX_INIT };
	for (int i = 0; i < nroots; i++)
		c->roots[i] = roots[i];
	if (walk(c, NULL, NULL, e) < 0)
		return -1;
	*ret = TAKE_PTR(c);
	return 0;
}

void changes_free(struct changes *c)
{
	if (!c)
		return;
	changes_index_done(&c->index);
	free(c);
}

uint64_t changes_due(const struct changes *c)
{
	uint64_t now = clock_mono_ns();

	return now < c->due_ns ? c->due_ns - now : 0;
}

int changes_walk(struct changes *c, const struct changes_call *calls, int ncalls, struct trace *t,
		 uint64_t (*parent_of)(void *ctx, uint32_t call), void *ctx, struct err *e)
{
	struct changes_sink to = { .trace = t, .parent_of = parent_of, .ctx = ctx };
	auto_done(changes_report_done) struct changes_report report;
	uint64_t start = clock_mono_ns(), end;
	int r = changes_report_init(&report, c->roots, calls, (uint32_t)ncalls);

	if (r < 0)
		return err_sys(e, -r, "cannot look for changed files");
	r = walk(c, &report, &to, e);
	end = clock_mono_ns();
	c->due_ns = end - start < WALK_FREE_NS ? 0 : end + WALK_SHARE * (end - start);
	return r;
}
