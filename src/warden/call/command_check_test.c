/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/call/command_check.h"

#include "base/cleanup.h"
#include "t.h"

#define STATUS(uid, caps, bound, nnp) \
	"Uid:\t" uid "\t" uid "\t" uid "\t" uid "\nCapInh:\t0000000000000000\nCapPrm:\t" caps \
	"\nCapEff:\t" caps "\nCapBnd:\t" bound "\nCapAmb:\t0000000000000000\nNoNewPrivs:\t" nnp \
	"\nSeccomp:\t2\nSeccomp_filters:\t2\n"
#define NONE "0000000000000000"
#define ROOT "00000000a00405fb"

static struct command_want want = {
	.profile = PROFILE_DEV,
	.root = 70000,
	.user = 71000,
	.first = 70000,
	.last = 70000 + 65535,
	.ours = { "NoNewPrivs:\t0\nSeccomp_filters:\t0\n", 34 },
};

static int check(const char *status)
{
	struct err e = { 0 };

	return command_check(&want, str_of(status), &e);
}

static void what_each_profile_demands_passes(void)
{
	CHECK(check(STATUS("71000", NONE, ROOT, "0")) == 0);
	CHECK(check(STATUS("70000", ROOT, ROOT, "0")) == 0);
	want.profile = PROFILE_LOCKED;
	CHECK(check(STATUS("71000", NONE, NONE, "1")) == 0);
}

static void more_than_the_profile_allows_is_refused(void)
{
	CHECK(check(STATUS("0", NONE, ROOT, "0")) < 0);
	CHECK(check(STATUS("200000", NONE, ROOT, "0")) < 0);
	CHECK(check(STATUS("71000", ROOT, ROOT, "0")) < 0);
	CHECK(check(STATUS("71000", NONE, "000001ffffffffff", "0")) < 0);
	want.profile = PROFILE_LOCKED;
	CHECK(check(STATUS("71000", NONE, NONE, "0")) < 0);
	CHECK(check(STATUS("71000", NONE, ROOT, "1")) < 0);
	CHECK(check(STATUS("70000", NONE, NONE, "1")) < 0);
}

/* A correct status with one part replaced. */
static void each_line_is_compared_and_named(void)
{
	static const char *const rows[][3] = {
		{ "Seccomp:\t2", "Seccomp:\t0", "Seccomp: expected 2, found 0" },
		{ "filters:\t2", "filters:\t1", "Seccomp_filters: expected 2, found 1" },
		{ "NoNewPrivs:\t0", "NoNewPrivs:\t1", "NoNewPrivs: expected 0, found 1" },
		{ "CapAmb:\t0", "CapAmb:\t1", "CapAmb: expected 0" },
		{ "CapInh:\t0", "CapInh:\t1", "CapInh: expected 0" },
		{ "Uid:\t71000\t71000", "Uid:\t71000\t0", "Uid: expected one of" },
		{ "Uid:", "Wid:", "Uid: expected" },
	};
	const char *good = STATUS("71000", NONE, ROOT, "0");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *at = strstr(good, rows[i][0]);
		struct err e = { 0 };
		char text[1024];

		CHECK(at);
		(void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, rows[i][1],
			       at + strlen(rows[i][0]));
		CHECK(command_check(&want, str_of(text), &e) < 0);
		if (!strstr(e.msg, rows[i][2]))
			t_fail_str(__FILE__, __LINE__, e.msg, rows[i][2]);
	}
}

/* As in a container, where every process inherits the container's filter and NO_NEW_PRIVS. */
static void what_we_have_ourselves_is_added(void)
{
	want.ours = STR("NoNewPrivs:\t1\nSeccomp_filters:\t1\n");
	CHECK(check(STATUS("71000", NONE, ROOT, "1")) < 0);
	want.ours = STR("NoNewPrivs:\t1\nSeccomp_filters:\t0\n");
	CHECK(check(STATUS("71000", NONE, ROOT, "1")) == 0);
}

T_MAIN(T(what_each_profile_demands_passes), T(more_than_the_profile_allows_is_refused),
       T(each_line_is_compared_and_named), T(what_we_have_ourselves_is_added))
