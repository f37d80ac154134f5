/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark that ends a part is CRLF, "--" and the boundary. A CR stands only at the mark's front,
 * so a failed match never hides the beginning of another one.
 */
#include "wire/multipart.h"

#include <errno.h>
#include <strings.h>

#include "wire/http_lines.h"

enum {
	AT_FIRST, /* the first mark, without its CRLF */
	AT_AFTER, /* after a mark: CRLF, or "--" for the last one */
	AT_AFTER_CR,
	AT_AFTER_DASH,
	AT_HEAD,
	AT_DATA,
	AT_DONE,
	AT_BAD,
};

static int bad(struct multipart *m, int err, const char *why)
{
	m->state = AT_BAD;
	m->why = why;
	return err;
}

/* RFC 2046 5.1.1 */
static bool is_boundary(struct str s)
{
	if (s.n == 0 || s.n > MULTIPART_BOUNDARY || s.p[s.n - 1] == ' ')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z') &&
		    !(c && strchr("'()+_,-./:=? ", c)))
			return false;
	}
	return true;
}

/*
 * Cut "; name=value" off the front of *rest. 1; 0 at the end; -EBADMSG. A quote inside a quoted
 * value is refused however it is escaped, because readers differ.
 */
static int param_next(struct str *rest, struct str *ret_name, struct str *ret_value)
{
	size_t n = 0;

	while (rest->n && (rest->p[0] == ' ' || rest->p[0] == ';')) {
		rest->p++;
		rest->n--;
	}
	if (rest->n == 0)
		return 0;
	while (n < rest->n && http_is_tchar((unsigned char)rest->p[n]))
		n++;
	*ret_name = (struct str){ rest->p, n };
	if (n == 0 || n == rest->n || rest->p[n] != '=')
		return -EBADMSG;
	rest->p += n + 1;
	rest->n -= n + 1;
	if (rest->n && rest->p[0] == '"') {
		const char *end = memchr(rest->p + 1, '"', rest->n - 1);

		if (!end || end[-1] == '\\')
			return -EBADMSG;
		*ret_value = (struct str){ rest->p + 1, (size_t)(end - rest->p) - 1 };
		n = ret_value->n + 2;
	} else {
		for (n = 0; n < rest->n && http_is_tchar((unsigned char)rest->p[n]);)
			n++;
		*ret_value = (struct str){ rest->p, n };
	}
	rest->p += n;
	rest->n -= n;
	return rest->n == 0 || rest->p[0] == ';' || rest->p[0] == ' ' ? 1 : -EBADMSG;
}

/* Cut the part before the first ';' off the front. */
static struct str cut_type(struct str *rest)
{
	const char *end = rest->n ? memchr(rest->p, ';', rest->n) : NULL;
	struct str type = { rest->p, end ? (size_t)(end - rest->p) : rest->n };

	if (type.n)
		rest->p += type.n;
	rest->n -= type.n;
	while (type.n && type.p[type.n - 1] == ' ')
		type.n--;
	return type;
}

int multipart_init(struct multipart *m, struct str content_type)
{
	struct str rest = content_type, name, value, boundary = STR_NONE;
	int r;

	*m = (struct multipart){ .head = BUF_INIT(LIMIT_PART_HEAD) };
	if (!http_name_is(cut_type(&rest), "multipart/form-data"))
		return bad(m, -EBADMSG, "the content type is not multipart/form-data");
	while ((r = param_next(&rest, &name, &value)) > 0) {
		if (!http_name_is(name, "boundary"))
			continue;
		if (boundary.n)
			return bad(m, -EBADMSG, "there are several boundaries");
		boundary = value;
	}
	if (r < 0 || !is_boundary(boundary))
		return bad(m, -EBADMSG, "the content type has no valid boundary");
	memcpy(m->mark, "\r\n--", 4);
	memcpy(m->mark + 4, boundary.p, boundary.n);
	m->mark_n = 4 + boundary.n;
	m->matched = 2;
	return 0;
}

void multipart_done(struct multipart *m)
{
	buf_done(&m->head);
}

static int disposition_parse(struct multipart *m, struct str rest)
{
	struct str name, value;
	bool has_name = false;
	int r;

	if (!http_name_is(cut_type(&rest), "form-data"))
		return bad(m, -EBADMSG, "a part is not form-data");
	while ((r = param_next(&rest, &name, &value)) > 0) {
		if (http_name_is(name, "name") && !has_name) {
			m->name = value;
			has_name = true;
		} else if (http_name_is(name, "filename") && !m->has_filename) {
			m->filename = value;
			m->has_filename = true;
		} else {
			return bad(m, -EBADMSG, "a part has an unknown or repeated parameter");
		}
	}
	if (r < 0 || !has_name)
		return bad(m, -EBADMSG, "a part has no valid name");
	return 0;
}

