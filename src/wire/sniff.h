/* SPDX-License-Identifier: Apache-2.0 */
/* Detect the client's protocol by its first bytes. */
#pragma once

#include "base/str.h"

enum sniff {
	SNIFF_MORE,	/* need more bytes */
	SNIFF_LIKELY,	/* need more bytes; TLS, HTTP or ssh so far */
	SNIFF_GREETING, /* only an ssh line: it may pass, but check the next bytes too */
	SNIFF_TLS,
	SNIFF_HTTP, /* includes what a lenient server might accept; the strict parser decides */
	SNIFF_SSH,
	SNIFF_OTHER,
};

enum { SNIFF_LINE = 4096 }; /* a longer line counts as HTTP, and the HTTP parser refuses it */

/*
 * Decides at once for TLS, HTTP methods and a binary first word; for ssh with the first packet;
 * else at the end of the first line, or at SNIFF_LINE bytes. With `end` (the client sends no more)
 * it always decides.
 */
enum sniff sniff(struct str first, bool end);
