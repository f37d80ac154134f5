/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/text_time.h"

#include <stdio.h>

bool text_time_parse(struct str text, struct tm *ret, int *ret_ms)
{
	char copy[40];
	const char *rest;
	struct tm utc = { 0 };
	int us = 0, used = 0;
	time_t at;

	if (!str_copy(copy, sizeof copy, text))
		return false;
	rest = strptime(copy, "%Y-%m-%dT%H:%M:%S", &utc);
	if (!rest || sscanf(rest, ".%6dZ%n", &us, &used) != 1 || rest[used] != '\0' || used != 8)
		return false;
	at = timegm(&utc);
	*ret_ms = us / 1000;
	return localtime_r(&at, ret) != NULL;
}

int text_time_day(const struct tm *tm)
{
	return tm->tm_year * 1000 + tm->tm_yday;
}
