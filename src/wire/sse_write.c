/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sse_write.h"

#include <errno.h>

/* One line of a field must not end early. */
static bool is_one_line(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] == '\n' || text.p[i] == '\r' || text.p[i] == '\0')
			return false;
	return true;
}

static int put_field(struct buf *b, const char *name, struct str value)
{
	int r = buf_add_c(b, name);

	if (r == 0)
		r = buf_add_c(b, ": ");
	if (r == 0)
		r = buf_add_str(b, value);
	return r < 0 ? r : buf_add_c(b, "\n");
}

/* Cut the first line off *rest; false if there is none. CRLF counts as one line end. */
static bool line_next(struct str *rest, struct str *ret, bool *more)
{
	size_t n = 0;

	if (!*more)
		return false;
	while (n < rest->n && rest->p[n] != '\n' && rest->p[n] != '\r')
		n++;
	*ret = (struct str){ rest->p, n };
	*more = n < rest->n;
	if (*more)
		n += rest->p[n] == '\r' && n + 1 < rest->n && rest->p[n + 1] == '\n' ? 2 : 1;
	if (n)
		rest->p += n;
	rest->n -= n;
	return true;
}

int sse_put(struct buf *b, struct str event, struct str id, struct str data)
{
	size_t before = b->len;
	struct str line;
	bool more = true;
	int r = 0;

	if (!is_one_line(event) || !is_one_line(id))
		return -EINVAL;
	if (event.n)
		r = put_field(b, "event", event);
	if (r == 0 && id.n)
		r = put_field(b, "id", id);
	while (r == 0 && line_next(&data, &line, &more))
		r = put_field(b, "data", line);
	if (r == 0)
		r = buf_add_c(b, "\n");
	if (r < 0)
		buf_cut(b, before);
	return r;
}

int sse_put_comment(struct buf *b, struct str text)
{
	size_t before = b->len;
	int r;

	if (!is_one_line(text))
		return -EINVAL;
	r = put_field(b, "", text);
	if (r == 0)
		r = buf_add_c(b, "\n");
	if (r < 0)
		buf_cut(b, before);
	return r;
}
