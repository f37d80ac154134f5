/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <time.h>

#include "base/str.h"

/* In local time. False where the text is not a time as clock_text() writes it. */
bool text_time_parse(struct str text, struct tm *ret, int *ret_ms);
/* A number that another day does not have. */
int text_time_day(const struct tm *tm);
