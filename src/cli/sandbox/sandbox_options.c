/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox/sandbox_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "cli/output.h"
#include "cli/sandbox/toolchains.h"

void sandbox_spec_done(struct sandbox_spec *s)
{
	for (int i = 0; i < s->ntexts; i++)
		free(s->texts[i]);
	free(s->texts);
	free(s->mounts);
	free(s->env);
	buf_done(&s->policy);
	*s = (struct sandbox_spec){ 0 };
}

/* Takes ownership of text, which may be NULL if out of memory. */
static const char *own(struct sandbox_spec *s, char *text)
{
	if (text)
		s->texts[s->ntexts++] = text;
	return text;
}

/*
 * Returns the part up to the next unescaped ':', allocated. *at then points behind the ':', or is
 * NULL at the end.
 */
static char *take_part(const char **at)
{
	char *out = malloc(strlen(*at) + 1);
	const char *p = *at;
	size_t n = 0;

	if (!out)
		return NULL;
	for (; *p && *p != ':'; p++) {
		if (p[0] == '\\' && p[1] == ':')
			p++;
		out[n++] = *p;
	}
	out[n] = '\0';
	*at = *p ? p + 1 : NULL;
	return out;
}

/* Parses one PATH[:DEST]; "\:" stands for a colon in either part. */
static int parse_mount(struct sandbox_spec *s, const char *text, bool ro, struct mount_spec *ret,
		       struct err *e)
{
	const char *name = ro ? "--ro" : "--dir", *at = text;

	*ret = (struct mount_spec){ .path = own(s, take_part(&at)) };
	if (ret->path && at) {
		ret->dest = own(s, take_part(&at));
		if (!ret->dest)
			ret->path = NULL;
	}
	if (!ret->path)
		return err_sys(e, ENOMEM, "%s", name);
	if (at) {
		(void)err_set(e, ERR_INVALID, "%s '%.200s': more than one ':'", name, text);
		return err_hint(e, "write PATH:DEST, and '\\:' for a colon that belongs to a path");
	}
	if (!ret->path[0])
		return err_set(e, ERR_INVALID, "%s '%.200s': the path is empty", name, text);
	return 0;
}

static int parse_mounts(const struct sandbox_opts *o, struct sandbox_spec *s, struct err *e)
{
	for (int i = 0; i < o->dirs.n; i++)
		if (parse_mount(s, o->dirs.items[i], false, &s->mounts[i], e) < 0)
			return -1;
	for (int i = 0; i < o->ros.n; i++)
		if (parse_mount(s, o->ros.items[i], true, &s->mounts[o->dirs.n + i], e) < 0)
			return -1;
	s->spec.dirs = s->mounts;
	s->spec.ndirs = o->dirs.n;
	s->spec.ros = s->mounts + o->dirs.n;
	s->spec.nros = o->ros.n;
	return 0;
}

/* --env K without a value takes our own value of K. */
static int parse_env(struct sandbox_spec *s, const char *text, const char **ret, struct err *e)
{
	const char *value;
	char *entry;

	*ret = text;
	if (strchr(text, '=') || !text[0])
		return 0;
	value = getenv(text);
	if (!value) {
		(void)err_set(e, ERR_INVALID, "--env '%s': not set in your environment", text);
		return err_hint(e, "give a value: --env %s=VALUE", text);
	}
	if (asprintf(&entry, "%s=%s", text, value) < 0)
		return err_sys(e, ENOMEM, "--env");
	*ret = own(s, entry);
	return 0;
}

static int check_call(const struct sandbox_opts *o, struct err *e)
{
	auto_free char *safe = o->call_id ? out_safe_dup(str_of(o->call_id)) : NULL;

	if (o->call_id && (!o->call_id[0] || strlen(o->call_id) > LIMIT_NAME || !safe ||
			   strcmp(safe, o->call_id) != 0))
		return err_set(e, ERR_INVALID, "--call-id '%.200s': 1 to %d printable characters",
			       o->call_id, LIMIT_NAME);
	return limit_opts_check_call(&o->limits, e);
}

static void take_texts(const struct sandbox_opts *o, struct create_spec *spec)
{
	spec->template_ = o->template_;
	spec->name = o->name;
	spec->hostname = o->hostname;
	spec->profile = o->profile;
	spec->trace = o->trace;
	spec->nested = o->nested;
	spec->copy = o->copy;
	spec->cwd = o->cwd;
	spec->user = o->user;
	spec->labels = (struct text_list){ o->labels.items, o->labels.n };
	spec->limits = limit_opts_spec(&o->limits);
}

static bool sets_path(const struct text_list *env)
{
	for (int i = 0; i < env->n; i++)
		if (strncmp(env->items[i], "PATH=", 5) == 0)
			return true;
	return false;
}

int sandbox_opts_spec(const struct sandbox_opts *o, struct sandbox_spec *ret, struct err *e)
{
	auto_done(sandbox_spec_done) struct sandbox_spec s = { .policy = BUF_INIT(LIMIT_POLICY) };
	int mounts = o->dirs.n + o->ros.n;

	take_texts(o, &s.spec);
	s.mounts = calloc((size_t)mounts + TOOLCHAIN_MOUNTS + 1, sizeof *s.mounts);
	s.texts = calloc((size_t)(2 * (mounts + TOOLCHAIN_MOUNTS) + o->envs.n) + TOOLCHAIN_ENV + 1,
			 sizeof *s.texts);
	s.env = calloc((size_t)o->envs.n + TOOLCHAIN_ENV + 1, sizeof *s.env);
	if (!s.mounts || !s.texts || !s.env)
		return err_sys(e, ENOMEM, "read the options");
	if (check_call(o, e) < 0 || net_opts_spec(&o->net, &s.policy, &s.spec.net, e) < 0 ||
	    parse_mounts(o, &s, e) < 0)
		return -1;
	for (int i = 0; i < o->envs.n; i++)
		if (parse_env(&s, o->envs.items[i], &s.env[i], e) < 0)
			return -1;
	s.spec.env = (struct text_list){ s.env, o->envs.n };
	if (o->toolchains && toolchains_add(&s, getenv("HOME"), sets_path(&s.spec.env), e) < 0)
		return -1;
	*ret = s;
	/* The caller keeps the policy's bytes. */
	s = (struct sandbox_spec){ 0 };
	return 0;
}
