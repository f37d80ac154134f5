/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/create_check.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/safe.h"
#include "ops/create/mount_check.h"
#include "ops/host_net.h"

enum { LOCKED_USER = 1000 };

void create_plan_done(struct create_plan *p)
{
	for (int i = 0; i < p->nmounts; i++) {
		free(p->mounts[i].path);
		free(p->mounts[i].dest);
	}
	free(p->mounts);
	free(p->first_dir);
	free(p->env);
	free(p->labels);
	*p = (struct create_plan){ 0 };
}

/* Reject a value and name its field. */
#define BAD(e, name, ...) ((void)err_set(e, ERR_INVALID, __VA_ARGS__), err_field(e, "%s", name))

static bool is_printable(const char *text)
{
	auto_done(buf_done) struct buf safe = BUF_INIT(8 * LIMIT_LABEL);

	return text_safe(&safe, str_of(text)) == 0 && safe.len == strlen(text);
}

/* Length of the leading characters that are in [A-Za-z0-9] or extra. */
static size_t span(const char *text, const char *extra)
{
	size_t n = 0;

	while (text[n] &&
	       ((isascii(text[n]) && isalnum((unsigned char)text[n])) || strchr(extra, text[n])))
		n++;
	return n;
}

static int add_mount(const struct cay *c, struct create_plan *p, const struct mount_spec *spec,
		     bool ro, struct err *e)
{
	struct plan_mount *m = &p->mounts[p->nmounts];

	if (mount_check(&c->state, spec, ro, m, e) < 0)
		return -1;
	p->nmounts++;
	for (int i = 0; i < p->nmounts - 1; i++)
		if (strcmp(p->mounts[i].dest, m->dest) == 0)
			return err_set(e, ERR_INVALID,
				       "'%.120s' and '%.120s' are both to appear at '%.120s'",
				       p->mounts[i].path, m->path, m->dest);
	return 0;
}

static int by_dest(const void *a, const void *b)
{
	const struct plan_mount *x = a, *y = b;

	return strcmp(x->dest, y->dest);
}

static int check_mounts(const struct cay *c, struct create_plan *p, struct err *e)
{
	const struct create_spec *s = p->spec;
	int n = s->ndirs + s->nros;

	if (n > LIMIT_MOUNTS)
		return err_set(e, ERR_INVALID,
			       "%d directories and files of the host; at most %d are possible", n,
			       LIMIT_MOUNTS);
	p->mounts = calloc((size_t)n + 1, sizeof *p->mounts);
	if (!p->mounts)
		return err_sys(e, ENOMEM, "check the directories");
	for (int i = 0; i < s->ndirs; i++)
		if (add_mount(c, p, &s->dirs[i], false, e) < 0)
			return err_field(e, "dirs[%d]", i);
	for (int i = 0; i < s->nros; i++)
		if (add_mount(c, p, &s->ros[i], true, e) < 0)
			return err_field(e, "ros[%d]", i);
	if (s->copy && !s->ndirs)
		return BAD(e, "copy", "there is no directory to be copied");
	if (s->ndirs > 0) {
		p->first_dir = strdup(p->mounts[0].dest);
		if (!p->first_dir)
			return err_sys(e, ENOMEM, "check the directories");
	}
	/* Sort parents first: a parent mounted later would cover its children. */
	qsort(p->mounts, (size_t)p->nmounts, sizeof *p->mounts, by_dest);
	return 0;
}

/* A later value of the same variable replaces an earlier value, as with env(1). */
static int add_env(struct create_plan *p, const char *text, struct err *e)
{
	size_t n = span(text, "_");

	if (n == 0 || isdigit((unsigned char)text[0]) || text[n] != '=')
		return BAD(e, "env", "'%.*s': a name is made of letters, digits and '_'",
			   (int)strcspn(text, "="), text);
	for (int i = 0; i < p->nenv; i++)
		if (strncmp(p->env[i], text, n + 1) == 0) {
			p->env[i] = text;
			return 0;
		}
	p->env[p->nenv++] = text;
	return 0;
}

static int check_env(struct create_plan *p, struct err *e)
{
	const struct text_list *env = &p->spec->env;

	if (env->n > LIMIT_ENV)
		return BAD(e, "env", "%d times; at most %d are possible", env->n, LIMIT_ENV);
	p->env = calloc((size_t)env->n + 1, sizeof *p->env);
	if (!p->env)
		return err_sys(e, ENOMEM, "check the environment");
	for (int i = 0; i < env->n; i++)
		if (add_env(p, env->items[i], e) < 0)
			return -1;
	return 0;
}

static int add_label(struct create_plan *p, const char *text, struct err *e)
{
	size_t n = span(text, "_.-/");

	if (n == 0 || text[n] != '=')
		return BAD(e, "labels", "'%.200s': write K=V, K of letters, digits and '_.-/'",
			   text);
	if (strlen(text) > LIMIT_LABEL || !is_printable(text))
		return BAD(e, "labels", "'%.200s': at most %d printable characters", text,
			   LIMIT_LABEL);
	for (int i = 0; i < p->nlabels; i++)
		if (strncmp(p->labels[i], text, n + 1) == 0)
			return BAD(e, "labels", "'%.*s' is given twice", (int)n, text);
	p->labels[p->nlabels++] = text;
	return 0;
}

