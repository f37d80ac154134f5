/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_accounts.h"

#include <errno.h>
#include <stdint.h>

enum {
	NAMES_MAX = 1024, /* accounts kept; the same number of groups */
	NAME_MAX_LEN = 32,
	LINE_MAX_LEN = 4096,
	OUT_MAX = 2 << 20,
	NOBODY = 65534,
};

enum passwd_field { PW_NAME, PW_PASS, PW_UID, PW_GID, PW_GECOS, PW_HOME, PW_SHELL, PW_FIELDS };
enum group_field { GR_NAME, GR_PASS, GR_GID, GR_MEMBERS, GR_FIELDS };

struct names {
	struct str v[NAMES_MAX];
	int n;
};

void host_accounts_done(struct host_accounts *a)
{
	buf_done(&a->passwd);
	buf_done(&a->group);
	buf_done(&a->shadow);
	buf_done(&a->gshadow);
}

/* Cut off the front of *rest up to `sep`. */
static struct str cut(struct str *rest, char sep)
{
	const char *at = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
	struct str piece = { rest->p, at ? (size_t)(at - rest->p) : rest->n };
	size_t used = piece.n + (at != NULL);

	rest->p += used;
	rest->n -= used;
	return piece;
}

static bool is_clean(struct str line)
{
	if (line.n == 0 || line.n > LINE_MAX_LEN)
		return false;
	for (size_t i = 0; i < line.n; i++)
		if ((unsigned char)line.p[i] < 0x20 || line.p[i] == 0x7f)
			return false;
	return true;
}

/* True if the line has exactly n fields. */
static bool split(struct str line, struct str *field, int n)
{
	int colons = 0;

	if (!is_clean(line))
		return false;
	for (size_t i = 0; i < line.n; i++)
		colons += line.p[i] == ':';
	if (colons != n - 1)
		return false;
	for (int i = 0; i < n; i++)
		field[i] = cut(&line, ':');
	return true;
}

static bool is_name(struct str s)
{
	if (s.n == 0 || s.n > NAME_MAX_LEN || s.p[0] == '-' || s.p[0] == '.')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '_' && c != '-' && c != '.')
			return false;
	}
	return true;
}

static bool parse_id(struct str s, uint32_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0 || s.n > 10)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(s.p[i] - '0');
	}
	if (v >= UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool is_system(uint32_t id)
{
	return id < HOST_USER_UID || id == NOBODY;
}

static bool names_have(const struct names *k, struct str name)
{
	for (int i = 0; i < k->n; i++)
		if (str_eq(k->v[i], name))
			return true;
	return false;
}

/* False if the name is taken or ours, or the list is full. */
static bool names_add(struct names *k, struct str name)
{
	if (k->n == NAMES_MAX || str_is(name, "user") || names_have(k, name))
		return false;
	k->v[k->n++] = name;
	return true;
}

/* No date of the last change: passwords never expire, and every build gives the same bytes. */
static int add_shadow(struct host_accounts *a, struct str name)
{
	return buf_printf(&a->shadow, "%.*s:*::0:99999:7:::\n", STR_ARG(name));
}

static int add_user(struct host_accounts *a, struct names *users, struct str line)
{
	struct str f[PW_FIELDS];
	uint32_t uid, gid;
	int r;

	if (!split(line, f, PW_FIELDS) || !is_name(f[PW_NAME]) || !parse_id(f[PW_UID], &uid) ||
	    !parse_id(f[PW_GID], &gid) || !is_system(uid) || !names_add(users, f[PW_NAME]))
		return 0;
	r = buf_printf(&a->passwd, "%.*s:x:%u:%u:%.*s:%.*s:%.*s\n", STR_ARG(f[PW_NAME]), uid, gid,
		       STR_ARG(f[PW_GECOS]), STR_ARG(f[PW_HOME]), STR_ARG(f[PW_SHELL]));
	return r < 0 ? r : add_shadow(a, f[PW_NAME]);
}

static int add_users(struct host_accounts *a, struct names *users, struct str text,
		     const char *shell)
{
	int r = 0;

	while (r == 0 && text.n > 0)
		r = add_user(a, users, cut(&text, '\n'));
	if (r == 0 && names_add(users, STR("root"))) {
		r = buf_add_c(&a->passwd, "root:x:0:0:root:/root:/bin/sh\n");
		r = r < 0 ? r : add_shadow(a, STR("root"));
	}
	if (r == 0)
		r = buf_printf(&a->passwd, "user:x:%d:%d:Sandbox user:/home/user:%s\n",
			       HOST_USER_UID, HOST_USER_UID, shell);
	return r < 0 ? r : add_shadow(a, STR("user"));
}

/* Add only members that are kept. */
static int add_members(struct buf *out, const struct names *users, struct str members)
{
	const char *comma = "";

	while (members.n > 0) {
		struct str m = cut(&members, ',');
		int r;

		if (!names_have(users, m))
			continue;
		r = buf_printf(out, "%s%.*s", comma, STR_ARG(m));
		if (r < 0)
			return r;
		comma = ",";
	}
	return buf_add_c(out, "\n");
}

static int add_group(struct host_accounts *a, struct names *groups, const struct names *users,
		     struct str line)
{
	struct str f[GR_FIELDS];
	uint32_t gid;
	int r;

	if (!split(line, f, GR_FIELDS) || !is_name(f[GR_NAME]) || !parse_id(f[GR_GID], &gid) ||
	    !is_system(gid) || !names_add(groups, f[GR_NAME]))
		return 0;
	if (str_is(f[GR_NAME], "shadow"))
		a->shadow_gid = gid;
	r = buf_printf(&a->group, "%.*s:x:%u:", STR_ARG(f[GR_NAME]), gid);
	r = r < 0 ? r : add_members(&a->group, users, f[GR_MEMBERS]);
	r = r < 0 ? r : buf_printf(&a->gshadow, "%.*s:*::", STR_ARG(f[GR_NAME]));
	return r < 0 ? r : add_members(&a->gshadow, users, f[GR_MEMBERS]);
}

static int add_groups(struct host_accounts *a, struct names *groups, const struct names *users,
		      struct str text)
{
	int r = 0;

	while (r == 0 && text.n > 0)
		r = add_group(a, groups, users, cut(&text, '\n'));
	if (r == 0 && names_add(groups, STR("root"))) {
		r = buf_add_c(&a->group, "root:x:0:\n");
		r = r < 0 ? r : buf_add_c(&a->gshadow, "root:*::\n");
	}
	if (r == 0)
		r = buf_printf(&a->group, "user:x:%d:\n", HOST_USER_UID);
	return r < 0 ? r : buf_add_c(&a->gshadow, "user:*::\n");
}

int host_accounts_make(struct str passwd, struct str group, const char *shell,
		       struct host_accounts *ret, struct err *e)
{
	auto_done(host_accounts_done) struct host_accounts a = {
		.passwd = BUF_INIT(OUT_MAX),
		.group = BUF_INIT(OUT_MAX),
		.shadow = BUF_INIT(OUT_MAX),
		.gshadow = BUF_INIT(OUT_MAX),
	};
	auto_free struct names *users = calloc(1, sizeof *users);
	auto_free struct names *groups = calloc(1, sizeof *groups);
	int r = users && groups ? 0 : -ENOMEM;

	r = r < 0 ? r : add_users(&a, users, passwd, shell);
	r = r < 0 ? r : add_groups(&a, groups, users, group);
	if (r < 0)
		return err_sys(e, -r, "cannot make the accounts of the sandbox");
	*ret = a;
	a = (struct host_accounts){ 0 };
	return 0;
}
