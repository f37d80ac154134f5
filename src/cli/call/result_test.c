/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of refusals: when they happen, and at the end the rest. */
#include "cli/call/result.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "t.h"
#include "wire/frame.h"
#include "wire/proto.h"

static struct call_outcome outcome = CALL_OUTCOME_INIT;
static char said[4096];

static void capture(void)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);

	CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO && close(fd) == 0);
}

/* All that was said so far. */
static const char *heard(void)
{
	ssize_t n;

	CHECK(fflush(stderr) == 0);
	n = pread(STDERR_FILENO, said, sizeof said - 1, 0);
	CHECK(n >= 0);
	said[n] = '\0';
	return said;
}

static void refuse(const char *name, bool told)
{
	auto_done(buf_done) struct buf b = BUF_INIT(1024);

	CHECK(field_put_c(&b, TAG_NAME, name) == 0 && field_put_c(&b, TAG_RULE, "r") == 0);
	CHECK(field_put_c(&b, TAG_TEXT, "no") == 0);
	CHECK(field_put(&outcome.denied, TAG_DENIED, buf_str(&b)) == 0);
	if (told)
		result_denied(&outcome, buf_str(&b));
}

static void a_refusal_is_said_once(void)
{
	capture();
	refuse("a.test", true);
	CHECK_STR(heard(), "cay: refused: a.test (no; rule r)\n");
	result_explain(&outcome);
	CHECK_STR(heard(), "cay: refused: a.test (no; rule r)\n");
}

static void what_nobody_was_told_is_said_at_the_end(void)
{
	capture();
	refuse("before.test", false);
	refuse("after.test", true);
	result_explain(&outcome);
	CHECK_STR(heard(), "cay: refused: after.test (no; rule r)\n"
			   "cay: refused: before.test (no; rule r)\n");
}

static void three_are_named_and_the_rest_is_counted(void)
{
	capture();
	for (int i = 0; i < 5; i++)
		refuse("a.test", i % 2 == 0 || i > 2);
	CHECK(outcome.told == 4);
	result_explain(&outcome);
	CHECK_STR(heard(), "cay: refused: a.test (no; rule r)\n"
			   "cay: refused: a.test (no; rule r)\n"
			   "cay: refused: a.test (no; rule r)\n"
			   "cay: refused: 2 more; cay trace --kind net shows all\n");
}

static void a_name_with_control_characters_is_made_safe(void)
{
	capture();
	refuse("\x1b[2Jevil", true);
	CHECK(!strchr(heard(), '\x1b') && strstr(said, "evil"));
}

T_MAIN(T(a_refusal_is_said_once), T(what_nobody_was_told_is_said_at_the_end),
       T(three_are_named_and_the_rest_is_counted), T(a_name_with_control_characters_is_made_safe))
