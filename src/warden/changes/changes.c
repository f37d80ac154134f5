/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/changes/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "warden/changes/changes_state.h"

enum { WALK_SHARE = 30, WALK_FREE_NS = 1000000 };

DEFINE_AUTO_PTR(struct changes, changes_free)

void changes_merge_free(struct changes_merge *m)
{
	changes_reader_done(&m->old);
	changes_writer_done(&m->new);
	changes_tree_done(&m->tree);
}

struct changes_merge *changes_merge_new(const struct changes *c, struct changes_report *report)
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
	m->only_short = false;
	m->entries = 0;
	return m;
}

/* Comparing a moved directory with the lower one may read many files. */
static bool may_have_moved(const struct changes_report *p)
{
	bool gone = false, new = false;

	for (uint32_t i = 0; i < p->ndiffs; i++) {
		const struct changes_diff *d = &p->diffs[i];

		gone |= d->kind == CHANGES_GONE_LOWER && S_ISDIR(d->mode);
		new |= d->kind == CHANGES_NEW &&S_ISDIR(d->mode);
	}
	return gone && new;
}

int changes_compare(struct changes_merge *m, const struct changes *c)
{
	int r = changes_merge(m, c->roots, c->nroots);

	if (r < 0 || !m->report || !m->report->ndiffs)
		return r;
	if (m->only_short && may_have_moved(m->report))
		return -EOVERFLOW;
	return changes_report_match(m->report);
}

static int emit_all(struct changes_report *report, uint64_t unlisted, const struct changes_sink *to,
		    struct err *e)
{
	auto_done(changes_emitter_free) struct changes_emitter *m = NULL;

	if (report->ndiffs == 0 && unlisted == 0)
		return 0;
	if (changes_emitter_new(report, unlisted, &m) < 0)
		return err_sys(e, ENOMEM, "cannot report changed files");
	return changes_emitter_some(m, to, UINT32_MAX, e);
}

/*
 * 1; 0 if only_short and the walk is long; -1. Unless it returns 1 the index stays unchanged: the
 * next walk finds the same differences again.
 */
static int walk(struct changes *c, struct changes_report *report, bool only_short,
		const struct changes_sink *to, struct err *e)
{
	auto_done(changes_merge_free) struct changes_merge *m = changes_merge_new(c, report);
	int r;

	m->only_short = only_short;
	r = changes_compare(m, c);
	if (only_short && r == -EOVERFLOW)
		return 0;
	if (r < 0)
		return err_sys(e, -r, "cannot look for changed files");
	if (report && emit_all(report, m->tree.unlisted, to, e) < 0)
		return -1;
	r = changes_writer_commit(&m->new, &c->index);
	return r < 0 ? err_sys(e, -r, "cannot write the index of files") : 1;
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
	c->since_ns = clock_real_ns();
	if (walk(c, NULL, false, NULL, e) < 0)
		return -1;
	*ret = TAKE_PTR(c);
	return 0;
}

void changes_free(struct changes *c)
{
	if (!c)
		return;
	changes_index_done(&c->index);
	for (int i = 0; i < c->nfds; i++)
		fd_close(&c->fds[i]);
	free(c->fds);
	free(c->bases);
	free(c);
}

/* Duplicate *fd unless it is negative. */
static int keep_fd(struct changes *c, int *fd)
{
	int copy;

	if (*fd < 0)
		return 0;
	copy = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return -errno;
	c->fds[c->nfds++] = *fd = copy;
	return 0;
}

static int keep_root(struct changes *c, struct changes_root *root, int *layers)
{
	int r = keep_fd(c, &root->upper_fd);

	if (r == 0)
		r = keep_fd(c, &root->lower_fd);
	for (int i = 0; i < root->nlayers && r == 0; i++) {
		layers[i] = root->layers[i];
		r = keep_fd(c, &layers[i]);
	}
	if (r < 0)
		return r;
	root->layers = layers;
	if (root->base) {
		c->bases[root - c->roots] = *root->base;
		root->base = &c->bases[root - c->roots];
	}
	return 0;
}

int changes_keep(struct changes *c, struct err *e)
{
	int layers = 0, at, r = 0;

	for (int i = 0; i < c->nroots; i++)
		layers += c->roots[i].nlayers;
	/* The list of all descriptors, then the lists of layers that the roots point to. */
	at = 2 * c->nroots + layers;
	c->fds = calloc((size_t)(at + layers) + 1, sizeof *c->fds);
	c->bases = calloc((size_t)c->nroots + 1, sizeof *c->bases);
	if (!c->fds || !c->bases)
		return err_sys(e, ENOMEM, "keep the files of the last generation");
	for (int i = 0; i < c->nroots && r == 0; i++) {
		r = keep_root(c, &c->roots[i], c->fds + at);
		at += c->roots[i].nlayers;
	}
	return r < 0 ? err_sys(e, -r, "keep the files of the last generation") : 0;
}

uint64_t changes_due(const struct changes *c)
{
	uint64_t now = clock_mono_ns();

	return now < c->due_ns ? c->due_ns - now : 0;
}

void changes_walked(struct changes *c, uint64_t start_ns)
{
	uint64_t end = clock_mono_ns();

	c->due_ns = end - start_ns < WALK_FREE_NS ? 0 : end + WALK_SHARE * (end - start_ns);
}

static int walk_calls(struct changes *c, const struct changes_call *calls, int ncalls,
		      bool only_short, const struct changes_sink *to, struct err *e)
{
	auto_done(changes_report_done) struct changes_report report;
	uint64_t start = clock_mono_ns(), start_real = clock_real_ns();
	int r = changes_report_init(&report, c->roots, calls, (uint32_t)ncalls);

	if (r < 0)
		return err_sys(e, -r, "cannot look for changed files");
	report.since_ns = c->since_ns;
	r = walk(c, &report, only_short, to, e);
	if (r != 0)
		changes_walked(c, start);
	if (r > 0)
		c->since_ns = start_real;
	return r;
}

int changes_walk(struct changes *c, const struct changes_call *calls, int ncalls,
		 const struct changes_sink *to, struct err *e)
{
	return walk_calls(c, calls, ncalls, false, to, e) < 0 ? -1 : 0;
}

int changes_walk_short(struct changes *c, const struct changes_call *calls, int ncalls,
		       const struct changes_sink *to, struct err *e)
{
	/* An index on disk: the upper has more entries than a short walk visits. */
	return c->index.fd >= 0 ? 0 : walk_calls(c, calls, ncalls, true, to, e);
}
