/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/patch.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "diff/binary.h"
#include "diff/lines.h"

enum { CONTEXT = 3 };
#define MOST_BYTES (1ull << 30) /* of one file: git accepts no larger patches */

static const char no_oid[] = "0000000000000000000000000000000000000000";

struct sides {
	struct blob old, new;
};

static void sides_done(struct sides *s)
{
	blob_done(&s->old);
	blob_done(&s->new);
}
DEFINE_AUTO(struct sides, sides_done)

static bool is_too_large(const struct sides *s, struct patch_counts *n)
{
	n->omitted_content = s->old.size > MOST_BYTES || s->new.size > MOST_BYTES;
	n->omitted |= n->omitted_content;
	return n->omitted_content;
}

static int hash_both(struct sides *s)
{
	int r = blob_hash(&s->old);

	return r < 0 ? r : blob_hash(&s->new);
}

static bool in_git(mode_t mode)
{
	return S_ISREG(mode) || S_ISLNK(mode);
}

static unsigned git_mode(mode_t mode)
{
	return S_ISLNK(mode) ? 0120000 : mode & 0100 ? 0100755 : 0100644;
}

/* Writes a name like git: quoted as in C if it contains special characters. */
static void put_name(FILE *f, const char *side, const char *prefix, const char *path)
{
	const char *parts[] = { side, prefix, path };
	bool quote = false;

	for (int i = 0; i < 3; i++)
		for (const char *p = parts[i]; *p; p++)
			quote |= *p < 0x20 || *p == 0x7f || *p == '"' || *p == '\\';
	if (quote)
		putc('"', f);
	for (int i = 0; i < 3; i++)
		for (const char *p = parts[i]; *p; p++) {
			if (*p == '"' || *p == '\\')
				fprintf(f, "\\%c", *p);
			else if (*p < 0x20 ||
				 *p == 0x7f) /* char is signed: covers bytes above 0x7f */
				fprintf(f, "\\%03o", (uint8_t)*p);
			else
				putc(*p, f);
		}
	if (quote)
		putc('"', f);
}

static void put_file_line(FILE *f, const char *mark, const char *side, const char *prefix,
			  const char *path, bool none)
{
	fputs(mark, f);
	if (none)
		fputs("/dev/null", f);
	else
		put_name(f, side, prefix, path);
	/* Without the tab, the name would end at its first blank. */
	fputs(!none && strpbrk(path, " \t") ? "\t\n" : "\n", f);
}

static void put_lines(FILE *f, char mark, const struct lines *l, uint32_t from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct str line = lines_get(l, from + i, 1);

		putc(mark, f);
		(void)fwrite(line.p, 1, line.n, f);
		if (line.p[line.n - 1] != '\n')
			fputs("\n\\ No newline at end of file\n", f);
	}
}

/* Writes edits [first, last) as one hunk with context. */
static void put_hunk(FILE *f, const struct lines *a, const struct lines *b, const struct edits *e,
		     uint32_t first, uint32_t last)
{
	const struct edit *x = &e->v[first], *y = &e->v[last - 1];
	uint32_t before = x->a < CONTEXT ? x->a : CONTEXT;
	uint32_t rest = a->n - (y->a + y->n_a), after = rest < CONTEXT ? rest : CONTEXT;
	uint32_t a0 = x->a - before, b0 = x->b - before;
	uint32_t na = y->a + y->n_a + after - a0, nb = y->b + y->n_b + after - b0;
	uint32_t at = a0;

	fprintf(f, "@@ -%u,%u +%u,%u @@\n", a0 + (na > 0), na, b0 + (nb > 0), nb);
	for (uint32_t i = first; i < last; i++) {
		put_lines(f, ' ', a, at, e->v[i].a - at);
		put_lines(f, '-', a, e->v[i].a, e->v[i].n_a);
		put_lines(f, '+', b, e->v[i].b, e->v[i].n_b);
		at = e->v[i].a + e->v[i].n_a;
	}
	put_lines(f, ' ', a, at, after);
}

