/* SPDX-License-Identifier: Apache-2.0 */
#include "api/e2b/sign.h"

#include <stdlib.h>

#include "base/b64.h"
#include "base/clock.h"
#include "base/hmac.h"
#include "wire/url.h"

enum { PART_MOST = 8192 };

/* An absent parameter is an empty text. */
static bool get(struct str query, const char *name, struct buf *out)
{
	return url_query_get(query, name, out) >= 0;
}

static bool has_expired(const struct buf *until)
{
	char *end;
	unsigned long long seconds;

	if (!until->len)
		return false;
	seconds = strtoull(until->data, &end, 10);
	return *end || seconds * NS_PER_S < clock_real_ns();
}

int sign_put(struct buf *out, const char *path, const char *user, const char *op, const char *token,
	     const char *until)
{
	auto_done(buf_done) struct buf text = BUF_INIT(4 * PART_MOST);
	uint8_t hash[SHA256_SIZE];
	int r = buf_printf(&text, "%s:%s:%s:%s%s%s", path, op, user, token, until[0] ? ":" : "",
			   until);

	if (r < 0)
		return r;
	sha256(text.data, text.len, hash);
	r = buf_add_c(out, "v1_");
	if (r == 0)
		r = b64_encode(out, (struct str){ (const char *)hash, sizeof hash });
	while (r == 0 && out->len && out->data[out->len - 1] == '=')
		buf_cut(out, out->len - 1);
	return r;
}

static const char *text_of(const struct buf *b)
{
	return b->data ? b->data : "";
}

enum sign sign_check_query(struct str method, struct str query, const char *token)
{
	auto_done(buf_done) struct buf path = BUF_INIT(PART_MOST), user = BUF_INIT(PART_MOST);
	auto_done(buf_done) struct buf given = BUF_INIT(PART_MOST), until = BUF_INIT(64);
	auto_done(buf_done) struct buf want = BUF_INIT(256);

	if (!get(query, "path", &path) || !get(query, "username", &user) ||
	    !get(query, "signature", &given) || !get(query, "signature_expiration", &until))
		return SIGN_WRONG;
	if (!given.len)
		return SIGN_MISSING;
	if (sign_put(&want, text_of(&path), text_of(&user),
		     str_is(method, "GET") ? "read" : "write", token, text_of(&until)) < 0 ||
	    !secret_eq(buf_str(&given), buf_str(&want)))
		return SIGN_WRONG;
	return has_expired(&until) ? SIGN_EXPIRED : SIGN_FITS;
}

enum sign sign_check(struct http_request *r, const char *token)
{
	return sign_check_query(r->method, r->query, token);
}
