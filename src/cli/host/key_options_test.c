/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host/key_options.h"

#include "t.h"

static struct key_limits got;
static struct err e;

static int parse(enum key_limit which, const char *text)
{
	struct key_opts o = { 0 };

	o.limits[which] = text;
	got = (struct key_limits){ 0 };
	e = (struct err){ 0 };
	return key_opts_read(&o, &got, &e);
}

static void limits_are_written_as_people_write_them(void)
{
	CHECK(parse(KEY_SANDBOXES, "20") == 0 && got.of[KEY_SANDBOXES] == 20);
	CHECK(parse(KEY_MEMORY, "8G") == 0 && got.of[KEY_MEMORY] == 8ull << 30);
	CHECK(parse(KEY_CPU_MILLI, "0.5") == 0 && got.of[KEY_CPU_MILLI] == 500);
	CHECK(parse(KEY_RATE, "60") == 0 && got.of[KEY_RATE] == 60);
	CHECK(parse(KEY_RATE, "60/min") == 0 && got.of[KEY_RATE] == 60);
	CHECK(parse(KEY_RATE, "2/s") == 0 && got.of[KEY_RATE] == 120);
	CHECK(parse(KEY_BOX_DISK, "none") == 0 && got.of[KEY_BOX_DISK] == KEY_LIMIT_NONE);
	CHECK(got.of[KEY_MEMORY] == 0 && got.scope == 0);
}

static void others_are_refused_with_the_name_of_the_option(void)
{
	static const struct {
		enum key_limit which;
		const char *text, *says;
	} rows[] = {
		{ KEY_SANDBOXES, "0", "--max-sandboxes '0'" },
		{ KEY_SANDBOXES, "-1", "--max-" },
		{ KEY_SANDBOXES, "many", "or none" },
		{ KEY_RATE, "60/hour", "--rate" },
		{ KEY_RATE, "/min", "--rate" },
		{ KEY_RATE, "0/min", "--rate" },
		{ KEY_RATE, "9223372036854775807/s", "--rate" },
		{ KEY_MEMORY, "8X", "--memory" },
		{ KEY_CALLS, "", "--calls" },
		{ KEY_BOX_MEMORY, "1K", "at least" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK(parse(rows[i].which, rows[i].text) < 0 && e.kind == ERR_INVALID);
		CHECK(strstr(e.msg, rows[i].says));
	}
}

static void scopes_are_a_list(void)
{
	struct key_opts o = { .scope = "read,create" };

	CHECK(key_opts_read(&o, &got, &e) == 0 && got.scope == (SCOPE_READ | SCOPE_CREATE));
	o.scope = "run";
	CHECK(key_opts_read(&o, &got, &e) == 0 && got.scope == SCOPE_ALL);
	o.scope = "root";
	CHECK(key_opts_read(&o, &got, &e) < 0 && strstr(e.msg, "--scope 'root'"));
}

T_MAIN(T(limits_are_written_as_people_write_them),
       T(others_are_refused_with_the_name_of_the_option), T(scopes_are_a_list))
