/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/key.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/random.h"
#include "wire/json_write.h"

enum { KEY_BYTES = 20 };

/* Ignores failures: servers see the change the next time they read the keys. */
static void tell_servers(const struct cay *c)
{
	(void)io_replace_file(c->state.fd, KEYS_CHANGED_FILE ".new", KEYS_CHANGED_FILE, STR_NONE);
}

static int make_text(char out[KEY_TEXT], struct err *e)
{
	uint8_t bytes[KEY_BYTES];
	int r = random_bytes(bytes, sizeof bytes);

	if (r < 0)
		return err_sys(e, -r, "make a key");
	(void)snprintf(out, KEY_TEXT, "e2b_");
	for (int i = 0; i < KEY_BYTES; i++)
		(void)snprintf(out + 4 + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int op_key_create(struct cay *c, const struct key_spec *spec, char ret_text[KEY_TEXT],
		  struct key_row *ret, struct err *e)
{
	struct key_row row = { .limits = spec->limits, .expires_ns = spec->expires_ns };
	char text[KEY_TEXT];

	if (!state_name_ok(spec->name)) {
		(void)err_set(e, ERR_INVALID,
			      "'%.200s': letters, digits and '_.-', a letter or digit first",
			      spec->name);
		return err_field(e, "name");
	}
	if (make_text(text, e) < 0 || state_id_new(row.id, e) < 0 || cay_catalog(c, e) < 0)
		return -1;
	(void)str_copy(row.name, sizeof row.name, str_of(spec->name));
	(void)str_copy(row.shown, sizeof row.shown, (struct str){ text, KEY_SHOWN });
	sha256(text, strlen(text), row.digest);
	if (catalog_add_key(c->catalog, &row, spec->shares, e) < 0)
		return -1;
	(void)str_copy(ret_text, KEY_TEXT, str_of(text));
	*ret = row;
	tell_servers(c);
	return 0;
}

int op_key_list(struct cay *c, int (*fn)(void *ctx, const struct key_row *row), void *ctx,
		struct err *e)
{
	return cay_catalog(c, e) < 0 ? -1 : catalog_each_key(c->catalog, fn, ctx, e);
}

int op_key_set(struct cay *c, const char *ref, const struct key_limits *over,
	       const uint64_t *expires_ns, struct key_row *ret, struct err *e)
{
	if (cay_catalog(c, e) < 0 || catalog_set_key(c->catalog, ref, over, expires_ns, ret, e) < 0)
		return -1;
	tell_servers(c);
	return 0;
}

int op_key_server_limits(struct cay *c, const struct key_limits *l, struct err *e)
{
	return cay_catalog(c, e) < 0 ? -1 : catalog_set_server_limits(c->catalog, l, e);
}

int op_key_use(struct cay *c, const struct key_row *row, struct key_limits *ret,
	       struct key_use *ret_use, struct err *e)
{
	if (cay_catalog(c, e) < 0 || catalog_owner_limits(c->catalog, row->owner, ret, e) < 0)
		return -1;
	/* Quotas are those of the shared key; the rest is its own. */
	if (strcmp(row->owner, row->id) != 0) {
		struct key_limits l;

		if (catalog_owner_limits(c->catalog, row->id, &l, e) < 0)
			return -1;
		ret->of[KEY_RATE] = l.of[KEY_RATE];
		ret->of[KEY_CALLS] = l.of[KEY_CALLS];
		ret->scope = l.scope;
	}
	return catalog_owner_use(c->catalog, row->owner, ret_use, e);
}

int op_key_revoke(struct cay *c, const char *ref, struct key_row *ret, struct err *e)
{
	if (cay_catalog(c, e) < 0 || catalog_del_key(c->catalog, ref, ret, e) < 0)
		return -1;
	tell_servers(c);
	return 0;
}

void json_put_limits(struct json *j, const struct key_limits *l)
{
	auto_done(buf_done) struct buf scope = BUF_INIT(256);

	json_put_obj(j, "limits");
	for (int i = 0; i < KEY_LIMITS; i++)
		if (l->of[i] == KEY_LIMIT_NONE)
			json_put_nil(j, key_limit_name((enum key_limit)i));
		else if (l->of[i])
			json_put_u64(j, key_limit_name((enum key_limit)i), l->of[i]);
	json_end(j);
	if (l->scope && key_scope_put(l->scope, &scope) == 0)
		json_put_str(j, "scope", buf_str(&scope));
}

void json_put_key(struct json *j, const struct key_row *row, const char *text)
{
	char created[CLOCK_TEXT_SIZE];

	clock_text(row->created_ns, created);
	json_obj(j);
	json_put_c(j, "id", row->id);
	json_put_c(j, "name", row->name);
	json_put_c(j, "begins", row->shown);
	json_put_c(j, "created", created);
	if (row->expires_ns) {
		clock_text(row->expires_ns, created);
		json_put_c(j, "expires", created);
	}
	json_put_limits(j, &row->limits);
	if (text)
		json_put_c(j, "key", text);
	json_end(j);
}
