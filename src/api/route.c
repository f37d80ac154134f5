/* SPDX-License-Identifier: Apache-2.0 */
#include "api/route.h"

#include "base/buf.h"
#include "wire/url.h"

static bool take_segment(struct str raw, char out[64])
{
	auto_done(buf_done) struct buf b = BUF_INIT(256);

	return url_decode(&b, raw, URL_SLASH) == 0 && b.len && str_copy(out, 64, buf_str(&b));
}

static bool segment_matches(struct str want, struct str raw, struct route_params *p)
{
	if (str_is(want, "{id}"))
		return take_segment(raw, p->id);
	return str_is(want, "{sub}") ? take_segment(raw, p->sub) : str_eq(want, raw);
}

static bool path_matches(const char *pattern, struct str path, struct route_params *p)
{
	struct str want = str_of(pattern), a, b;
	bool more_a, more_b;

	for (;;) {
		more_a = url_segment_next(&want, &a);
		more_b = url_segment_next(&path, &b);
		if (!more_a || !more_b)
			return more_a == more_b;
		if (!segment_matches(a, b, p))
			return false;
	}
}

bool route_fits(const struct route *row, struct str path, struct route_params *p)
{
	*p = (struct route_params){ 0 };
	return path_matches(row->path, path, p);
}

const struct route *route_find(const struct route *rows, size_t n, struct str method,
			       struct str path, struct route_params *p, bool *ret_other)
{
	*ret_other = false;
	for (size_t i = 0; i < n; i++) {
		if (!route_fits(&rows[i], path, p))
			continue;
		if (str_is(method, rows[i].method))
			return &rows[i];
		*ret_other = true;
	}
	return NULL;
}
