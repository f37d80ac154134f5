/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmac.h"

enum { KEY_LONGEST = 256 };

/* X-API-Key, or Authorization: Bearer. */
static struct str key_of(struct http_request *r)
{
	static const struct str bearer = { "Bearer ", sizeof "Bearer " - 1 };
	const struct str *v = http_request_header(r, "x-api-key");

	if (v)
		return *v;
	v = http_request_header(r, "authorization");
	if (v && str_starts(*v, bearer))
		return (struct str){ v->p + bearer.n, v->n - bearer.n };
	return STR_NONE;
}

int auth_check(const struct auth *a, struct http_request *r, bool network, struct principal *ret)
{
	struct str key = key_of(r);
	uint8_t digest[SHA256_SIZE];

	*ret = (struct principal){ .admin = !network };
	if (!network)
		return 0;
	if (!key.n || key.n > KEY_LONGEST)
		return 401;
	if (!a->known)
		return 503;
	sha256(key.p, key.n, digest);
	for (size_t i = 0; i < a->n; i++)
		if (secret_eq((struct str){ (const char *)a->keys[i].digest, SHA256_SIZE },
			      (struct str){ (const char *)digest, SHA256_SIZE })) {
			(void)str_copy(ret->owner, sizeof ret->owner, str_of(a->keys[i].id));
			return 0;
		}
	return 401;
}

bool auth_has(const struct auth *a, const char *id)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->keys[i].id, id) == 0)
			return true;
	return false;
}

int auth_put_key(struct buf *b, const struct key_row *row)
{
	struct auth_key k = { 0 };

	(void)str_copy(k.id, sizeof k.id, str_of(row->id));
	memcpy(k.digest, row->digest, sizeof k.digest);
	return buf_add(b, &k, sizeof k);
}

int auth_replace(struct auth *a, struct str bytes)
{
	size_t n = bytes.n / sizeof *a->keys;
	struct auth_key *keys;

	if (bytes.n % sizeof *keys || n > KEYS_MOST)
		return -EBADMSG;
	keys = calloc(n + 1, sizeof *keys);
	if (!keys)
		return -ENOMEM;
	if (n)
		memcpy(keys, bytes.p, bytes.n);
	for (size_t i = 0; i < n; i++)
		keys[i].id[sizeof keys[i].id - 1] = '\0';
	free(a->keys);
	*a = (struct auth){ .keys = keys, .n = n, .known = true };
	return 0;
}

void auth_done(struct auth *a)
{
	free(a->keys);
	*a = (struct auth){ 0 };
}
