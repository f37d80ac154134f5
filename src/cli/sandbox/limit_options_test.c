/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox/limit_options.h"

#include "base/cleanup.h"
#include "base/number.h"
#include "cli/cli_test.h"
#include "cli/hints.h"
#include "cli/options.h"
#include "ops/create/create_check.h"
#include "wire/frame.h"
#include "wire/proto.h"

static struct limit_opts l;
static struct opt opts[] = { LIMIT_OPTS_BUILD(l), LIMIT_OPTS_RUN(l), { 0 } };
static struct cmd cmd = { .name = "run", .synopsis = "CMD", .opts = opts, .data = true };
const struct cmd *const commands[] = { NULL };

static struct err e;
static char text[sizeof e.msg + 40]; /* the error as printed */

static int parse(const char *a, const char *b)
{
	const char *argv[] = { a, b, NULL };
	struct cmd_ctx ctx = { .cmd = &cmd };
	int r;

	l = (struct limit_opts){ 0 };
	e.field[0] = '\0';
	r = options_parse(&ctx, b ? 2 : 1, (char **)argv, &e);
	if (r == 0)
		r = limit_opts_check_call(&l, &e);
	if (r == 0) {
		struct limits_spec spec = limit_opts_spec(&l);

		r = create_limits_check(&spec, &e);
	}
	hint_message(&e, text, sizeof text);
	return r;
}

static void sizes_have_binary_units_and_decimals(void)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = { { "512M", 512ull << 20 }, { "2G", 2ull << 30 },   { "1.5G", 3ull << 29 },
		     { "64K", 64 << 10 },      { "1T", 1ull << 40 },   { "4096", 4096 },
		     { "100B", 100 },	       { "2GiB", 2ull << 30 }, { "2GB", 2ull << 30 },
		     { "2g", 2ull << 30 },     { "0.5K", 512 },	       { "1.125M", 1179648 } };
	static const char *const bad[] = { "",		"M",	"-1M",	"+1M",
					   "1 M",	" 1M",	"1.M",	"1.2345M",
					   ".5G",	"1e9",	"1MM",	"1P",
					   "0",		"0M",	"1Mi",	"18446744073709551616",
					   "99999999T", "0x10", "1,5G", "0.0001K" };
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CHECK(size_parse(good[i].text, &n) == 0);
		CHECK(n == good[i].bytes);
	}
	n = 77;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(size_parse(bad[i], &n) < 0 && n == 77);
}

static void counts_are_whole_and_numbers_are_not(void)
{
	uint64_t n = 0;

	CHECK(count_parse("64", &n) == 0 && n == 64);
	CHECK(number_parse("0.5", &n) == 0 && n == 500);
	CHECK(number_parse("2", &n) == 0 && n == 2000);
	CHECK(number_parse("1.25", &n) == 0 && n == 1250);
	n = 77;
	CHECK(count_parse("1.5", &n) < 0 && count_parse("0", &n) < 0 && count_parse("x", &n) < 0);
	CHECK(count_parse("-1", &n) < 0 && count_parse("1k", &n) < 0 && n == 77);
	CHECK(number_parse("0", &n) < 0 && number_parse("0.0", &n) < 0 && n == 77);
	CHECK(number_parse(".5", &n) < 0 && number_parse("1.2345", &n) < 0 && n == 77);
}

static void mistakes_name_the_option_and_the_value(void)
{
	CHECK(parse("--memory", "much") < 0);
	CHECK_STR(text, "--memory 'much' is not a size; write 512M, 2G or 1.5G");
	CHECK(parse("--pids", "1.5") < 0);
	CHECK_STR(text, "--pids '1.5' is not a number from 1 on");
	CHECK(parse("--cpus", "two") < 0);
	CHECK_STR(text, "--cpus 'two' is not a number; write 2, 0.5 or 1.25");
}

static void what_cannot_be_meant_is_refused(void)
{
	CHECK(parse("--memory", "512") < 0);
	CHECK_STR(text, "--memory 512 bytes: at least 4 MiB");
	CHECK(parse("--call-memory", "1M") < 0);
	CHECK(parse("--disk", "4K") < 0);
	CHECK_STR(text, "--disk 4096 bytes: at least 1 MiB");
	CHECK(parse("--pids", "3") < 0);
	CHECK_STR(text, "--pids 3: from 4 to 4194304");
	CHECK(parse("--files", "15") < 0 && parse("--files", "5000000") < 0);
	CHECK(parse("--cpus", "0.009") < 0 && parse("--cpus", "1001") < 0);
	CHECK(parse("--memory", "4M") == 0 && parse("--pids", "4") == 0);
	CHECK(parse("--files", "16") == 0 && parse("--cpus", "0.01") == 0);
}

static uint64_t sent(struct str body, uint16_t tag)
{
	struct field f;
	uint64_t v = 0;

	while (field_next(&body, &f) > 0)
		if (f.tag == tag)
			CHECK(field_u64(f, &v) == 0);
	return v;
}

static void only_what_is_set_is_sent(void)
{
	auto_done(buf_done) struct buf b = BUF_INIT(4096);
	struct limits_spec spec;

	CHECK(parse("--memory=1G", "--cpus=0.5") == 0);
	spec = limit_opts_spec(&l);
	CHECK(create_limits_put(&spec, &b) == 0);
	CHECK(sent(buf_str(&b), TAG_MEMORY) == 1 << 30);
	CHECK(sent(buf_str(&b), TAG_CPU_MILLI) == 500);
	CHECK(b.len == 2 * (2 + 4 + 8));
	buf_clear(&b);
	CHECK(parse("--call-memory=8M", "--best-effort") == 0);
	CHECK(l.call_memory == 8 << 20 && l.best_effort);
}

static void sizes_are_shown_with_their_unit(void)
{
	char t[NUMBER_TEXT];

	CHECK_STR(number_size(64 << 20, t), "64 MiB");
	CHECK_STR(number_size(3ull << 29, t), "1.5 GiB");
	CHECK_STR(number_size(512, t), "0.5 KiB");
}

T_MAIN(T(sizes_have_binary_units_and_decimals), T(counts_are_whole_and_numbers_are_not),
       T(mistakes_name_the_option_and_the_value), T(what_cannot_be_meant_is_refused),
       T(only_what_is_set_is_sent), T(sizes_are_shown_with_their_unit))