static int check_labels(struct create_plan *p, struct err *e)
{
	const struct text_list *labels = &p->spec->labels;

	if (labels->n > LIMIT_LABELS)
		return BAD(e, "labels", "%d times; at most %d are possible", labels->n,
			   LIMIT_LABELS);
	p->labels = calloc((size_t)labels->n + 1, sizeof *p->labels);
	if (!p->labels)
		return err_sys(e, ENOMEM, "check the labels");
	for (int i = 0; i < labels->n; i++)
		if (add_label(p, labels->items[i], e) < 0)
			return -1;
	return 0;
}

/* name, uid or uid:gid. Only init can check that the user exists. */
static bool user_ok(const char *user)
{
	size_t digits = strspn(user, "0123456789");

	if (digits) {
		const char *rest = user + digits;

		if (digits > 10 || !*rest)
			return digits <= 10;
		digits = strspn(rest + 1, "0123456789");
		return rest[0] == ':' && digits && digits <= 10 && !rest[1 + digits];
	}
	return user[0] && user[0] != '-' && strlen(user) <= LIMIT_NAME && !user[span(user, "_.-")];
}

static bool hostname_ok(const char *name)
{
	size_t n = strlen(name);

	return n && n <= 63 && name[0] != '-' && name[n - 1] != '-' && !name[span(name, "-.")];
}

static bool has_dotdot(const char *path)
{
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
			return true;
	return false;
}

static int check_texts(const struct create_spec *s, struct err *e)
{
	if (s->template_ && (!s->template_[0] || strlen(s->template_) > 255))
		return BAD(e, "template", "'%.200s': 1 to 255 characters", s->template_);
	if (s->name && !state_name_ok(s->name))
		return BAD(e, "name",
			   "'%.200s': letters, digits and '_.-', at most %d, a letter or digit "
			   "first",
			   s->name, LIMIT_NAME);
	if (s->hostname && !hostname_ok(s->hostname))
		return BAD(e, "hostname", "'%.200s': letters, digits, '-' and '.', at most 63",
			   s->hostname);
	if (s->user && !user_ok(s->user))
		return BAD(e, "user", "'%.200s': a name, UID, or UID:GID", s->user);
	if (s->cwd && (s->cwd[0] != '/' || has_dotdot(s->cwd) || strlen(s->cwd) >= LIMIT_PATH))
		return BAD(e, "cwd", "'%.200s': a path inside, from '/' on, without '..'", s->cwd);
	return 0;
}

static int check_trace(const char *text, enum trace_level *ret, struct err *e)
{
	if (text && strcmp(text, "full") != 0 && strcmp(text, "calls") != 0)
		return BAD(e, "trace", "'%.200s': full or calls", text);
	*ret = text && strcmp(text, "calls") == 0 ? TRACE_CALLS : TRACE_FULL;
	return 0;
}

/* The check that works without the sandbox's accounts; init checks the rest. */
static bool user_is_other(const char *user)
{
	return strcmp(user, "root") == 0 ||
	       (isdigit((unsigned char)user[0]) && strtoul(user, NULL, 10) != LOCKED_USER);
}

static int check_profile(const struct create_spec *s, enum profile *ret, struct err *e)
{
	const char *text = s->profile ? s->profile : "dev";

	*ret = strcmp(text, "locked") == 0 ? PROFILE_LOCKED : PROFILE_DEV;
	if (*ret == PROFILE_DEV && strcmp(text, "dev") != 0)
		return BAD(e, "profile", "'%.200s': dev or locked", text);
	if (*ret == PROFILE_DEV || !s->user || !user_is_other(s->user))
		return 0;
	(void)BAD(e, "user", "'%s': with the profile locked only the user %d", s->user,
		  LOCKED_USER);
	return err_code(e, "user.locked", NULL);
}

int create_check(const struct cay *c, const struct create_spec *spec, struct create_plan *ret,
		 struct err *e)
{
	auto_done(create_plan_done) struct create_plan p = {
		.spec = spec, .template_ = spec->template_ ? spec->template_ : "host"
	};

	if (create_limits_check(&spec->limits, e) < 0 ||
	    (spec->net.policy.n && host_net_check(&c->config.net, e) < 0))
		return -1;
	if (check_texts(spec, e) < 0 || check_trace(spec->trace, &p.trace, e) < 0 ||
	    check_profile(spec, &p.profile, e) < 0 || check_labels(&p, e) < 0 ||
	    check_env(&p, e) < 0 || check_mounts(c, &p, e) < 0)
		return -1;
	*ret = p;
	p = (struct create_plan){ 0 };
	return 0;
}
