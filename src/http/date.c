/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/clock.h"
#include "http/parts.h"

void http_date(char out[HTTP_DATE])
{
	static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t now = (time_t)(clock_coarse_ns() / NS_PER_S);
	struct tm t = { 0 };

	(void)gmtime_r(&now, &t);
	/* The remainders tell the compiler how long the numbers can be. */
	(void)snprintf(out, HTTP_DATE, "%s, %02u %s %04u %02u:%02u:%02u GMT", days[t.tm_wday % 7],
		       (unsigned)t.tm_mday % 32, months[t.tm_mon % 12],
		       ((unsigned)t.tm_year + 1900) % 10000, (unsigned)t.tm_hour % 24,
		       (unsigned)t.tm_min % 60, (unsigned)t.tm_sec % 61);
}
