/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "cli/mount_options.h"
#include "cli/output.h"

enum { LOCKED_USER = 1000 };

void sandbox_plan_done(struct sandbox_plan *p)
{
	for (int i = 0; i < p->nmounts; i++) {
		free(p->mounts[i].path);
		free(p->mounts[i].dest);
	}
	for (int i = 0; i < p->nenv; i++)
		free(p->env[i]);
	free(p->mounts);
	free(p->first_dir);
	free(p->env);
	free(p->labels);
	buf_done(&p->net_policy);
	*p = (struct sandbox_plan){ 0 };
}

static bool is_printable(const char *text)
{
	auto_free char *safe = out_safe_dup(str_of(text));

	return safe && strcmp(safe, text) == 0;
}

/* Characters of text that are of [A-Za-z0-9] or extra. */
static size_t span(const char *text, const char *extra)
{
	size_t n = 0;

	while (text[n] &&
	       ((isascii(text[n]) && isalnum((unsigned char)text[n])) || strchr(extra, text[n])))
		n++;
	return n;
}

static int add_mount(struct sandbox_plan *p, const char *text, bool ro, const struct state *s,
		     struct err *e)
{
	struct sandbox_mount *m = &p->mounts[p->nmounts];

	if (mount_resolve(text, ro, s, m, e) < 0)
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
	const struct sandbox_mount *x = a, *y = b;

	return strcmp(x->dest, y->dest);
}

static int resolve_mounts(const struct sandbox_opts *o, const struct state *s,
			  struct sandbox_plan *p, struct err *e)
{
	int n = o->dirs.n + o->ros.n;

	if (n > LIMIT_MOUNTS)
		return err_set(e, ERR_INVALID, "%d times --dir or --ro; at most %d are possible", n,
			       LIMIT_MOUNTS);
	p->mounts = calloc((size_t)n + 1, sizeof *p->mounts);
	if (!p->mounts)
		return err_sys(e, ENOMEM, "--dir");
	for (int i = 0; i < o->dirs.n; i++)
		if (add_mount(p, o->dirs.items[i], false, s, e) < 0)
			return -1;
	for (int i = 0; i < o->ros.n; i++)
		if (add_mount(p, o->ros.items[i], true, s, e) < 0)
			return -1;
	if (o->dirs.n > 0) {
		p->first_dir = strdup(p->mounts[0].dest);
		if (!p->first_dir)
			return err_sys(e, ENOMEM, "--dir");
	}
	/* What lies above sorts first: mounted later, it would cover what lies below. */
	qsort(p->mounts, (size_t)p->nmounts, sizeof *p->mounts, by_dest);
	return 0;
}

static char *env_entry(const char *text, size_t key_len, struct err *e)
{
	char *entry = NULL;
	const char *value;

	if (text[key_len] == '=') {
		entry = strdup(text);
	} else {
		value = getenv(text);
		if (!value) {
			(void)err_set(e, ERR_INVALID, "--env '%s': not set in your environment",
				      text);
			(void)err_hint(e, "give a value: --env %s=VALUE", text);
			return NULL;
		}
		if (asprintf(&entry, "%s=%s", text, value) < 0)
			entry = NULL;
	}
	if (!entry)
		(void)err_sys(e, ENOMEM, "--env");
	return entry;
}

/* A later value of the same variable replaces the earlier one, as with env(1). */
static int add_env(struct sandbox_plan *p, const char *text, struct err *e)
{
	size_t n = span(text, "_");
	char *entry;

	if (n == 0 || isdigit((unsigned char)text[0]) || (text[n] && text[n] != '='))
		return err_set(e, ERR_INVALID,
			       "--env '%.*s': a name is made of letters, digits and '_'",
			       (int)strcspn(text, "="), text);
	entry = env_entry(text, n, e);
	if (!entry)
		return -1;
	for (int i = 0; i < p->nenv; i++)
		if (strncmp(p->env[i], entry, n + 1) == 0) {
			free(p->env[i]);
			p->env[i] = entry;
			return 0;
		}
	p->env[p->nenv++] = entry;
	return 0;
}