static void put_hunks(FILE *f, const struct lines *a, const struct lines *b, const struct edits *e)
{
	for (uint32_t i = 0, k; i < e->n; i = k) {
		for (k = i + 1; k < e->n; k++)
			if (e->v[k].a - (e->v[k - 1].a + e->v[k - 1].n_a) > 2 * CONTEXT)
				break;
		put_hunk(f, a, b, e, i, k);
	}
}

static int put_binary(FILE *f, const struct sides *s)
{
	int r;

	fputs("GIT binary patch\n", f);
	r = binary_literal(f, &s->new);
	return r < 0 ? r : binary_literal(f, &s->old);
}

/* One change in git's form. The mode is 0 on a side where the file does not exist. */
struct change {
	const struct diff_entry *en;
	const char *prefix, *old_path, *new_path;
	unsigned old_mode, new_mode; /* 0: none */
};

static void put_header(FILE *f, const struct change *c)
{
	fputs("diff --git ", f);
	put_name(f, "a/", c->prefix, c->old_path);
	putc(' ', f);
	put_name(f, "b/", c->prefix, c->new_path);
	putc('\n', f);
	if (!c->old_mode)
		fprintf(f, "new file mode %06o\n", c->new_mode);
	else if (!c->new_mode)
		fprintf(f, "deleted file mode %06o\n", c->old_mode);
	else if (c->old_mode != c->new_mode)
		fprintf(f, "old mode %06o\nnew mode %06o\n", c->old_mode, c->new_mode);
	if (c->en->kind == DIFF_RENAMED) {
		fprintf(f, "similarity index %d%%\nrename from ", c->en->percent);
		put_name(f, "", c->prefix, c->old_path);
		fputs("\nrename to ", f);
		put_name(f, "", c->prefix, c->new_path);
		putc('\n', f);
	}
}

static int put_content(FILE *f, const struct change *c, const struct sides *s,
		       struct patch_counts *n)
{
	auto_done(lines_done) struct lines a = { 0 }, b = { 0 };
	auto_done(edits_done) struct edits e = { 0 };
	int r;

	if (f) {
		fprintf(f, "index %s..%s", c->old_mode ? s->old.oid : no_oid,
			c->new_mode ? s->new.oid : no_oid);
		if (c->old_mode && c->old_mode == c->new_mode)
			fprintf(f, " %06o", c->new_mode);
		putc('\n', f);
	}
	if (s->old.binary || s->new.binary) {
		n->binary = true;
		return f ? put_binary(f, s) : 0;
	}
	r = lines_split(buf_str(&s->old.data), &a);
	if (r == 0)
		r = lines_split(buf_str(&s->new.data), &b);
	if (r == 0)
		r = lines_diff(&a, &b, &e);
	if (r < 0 || !e.n)
		return r;
	n->added += e.added;
	n->removed += e.removed;
	if (!f)
		return 0;
	put_file_line(f, "--- ", "a/", c->prefix, c->old_path, !c->old_mode);
	put_file_line(f, "+++ ", "b/", c->prefix, c->new_path, !c->new_mode);
	put_hunks(f, &a, &b, &e);
	return 0;
}

/*
 * Counts the lines of a file that has no other side, without keeping its text. 1: counted; 0: it is
 * binary or too large.
 */
static int count_lines(int fd, size_t *ret)
{
	static char text[64 * 1024];
	size_t all = 0, lines = 0;
	char last = '\n';

	for (;;) {
		ssize_t n = read(fd, text, sizeof text);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		all += (size_t)n;
		if (all > LIMIT_DIFF_TEXT || memchr(text, 0, (size_t)n))
			return 0;
		for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + n - at))); at++)
			lines++;
		last = text[n - 1];
	}
	*ret = lines + (last != '\n');
	return 1;
}

static int count_one_sided(const struct diff *d, const struct diff_entry *en, bool new,
			   struct patch_counts *n)
{
	auto_close int fd = new ? diff_open_new(d, en) : diff_open_old(d, en);
	size_t lines = 0;
	int r = fd < 0 ? fd : count_lines(fd, &lines);

