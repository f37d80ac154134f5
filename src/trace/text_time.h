/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <time.h>

#include "base/str.h"

/* In local time. False if clock_text() cannot have written the text. */
bool text_time_parse(struct str text, struct tm *ret, int *ret_ms);
/* A number unique to the day. */
int text_time_day(const struct tm *tm);