static int resolve_env(const struct sandbox_opts *o, struct sandbox_plan *p, struct err *e)
{
	if (o->envs.n > LIMIT_ENV)
		return err_set(e, ERR_INVALID, "%d times --env; at most %d are possible", o->envs.n,
			       LIMIT_ENV);
	p->nenv = 0;
	p->env = calloc((size_t)o->envs.n + 1, sizeof *p->env);
	if (!p->env)
		return err_sys(e, ENOMEM, "--env");
	for (int i = 0; i < o->envs.n; i++)
		if (add_env(p, o->envs.items[i], e) < 0)
			return -1;
	return 0;
}

static int add_label(struct sandbox_plan *p, const char *text, struct err *e)
{
	size_t n = span(text, "_.-/");

	if (n == 0 || text[n] != '=')
		return err_set(e, ERR_INVALID,
			       "--label '%.200s': write K=V, K of letters, digits and '_.-/'",
			       text);
	if (strlen(text) > LIMIT_LABEL || !is_printable(text))
		return err_set(e, ERR_INVALID, "--label '%.200s': at most %d printable characters",
			       text, LIMIT_LABEL);
	for (int i = 0; i < p->nlabels; i++)
		if (strncmp(p->labels[i], text, n + 1) == 0)
			return err_set(e, ERR_INVALID, "--label '%.*s' is given twice", (int)n,
				       text);
	p->labels[p->nlabels++] = text;
	return 0;
}

static int resolve_labels(const struct sandbox_opts *o, struct sandbox_plan *p, struct err *e)
{
	if (o->labels.n > LIMIT_LABELS)
		return err_set(e, ERR_INVALID, "%d times --label; at most %d are possible",
			       o->labels.n, LIMIT_LABELS);
	p->nlabels = 0;
	p->labels = calloc((size_t)o->labels.n + 1, sizeof *p->labels);
	if (!p->labels)
		return err_sys(e, ENOMEM, "--label");
	for (int i = 0; i < o->labels.n; i++)
		if (add_label(p, o->labels.items[i], e) < 0)
			return -1;
	return 0;
}

/* name, uid or uid:gid; whether it exists is known only inside. */
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

static int check_texts(const struct sandbox_opts *o, struct err *e)
{
	if (o->template_ && (!o->template_[0] || strlen(o->template_) > 255))
		return err_set(e, ERR_INVALID, "--template '%.200s': 1 to 255 characters",
			       o->template_);
	if (o->name && !state_name_ok(o->name))
		return err_set(
			e, ERR_INVALID,
			"--name '%.200s': letters, digits and '_.-', at most %d, a letter or "
			"digit first",
			o->name, LIMIT_NAME);
	if (o->call_id &&
	    (!o->call_id[0] || strlen(o->call_id) > LIMIT_NAME || !is_printable(o->call_id)))
		return err_set(e, ERR_INVALID, "--call-id '%.200s': 1 to %d printable characters",
			       o->call_id, LIMIT_NAME);
	if (o->hostname && !hostname_ok(o->hostname))
		return err_set(e, ERR_INVALID,
			       "--hostname '%.200s': letters, digits, '-' and '.', at most 63",
			       o->hostname);
	if (o->user && !user_ok(o->user))
		return err_set(e, ERR_INVALID, "--user '%.200s': a name, UID, or UID:GID", o->user);
	if (o->cwd && (o->cwd[0] != '/' || has_dotdot(o->cwd) || strlen(o->cwd) >= LIMIT_PATH))
		return err_set(e, ERR_INVALID,
			       "--cwd '%.200s': a path inside, from '/' on, without '..'", o->cwd);
	return 0;
}

static int resolve_trace(const char *text, enum trace_level *ret, struct err *e)
{
	if (text && strcmp(text, "full") != 0 && strcmp(text, "calls") != 0)
		return err_set(e, ERR_INVALID, "--trace '%s': full or calls", text);
	*ret = text && strcmp(text, "calls") == 0 ? TRACE_CALLS : TRACE_FULL;
	return 0;
}

/* What can be told without the sandbox's accounts; init checks the rest. */
static bool user_is_other(const char *user)
{
	return strcmp(user, "root") == 0 ||
	       (isdigit((unsigned char)user[0]) && strtoul(user, NULL, 10) != LOCKED_USER);
}

