/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy/policy_history.h"

#include <stdio.h>

#include "cli/output.h"

static const char *text_of(const json_t *event, const char *key)
{
	return json_string_value(json_object_get(event, key)) ?: "";
}

static long long number_of(const json_t *event, const char *key)
{
	return (long long)json_integer_value(json_object_get(event, key));
}

int policy_history_who(const json_t *event, struct buf *out)
{
	const char *by = text_of(event, "by");

	if (!number_of(event, "by_pid"))
		return buf_add_c(out, text_of(event, "time"));
	return buf_printf(out, "%s by %s (pid %lld, uid %lld)", text_of(event, "time"),
			  by[0] ? by : "a process", number_of(event, "by_pid"),
			  number_of(event, "by_uid"));
}

static void print_rules(const json_t *event, const char *key, const char *before, char sign)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(event, key), i, item)
	{
		printf("%s  %c ", before, sign);
		out_safe(json_string_value(item) ?: "");
		putchar('\n');
	}
}

static void print_more(const json_t *event, const char *key, const char *before, const char *what)
{
	if (number_of(event, key))
		printf("%s  %lld more rules %s\n", before, number_of(event, key), what);
}

void policy_history_print(const json_t *history, const char *before)
{
	const json_t *event;
	size_t i;

	json_array_foreach(history, i, event)
	{
		auto_done(buf_done) struct buf who = BUF_INIT(4096);

		fputs(before, stdout);
		out_safe(policy_history_who(event, &who) == 0 ? who.data : "");
		fputs(": ", stdout);
		out_safe(text_of(event, "name"));
		putchar('\n');
		print_rules(event, "added", before, '+');
		print_more(event, "added_more", before, "added");
		print_rules(event, "removed", before, '-');
		print_more(event, "removed_more", before, "removed");
	}
}
