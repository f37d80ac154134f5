/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/patch_show.h"

#include "t.h"

static void check(const char *in, size_t piece, const char *want)
{
	char *out = NULL;
	size_t n = 0, size = strlen(in);
	FILE *to = open_memstream(&out, &n), *f;

	CHECK(to);
	f = patch_show_open(to);
	CHECK(f);
	for (size_t i = 0; i < size; i += piece) {
		CHECK(fwrite(in + i, 1, size - i < piece ? size - i : piece, f) > 0);
		CHECK(fflush(f) == 0);
	}
	CHECK(fclose(f) == 0 && fclose(to) == 0);
	CHECK_STR(out, want);
	free(out);
}

static void lines_and_tabs_stay_and_controls_are_shown(void)
{
	for (size_t piece = 1; piece < 9; piece++) {
		check("+\tab\n-\x1b]0;x\a\r\n", piece, "+\tab\n-\\x1b]0;x\\a\\r\n");
		check("+\xc3\xa9 \xc2\x9b \xff\n", piece, "+\xc3\xa9 \\u009b \\xff\n");
		check("no end \xe2\x82\xac", piece, "no end \xe2\x82\xac");
	}
}

static void a_line_longer_than_the_buffer_passes(void)
{
	static char in[200001], want[200001];

	memset(in, 'x', sizeof in - 1);
	memset(want, 'x', sizeof want - 1);
	check(in, sizeof in, want);
}

T_MAIN(T(lines_and_tabs_stay_and_controls_are_shown), T(a_line_longer_than_the_buffer_passes))
