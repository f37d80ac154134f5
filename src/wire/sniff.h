/* SPDX-License-Identifier: Apache-2.0 */
/* What a client speaks, by its first bytes. */
#pragma once

#include "base/str.h"

enum sniff {
	SNIFF_MORE,   /* not enough yet */
	SNIFF_LIKELY, /* not enough yet, but so far it is one of the next three */
	SNIFF_TLS,
	SNIFF_HTTP, /* also what a lenient server would take for it; the strict parser decides */
	SNIFF_SSH,
	SNIFF_OTHER,
};

enum { SNIFF_LINE = 4096 }; /* a line that is longer is judged as HTTP, which refuses it */

/*
 * Decides at once for TLS, SSH and methods of HTTP, else at the end of the first line. Always
 * decides where `end`: the client sends no more.
 */
enum sniff sniff(struct str first, bool end);