static int part_head_parse(struct multipart *m)
{
	struct http_head h = { 0 };
	const struct str *value;

	m->name = m->filename = m->type = STR_NONE;
	m->has_filename = false;
	if (http_head_size(buf_str(&m->head), &h) != (int64_t)m->head.len ||
	    http_headers_parse(buf_str(&m->head), &h) < 0)
		return bad(m, -EBADMSG, "the head of a part is malformed");
	value = http_header(&h, "content-disposition");
	if (!value)
		return bad(m, -EBADMSG, "a part has no Content-Disposition");
	if (disposition_parse(m, *value) < 0)
		return -EBADMSG;
	value = http_header(&h, "content-type");
	m->type = value ? *value : STR("");
	m->state = AT_DATA;
	m->matched = 0;
	return MULTIPART_PART;
}

static bool ends_head(const struct buf *b)
{
	return b->len >= 4 && memcmp(b->data + b->len - 4, "\r\n\r\n", 4) == 0;
}

static int head_byte(struct multipart *m, char c)
{
	int r = buf_add(&m->head, &c, 1);

	if (r < 0)
		return bad(m, r, "the head of a part is too long");
	if (m->head.len == 2 && memcmp(m->head.data, "\r\n", 2) == 0)
		return bad(m, -EBADMSG, "a part has no Content-Disposition");
	return ends_head(&m->head) ? part_head_parse(m) : MULTIPART_MORE;
}

/* Bytes around a mark. */
static int framing_byte(struct multipart *m, char c)
{
	switch (m->state) {
	case AT_FIRST:
		if (c != m->mark[m->matched])
			return bad(m, -EBADMSG, "the form does not begin with its boundary");
		if (++m->matched == m->mark_n)
			m->state = AT_AFTER;
		return MULTIPART_MORE;
	case AT_AFTER:
		if (c != '\r' && c != '-')
			return bad(m, -EBADMSG, "a boundary is followed by something else");
		m->state = c == '\r' ? AT_AFTER_CR : AT_AFTER_DASH;
		return MULTIPART_MORE;
	case AT_AFTER_DASH:
		if (c != '-')
			return bad(m, -EBADMSG, "a boundary is followed by something else");
		m->state = AT_DONE;
		return MULTIPART_END;
	case AT_AFTER_CR:
		if (c != '\n')
			return bad(m, -EBADMSG, "a CR stands alone");
		if (++m->parts > LIMIT_PARTS)
			return bad(m, -E2BIG, "the form has too many parts");
		m->state = AT_HEAD;
		buf_clear(&m->head);
		return MULTIPART_MORE;
	default:
		return head_byte(m, c);
	}
}

static void skip(struct str *in, size_t n)
{
	in->p += n;
	in->n -= n;
}

static int data_next(struct multipart *m, struct str *in, struct str *ret)
{
	while (in->n) {
		const char *cr;

		if (m->matched == 0) {
			cr = memchr(in->p, '\r', in->n);
			*ret = (struct str){ in->p, cr ? (size_t)(cr - in->p) : in->n };
			skip(in, ret->n + (cr != NULL));
			m->matched = cr != NULL;
			if (ret->n)
				return MULTIPART_DATA;
			continue;
		}
		if (in->p[0] != m->mark[m->matched]) {
			*ret = (struct str){ m->mark, m->matched };
			m->matched = 0;
			return MULTIPART_DATA;
		}
		skip(in, 1);
		if (++m->matched < m->mark_n)
			continue;
		m->state = AT_AFTER;
		return MULTIPART_PART_END;
	}
	return MULTIPART_MORE;
}

int multipart_next(struct multipart *m, struct str *in, struct str *ret)
{
	*ret = STR_NONE;
	while (in->n) {
		char c = in->p[0];
		int r;

		if (m->state == AT_DATA)
			return data_next(m, in, ret);
		if (m->state == AT_BAD)
			return -EBADMSG;
		if (m->state == AT_DONE) {
			skip(in, in->n);
			return MULTIPART_END;
		}
		skip(in, 1);
		r = framing_byte(m, c);
		if (r != MULTIPART_MORE)
			return r;
	}
	return m->state == AT_DONE ? MULTIPART_END : MULTIPART_MORE;
}
