/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/lines.h"

#include "base/clock.h"
#include "t.h"

static struct edits diff_of(const struct lines *a, const struct lines *b)
{
	struct edits e;

	CHECK(lines_diff(a, b, &e) == 0);
	return e;
}

static struct lines split(struct str text)
{
	struct lines l;

	CHECK(lines_split(text, &l) == 0);
	return l;
}

/* Without the edits, the rest of both texts must be equal. */
static void check_sound(const struct lines *a, const struct lines *b, const struct edits *e)
{
	uint32_t i = 0, j = 0;

	for (uint32_t k = 0; k <= e->n; k++) {
		uint32_t stop = k < e->n ? e->v[k].a : a->n;

		for (; i < stop; i++, j++)
			CHECK(j < b->n && str_eq(lines_get(a, i, 1), lines_get(b, j, 1)));
		if (k == e->n)
			break;
		CHECK(j == e->v[k].b && e->v[k].n_a + e->v[k].n_b > 0);
		i += e->v[k].n_a;
		j += e->v[k].n_b;
	}
	CHECK(i == a->n && j == b->n);
}

static uint32_t common(const struct lines *a, const struct lines *b)
{
	static uint32_t t[64][64];

	memset(t, 0, sizeof t);
	for (uint32_t i = 1; i <= a->n; i++)
		for (uint32_t j = 1; j <= b->n; j++)
			t[i][j] = str_eq(lines_get(a, i - 1, 1), lines_get(b, j - 1, 1))
					  ? t[i - 1][j - 1] + 1
				  : t[i - 1][j] > t[i][j - 1] ? t[i - 1][j]
							      : t[i][j - 1];
	return t[a->n][b->n];
}

static void random_text(char *out, unsigned most, unsigned letters)
{
	unsigned n = (unsigned)rand() % most;

	for (unsigned i = 0; i < n; i++) {
		*out++ = (char)('a' + rand() % (int)letters);
		*out++ = '\n';
	}
	*out = '\0';
}

static void edits_are_sound_and_shortest(void)
{
	char x[256], y[256];

	srand(7);
	for (int i = 0; i < 20000; i++) {
		unsigned letters = 1 + (unsigned)rand() % 12;

		random_text(x, 40, letters);
		random_text(y, 40, letters);
		if (rand() % 4 == 0 && x[0])
			x[strlen(x) - 1] = '\0'; /* no newline at the end */
		{
			auto_done(lines_done) struct lines a = split(str_of(x)),
							   b = split(str_of(y));
			auto_done(edits_done) struct edits e = diff_of(&a, &b);

			check_sound(&a, &b, &e);
			CHECK(e.added + e.removed == a.n + b.n - 2 * common(&a, &b));
		}
	}
}

static void empty_texts_have_no_lines(void)
{
	auto_done(lines_done) struct lines a = split(STR("")), b = split(STR("x"));
	auto_done(edits_done) struct edits none = diff_of(&a, &a), one = diff_of(&a, &b);

	CHECK(a.n == 0 && none.n == 0);
	CHECK(one.n == 1 && one.v[0].n_b == 1 && one.v[0].n_a == 0);
}

static void a_missing_newline_is_a_difference(void)
{
	auto_done(lines_done) struct lines a = split(STR("x\n")), b = split(STR("x"));
	auto_done(edits_done) struct edits e = diff_of(&a, &b);

	CHECK(e.n == 1 && e.added == 1 && e.removed == 1);
}

static char *big(unsigned n, unsigned seed, unsigned values)
{
	char *text = malloc((size_t)n * 12 + 1), *p = text;

	srand(seed);
	for (unsigned i = 0; i < n; i++)
		p += sprintf(p, "%u\n", (unsigned)rand() % values);
	return text;
}

/* Half a million lines with few distinct ones: the shortest edit would take hours. */
static void texts_that_have_nothing_in_common_end_soon(void)
{
	auto_free char *x = big(500000, 1, 50), *y = big(500000, 2, 50);
	auto_done(lines_done) struct lines a = split(str_of(x)), b = split(str_of(y));
	uint64_t start = clock_mono_ns();
	auto_done(edits_done) struct edits e = diff_of(&a, &b);

	check_sound(&a, &b, &e);
	CHECK(clock_mono_ns() - start < 8 * NS_PER_S);
}

static void a_few_changes_in_a_big_text_are_found_exactly(void)
{
	auto_free char *x = big(1000000, 3, 1000), *y = big(1000000, 3, 1000);
	auto_done(lines_done) struct lines a = split(str_of(x)), b = { 0 };
	auto_done(edits_done) struct edits e = { 0 };

	for (size_t i = 1000; i < strlen(y); i += 100000)
		y[i] = y[i] == '\n' ? '\n' : 'x';
	b = split(str_of(y));
	CHECK(lines_diff(&a, &b, &e) == 0);
	check_sound(&a, &b, &e);
	CHECK(e.added == e.removed && e.added > 0 && e.added < 60);
}

T_MAIN(T(edits_are_sound_and_shortest), T(empty_texts_have_no_lines),
       T(a_missing_newline_is_a_difference), T(texts_that_have_nothing_in_common_end_soon),
       T(a_few_changes_in_a_big_text_are_found_exactly))
