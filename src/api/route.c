/* SPDX-License-Identifier: Apache-2.0 */
#include "api/route.h"

#include "base/buf.h"
#include "wire/url.h"

static bool take_id(struct str raw, char *id, size_t size)
{
	auto_done(buf_done) struct buf b = BUF_INIT(256);

	return url_decode(&b, raw, URL_SLASH) == 0 && b.len && str_copy(id, size, buf_str(&b));
}

static bool path_matches(const char *pattern, struct str path, char *id, size_t size)
{
	struct str want = str_of(pattern), a, b;
	bool more_a, more_b;

	for (;;) {
		more_a = url_segment_next(&want, &a);
		more_b = url_segment_next(&path, &b);
		if (!more_a || !more_b)
			return more_a == more_b;
		if (str_is(a, "{id}") ? !take_id(b, id, size) : !str_eq(a, b))
			return false;
	}
}

const struct route *route_find(const struct route *rows, size_t n, struct str method,
			       struct str path, char *id, size_t size, bool *ret_other)
{
	*ret_other = false;
	id[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		if (!path_matches(rows[i].path, path, id, size))
			continue;
		if (str_is(method, rows[i].method))
			return &rows[i];
		*ret_other = true;
	}
	return NULL;
}