	if (r < 0)
		return r;
	n->binary |= r == 0;
	n->added += new ? lines : 0;
	n->removed += new ? 0 : lines;
	return 0;
}

/* Writes one side of the entry only, for a file that replaces a file of another type. */
static int one_sided(FILE *f, const struct diff *d, const struct diff_entry *en, const char *prefix,
		     bool new, struct patch_counts *n)
{
	auto_done(sides_done) struct sides s = { .old.fd = FD_NONE, .new.fd = FD_NONE };
	struct blob *b = new ? &s.new : &s.old;
	const mode_t mode = new ? en->new.mode : en->old.mode;
	struct change c = {
		.en = en, .prefix = prefix, .old_path = en->path, .new_path = en->path
	};
	int r;

	if (!in_git(mode)) {
		n->omitted |= mode != 0 && !S_ISDIR(mode);
		return 0;
	}
	if (!f && S_ISREG(mode))
		return count_one_sided(d, en, new, n);
	*(new ? &c.new_mode : &c.old_mode) = git_mode(mode);
	r = blob_load(d, en, new, b);
	if (r == 0 && f && !is_too_large(&s, n))
		r = blob_hash(b);
	if (r < 0 || n->omitted_content)
		return r;
	if (f)
		put_header(f, &c);
	return put_content(f, &c, &s, n);
}

static int two_sided(FILE *f, const struct diff *d, const struct diff_entry *en, const char *prefix,
		     struct patch_counts *n)
{
	auto_done(sides_done) struct sides s = { .old.fd = FD_NONE, .new.fd = FD_NONE };
	struct change c = {
		.en = en,
		.prefix = prefix,
		.old_path = diff_old_path(en),
		.new_path = en->path,
		.old_mode = git_mode(en->old.mode),
		.new_mode = git_mode(en->new.mode),
	};
	int r = 0;

	n->omitted |= (en->mode && c.old_mode == c.new_mode) || en->owner || en->xattr;
	if (!en->content && c.old_mode == c.new_mode && en->kind != DIFF_RENAMED)
		return 0;
	if (en->content) {
		r = blob_load(d, en, false, &s.old);
		if (r == 0)
			r = blob_load(d, en, true, &s.new);
		if (r == 0 && f && !is_too_large(&s, n))
			r = hash_both(&s);
	}
	if (r < 0 || n->omitted_content)
		return r;
	if (f)
		put_header(f, &c);
	return en->content ? put_content(f, &c, &s, n) : 0;
}

static int put(FILE *f, const struct diff *d, const struct diff_entry *en, const char *prefix,
	       struct patch_counts *n)
{
	int r = 0;

	n->host_changed = f && en->host_changed;
	if (n->host_changed)
		return 0;
	if (in_git(en->old.mode) && in_git(en->new.mode) && en->kind != DIFF_TYPE)
		return two_sided(f, d, en, prefix, n);
	/* Git does not track directories: the files inside show the rename. */
	if (S_ISDIR(en->old.mode) && S_ISDIR(en->new.mode))
		n->omitted = en->kind != DIFF_RENAMED || en->mode || en->owner || en->xattr;
	if (en->old.mode)
		r = one_sided(f, d, en, prefix, false, n);
	if (r == 0 && en->new.mode)
		r = one_sided(f, d, en, prefix, true, n);
	return r;
}

int patch_write(FILE *f, const struct diff *d, const struct diff_entry *en, const char *prefix,
		struct patch_counts *ret, struct err *e)
{
	int r;

	*ret = (struct patch_counts){ 0 };
	r = put(f, d, en, prefix, ret);
	if (r == -ESTALE) {
		(void)err_set(e, ERR_CONFLICT, "'%.300s' changed while it was read", en->path);
		return err_code(e, "file.changing", NULL);
	}
	return r < 0 ? err_sys(e, -r, "read '%.300s'", en->path) : 0;
}

int patch_count(const struct diff *d, const struct diff_entry *en, struct patch_counts *ret,
		struct err *e)
{
	return patch_write(NULL, d, en, "", ret, e);
}
