/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/file_entry.h"

#include <errno.h>

#include "t.h"

#define ENTRY(size, mode, time, path) \
	"l\0d\0" size "\0" mode "\0lrwxrwxrwx\0user\0group\0" time "\0/to\0" path "\0\0"
#define NEXT(text) next((struct str){ text, sizeof text - 1 })

static struct file_entry e;

static int next(struct str text)
{
	return file_entry_next(&text, &e);
}

static void an_entry_has_eleven_fields(void)
{
	struct str rest = { ENTRY("12", "644", "5.1234567890", "/a\nb") ENTRY("1", "0", "7", "/c"),
			    sizeof(ENTRY("12", "644", "5.1234567890", "/a\nb")) - 1 +
				    sizeof(ENTRY("1", "0", "7", "/c")) - 1 };

	CHECK(file_entry_next(&rest, &e) == 1);
	CHECK(e.type == 'l' && e.target == 'd' && e.size == 12 && e.mode == 0644);
	CHECK(e.mtime_ns == 5123456789ull && str_is(e.path, "/a\nb") && str_is(e.link, "/to"));
	CHECK(str_is(e.owner, "user") && str_is(e.group, "group"));
	CHECK(file_entry_next(&rest, &e) == 1 && e.mtime_ns == 7000000000ull);
	CHECK(file_entry_next(&rest, &e) == 0);
}

static void whatever_find_would_not_print_is_refused(void)
{
	CHECK(NEXT("f\0f\0") == -EBADMSG);
	CHECK(NEXT(ENTRY("-1", "644", "5", "/a")) == -EBADMSG);
	CHECK(NEXT(ENTRY("99999999999999999999", "644", "5", "/a")) == -EBADMSG);
	CHECK(NEXT(ENTRY("1", "648", "5", "/a")) == -EBADMSG);
	CHECK(NEXT(ENTRY("1", "17777", "5", "/a")) == -EBADMSG);
	CHECK(NEXT(ENTRY("1", "644", "x", "/a")) == -EBADMSG);
	CHECK(NEXT(ENTRY("1", "644", "9999999999999999999", "/a")) == -EBADMSG);
	CHECK(NEXT(ENTRY("1", "644", "5", "a")) == -EBADMSG);
	CHECK(NEXT(ENTRY("1", "644", "-5.5", "/a")) == 1 && e.mtime_ns == 0);
}

static void entries_follow_their_directory(void)
{
	CHECK(file_entry_compare(STR("/a/b"), STR("/a-c")) < 0);
	CHECK(file_entry_compare(STR("/a"), STR("/a/b")) < 0);
	CHECK(file_entry_compare(STR("/b"), STR("/a/b")) > 0);
	CHECK(file_entry_compare(STR("/a"), STR("/a")) == 0);
}

T_MAIN(T(an_entry_has_eleven_fields), T(whatever_find_would_not_print_is_refused),
       T(entries_follow_their_directory))