static int resolve_profile(const struct sandbox_opts *o, enum profile *ret, struct err *e)
{
	const char *text = o->profile ? o->profile : "dev";

	*ret = strcmp(text, "locked") == 0 ? PROFILE_LOCKED : PROFILE_DEV;
	if (*ret == PROFILE_DEV && strcmp(text, "dev") != 0)
		return err_set(e, ERR_INVALID, "--profile '%.200s': dev or locked", text);
	if (*ret == PROFILE_DEV || !o->user || !user_is_other(o->user))
		return 0;
	(void)err_set(e, ERR_INVALID, "--user '%s': with --profile locked only the user %d",
		      o->user, LOCKED_USER);
	return err_hint(e, "leave out --user, or take --profile dev");
}

int sandbox_opts_resolve(const struct sandbox_opts *o, const struct state *s,
			 struct sandbox_plan *ret, struct err *e)
{
	auto_done(sandbox_plan_done) struct sandbox_plan p = {
		.template_ = o->template_ ? o->template_ : "host",
		.net_policy = BUF_INIT(LIMIT_POLICY)
	};

	if (limit_opts_check(&o->limits, e) < 0 || net_opts_resolve(&o->net, &p.net_policy, e) < 0)
		return -1;
	if (check_texts(o, e) < 0 || resolve_trace(o->trace, &p.trace, e) < 0 ||
	    resolve_profile(o, &p.profile, e) < 0 || resolve_labels(o, &p, e) < 0 ||
	    resolve_env(o, &p, e) < 0 || resolve_mounts(o, s, &p, e) < 0)
		return -1;
	*ret = p;
	p = (struct sandbox_plan){ 0 };
	return 0;
}

/* The first --dir, which lists show, stays first although the plan is sorted. */
static void put_mounts(struct out_json *j, const char *key, const struct sandbox_plan *p, bool ro)
{
	out_json_open(j, key, '[');
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < p->nmounts; i++) {
			const struct sandbox_mount *m = &p->mounts[i];
			bool first = !ro && p->first_dir && strcmp(m->dest, p->first_dir) == 0;

			if (m->ro != ro || first != (pass == 0))
				continue;
			out_json_open(j, NULL, '{');
			out_json_text(j, "path", str_of(m->path));
			out_json_text(j, "dest", str_of(m->dest));
			out_json_close(j, '}');
		}
	out_json_close(j, ']');
}

static void put_spec(struct out_json *j, const struct sandbox_opts *o, const struct sandbox_plan *p)
{
	out_json_open(j, NULL, '{');
	out_json_text(j, "template", str_of(p->template_));
	put_mounts(j, "dirs", p, false);
	put_mounts(j, "ros", p, true);
	out_json_open(j, "env_keys", '[');
	for (int i = 0; i < p->nenv; i++)
		out_json_text(j, NULL, (struct str){ p->env[i], strcspn(p->env[i], "=") });
	out_json_close(j, ']');
	out_json_c(j, "cwd", o->cwd);
	out_json_c(j, "user", o->user);
	out_json_c(j, "name", o->name);
	out_json_open(j, "labels", '{');
	for (int i = 0; i < p->nlabels; i++) {
		size_t n = strcspn(p->labels[i], "=");
		char key[LIMIT_LABEL + 1];

		(void)str_copy(key, sizeof key, (struct str){ p->labels[i], n });
		out_json_text(j, key, str_of(p->labels[i] + n + 1));
	}
	out_json_close(j, '}');
	out_json_c(j, "hostname", o->hostname);
	out_json_c(j, "profile", p->profile == PROFILE_LOCKED ? "locked" : "dev");
	out_json_c(j, "trace", p->trace == TRACE_CALLS ? "calls" : "full");
	limit_opts_spec(&o->limits, j);
	net_opts_spec(&o->net, j);
	if (p->seen_ns)
		out_json_num(j, "seen_ns", (int64_t)p->seen_ns);
	out_json_close(j, '}');
}

char *sandbox_plan_spec(const struct sandbox_opts *o, const struct sandbox_plan *p)
{
	char *out = NULL;
	size_t n = 0;
	struct out_json j = { .f = open_memstream(&out, &n) };

	if (!j.f)
		return NULL;
	put_spec(&j, o, p);
	if (fclose(j.f) == 0)
		return out;
	free(out);
	return NULL;
}
