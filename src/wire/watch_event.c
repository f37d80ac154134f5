/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/watch_event.h"

#include <errno.h>
#include <string.h>

enum { HEAD_TEXTS = 3 };

/* The first n texts of the input; false: they have not all come. */
static bool has_texts(struct str in, int n)
{
	while (n-- > 0) {
		const char *end = in.n ? memchr(in.p, '\0', in.n) : NULL;

		if (!end)
			return false;
		in = (struct str){ end + 1, in.n - (size_t)(end + 1 - in.p) };
	}
	return true;
}

static struct str take(struct str *in)
{
	struct str text = { in->p, strnlen(in->p, in->n) };

	*in = (struct str){ in->p + text.n + 1, in->n - text.n - 1 };
	return text;
}

int watch_event_next(struct str *rest, struct watch_event *ret)
{
	struct watch_event e = { 0 };
	struct str in = *rest, kind, flag;

	if (!has_texts(in, HEAD_TEXTS))
		return 0;
	kind = take(&in);
	e.name = take(&in);
	flag = take(&in);
	if (kind.n != 1 || !memchr("scwrnmy", kind.p[0], 7) || flag.n != 1 ||
	    (flag.p[0] != '0' && flag.p[0] != '1'))
		return -EBADMSG;
	e.kind = (enum watch_kind)kind.p[0];
	e.has_entry = flag.p[0] == '1';
	if (e.has_entry) {
		if (!has_texts(in, FILE_ENTRY_FIELDS))
			return 0;
		if (file_entry_next(&in, &e.entry) != 1)
			return -EBADMSG;
	}
	*rest = in;
	*ret = e;
	return 1;
}
