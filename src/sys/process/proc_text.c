/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/process/proc_text.h"

bool proc_line(struct str *text, struct str *ret)
{
	const char *end = text->n ? memchr(text->p, '\n', text->n) : NULL;

	if (text->n == 0)
		return false;
	*ret = (struct str){ text->p, end ? (size_t)(end - text->p) : text->n };
	text->p += ret->n + (end != NULL);
	text->n -= ret->n + (end != NULL);
	return true;
}

struct str proc_value(struct str text, const char *key)
{
	struct str line;
	size_t n = strlen(key);

	while (proc_line(&text, &line)) {
		if (!str_starts(line, (struct str){ key, n }))
			continue;
		while (n < line.n && (line.p[n] == ' ' || line.p[n] == '\t'))
			n++;
		return (struct str){ line.p + n, line.n - n };
	}
	return STR_NONE;
}
