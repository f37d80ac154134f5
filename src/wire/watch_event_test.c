/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/watch_event.h"

#include <errno.h>

#include "base/cleanup.h"
#include "t.h"

#define ENTRY \
	"f\0f\0" \
	"4\0" \
	"644\0-rw-r--r--\0user\0user\0" \
	"5.5\0\0/d/a\0k=v\n\0"
#define IN(text) ((struct str){ text, sizeof text - 1 })

static void events_come_one_by_one(void)
{
	struct str in = IN("s\0\0"
			   "0\0"
			   "c\0a\0"
			   "1\0" ENTRY "r\0b/c\0"
			   "0\0");
	struct watch_event e;

	CHECK(watch_event_next(&in, &e) == 1 && e.kind == WATCH_READY && !e.has_entry);
	CHECK(watch_event_next(&in, &e) == 1 && e.kind == WATCH_CREATE && str_is(e.name, "a"));
	CHECK(e.has_entry && e.entry.size == 4 && str_is(e.entry.path, "/d/a"));
	CHECK(str_is(e.entry.metadata, "k=v\n"));
	CHECK(watch_event_next(&in, &e) == 1 && e.kind == WATCH_REMOVE && str_is(e.name, "b/c"));
	CHECK(watch_event_next(&in, &e) == 0 && in.n == 0);
}

static void a_part_of_an_event_waits_for_the_rest(void)
{
	static const char whole[] = "c\0a\0"
				    "1\0" ENTRY;
	struct watch_event e;

	for (size_t n = 0; n < sizeof whole - 1; n++) {
		struct str in = { whole, n };

		CHECK(watch_event_next(&in, &e) == 0 && in.n == n);
	}
}

static void whatever_init_would_not_write_is_refused(void)
{
	struct str bad[] = { IN("x\0a\0"
				"0\0"),
			     IN("\0a\0"
				"0\0"),
			     IN("cc\0a\0"
				"0\0"),
			     IN("c\0a\0"
				"2\0"),
			     IN("c\0a\0\0"),
			     IN("c\0a\0"
				"1\0f\0f\0x\0"
				"644\0\0\0\0"
				"5\0\0/a\0\0") };
	struct watch_event e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(watch_event_next(&bad[i], &e) == -EBADMSG);
}

T_MAIN(T(events_come_one_by_one), T(a_part_of_an_event_waits_for_the_rest),
       T(whatever_init_would_not_write_is_refused))
