/* SPDX-License-Identifier: Apache-2.0 */
#include "api/auth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
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

static bool is_expired(const struct auth_key *k, uint64_t now_ns)
{
	return k->said.expires_ns && k->said.expires_ns <= now_ns;
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
	for (size_t i = 0; i < a->n; i++) {
		struct auth_key *k = a->keys[i];

		if (!secret_eq((struct str){ (const char *)k->said.digest, SHA256_SIZE },
			       (struct str){ (const char *)digest, SHA256_SIZE }))
			continue;
		if (is_expired(k, clock_real_ns()))
			return 401;
		(void)str_copy(ret->owner, sizeof ret->owner, str_of(k->said.owner));
		ret->key = k;
		return 0;
	}
	return 401;
}

struct auth_key *auth_find(const struct auth *a, const char *id)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->keys[i]->said.id, id) == 0)
			return is_expired(a->keys[i], clock_real_ns()) ? NULL : a->keys[i];
	return NULL;
}

uint64_t auth_next_expiry(const struct auth *a, uint64_t now_ns)
{
	uint64_t next = 0;

	for (size_t i = 0; i < a->n; i++) {
		uint64_t at = a->keys[i]->said.expires_ns;

		if (at > now_ns && (!next || at < next))
			next = at;
	}
	return next;
}

int auth_put_key(struct buf *b, const struct key_row *row, const struct key_limits *limits)
{
	struct auth_said k = { .expires_ns = row->expires_ns,
			       .rate = limits->of[KEY_RATE],
			       .calls = limits->of[KEY_CALLS],
			       .scope = row->damaged ? 0 : limits->scope };

	(void)str_copy(k.id, sizeof k.id, str_of(row->id));
	(void)str_copy(k.owner, sizeof k.owner, str_of(row->owner));
	memcpy(k.digest, row->digest, sizeof k.digest);
	return buf_add(b, &k, sizeof k);
}

/* The key with this id, taken out of `old`. Lists keep their order: start where the last one was.
 */
static struct auth_key *take_old(struct auth *old, const char *id, size_t *from)
{
	for (size_t i = 0; i < old->n; i++) {
		size_t at = (*from + i) % old->n;

		if (!old->keys[at] || strcmp(old->keys[at]->said.id, id) != 0)
			continue;
		*from = at + 1;
		return TAKE_PTR(old->keys[at]);
	}
	return NULL;
}

/* Keys that nobody uses any more. */
static void sweep(struct auth *a)
{
	for (struct auth_key **at = &a->revoked; *at;) {
		struct auth_key *k = *at;

		if (k->calls || k->visits || k->http.conns) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		free(k);
	}
}

static void revoke_rest(struct auth *a, struct auth *old)
{
	for (size_t i = 0; i < old->n; i++) {
		struct auth_key *k = old->keys[i];

		if (!k)
			continue;
		k->revoked = true;
		k->next = a->revoked;
		a->revoked = k;
	}
	free(old->keys);
	sweep(a);
}

int auth_replace(struct auth *a, struct str bytes)
{
	size_t n = bytes.n / sizeof(struct auth_said), from = 0;
	struct auth now = { .known = true, .revoked = a->revoked };
	struct auth_said said;

	if (bytes.n % sizeof said || n > KEYS_MOST)
		return -EBADMSG;
	now.keys = calloc(n + 1, sizeof *now.keys);
	if (!now.keys)
		return -ENOMEM;
	for (; now.n < n; now.n++) {
		struct auth_key *k;

		memcpy(&said, bytes.p + now.n * sizeof said, sizeof said);
		said.id[sizeof said.id - 1] = said.owner[sizeof said.owner - 1] = '\0';
		k = take_old(a, said.id, &from);
		if (!k)
			k = calloc(1, sizeof *k);
		if (!k)
			break;
		k->said = said;
		now.keys[now.n] = k;
	}
	revoke_rest(&now, a);
	*a = now;
	return now.n == n ? 0 : -ENOMEM;
}

void auth_done(struct auth *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->keys[i]);
	while (a->revoked) {
		struct auth_key *k = a->revoked;

		a->revoked = k->next;
		free(k);
	}
	free(a->keys);
	*a = (struct auth){ 0 };
}
