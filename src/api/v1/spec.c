/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The specification of a sandbox, as a client gives it. A key must not reach the host: paths of the
 * host, weaker isolation and YAML documents are for the host's user alone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/limits.h"
#include "api/v1/work.h"
#include "ops/policy.h"
#include "store/key_limits.h"

void v1_spec_done(struct v1_spec *s)
{
	text_pairs_done(&s->env);
	text_pairs_done(&s->labels);
	free(s->allow);
	free(s->deny);
	free(s->mounts);
	buf_done(&s->policy);
}

static int host_only(const char *field, struct err *e)
{
	(void)err_set(e, ERR_NOT_ALLOWED, "%s: only the host's user may give this", field);
	(void)err_code(e, "host.only", NULL);
	(void)err_hint(e, "use the unix socket of the server");
	return err_field(e, "%s", field);
}

static int check_key(const struct v1_ask *a, const json_t *body, struct err *e)
{
	const char *template_ = v1_text(body, "template");

	if (!a->in.owner)
		return 0;
	if (json_array_size(json_object_get(body, "dirs")))
		return host_only("dirs", e);
	if (json_array_size(json_object_get(body, "ros")))
		return host_only("ros", e);
	if (v1_is(body, "nested"))
		return host_only("nested", e);
	if (template_ && strcmp(template_, "host") != 0 && strncmp(template_, "snap:", 5) != 0)
		return host_only("template", e);
	return 0;
}

static void read_mounts(const json_t *list, struct mount_spec *out)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		out[i] = (struct mount_spec){ .path = v1_text(json_array_get(list, i), "path"),
					      .dest = v1_text(json_array_get(list, i), "dest") };
}

static int take_mounts(const json_t *body, struct v1_spec *s, struct err *e)
{
	const json_t *dirs = json_object_get(body, "dirs"), *ros = json_object_get(body, "ros");
	size_t n = json_array_size(dirs);

	s->mounts = calloc(n + json_array_size(ros) + 1, sizeof *s->mounts);
	if (!s->mounts)
		return err_sys(e, ENOMEM, "dirs");
	read_mounts(dirs, s->mounts);
	read_mounts(ros, s->mounts + n);
	s->spec.dirs = s->mounts;
	s->spec.ndirs = (int)n;
	s->spec.ros = s->mounts + n;
	s->spec.nros = (int)json_array_size(ros);
	return 0;
}

static void take_limits(const json_t *body, struct limits_spec *l)
{
	const json_t *given = json_object_get(body, "limits");

	*l = (struct limits_spec){ .memory = v1_number(given, "memory_bytes"),
				   .disk = v1_number(given, "disk_bytes"),
				   .cpu_milli = v1_number(given, "cpu_milli"),
				   .pids = v1_number(given, "pids"),
				   .files = v1_number(given, "files"),
				   .call_timeout_ms = v1_number(given, "call_timeout_ms"),
				   .ttl_ms = v1_number(body, "ttl_ms"),
				   .idle_ms = v1_number(body, "idle_ms"),
				   .on_timeout = v1_text(body, "on_timeout"),
				   .best_effort = v1_is(body, "best_effort") };
}

int v1_policy_read(const struct v1_ask *a, const json_t *body, struct v1_spec *s,
		   struct policy **ret, struct err *e)
{
	const char *text = v1_text(body, "policy");
	struct policy_spec p = { .preset = v1_text(body, "preset") };
	bool json = text && text[strspn(text, " \t\r\n")] == '{';

	if (p.preset && text) {
		(void)err_set(e, ERR_INVALID, "preset and policy are both given");
		return err_field(e, "policy");
	}
	/* libyaml does not read what a stranger wrote. */
	if (text && !json && a->in.owner) {
		(void)err_set(e, ERR_INVALID, "policy must be a JSON document");
		return err_field(e, "policy");
	}
	if (v1_texts(body, "allow", &s->allow, &p.allow.n, e) < 0 ||
	    v1_texts(body, "deny", &s->deny, &p.deny.n, e) < 0)
		return -1;
	p.allow.items = s->allow;
	p.deny.items = s->deny;
	if (text) {
		p.file = json ? "policy.json" : "policy.yaml";
		p.text = str_of(text);
	}
	s->policy = (struct buf)BUF_INIT(LIMIT_POLICY);
	if (op_policy_compile(&p, &s->policy, ret, e) < 0)
		return e->field[0] ? -1 : err_field(e, "network");
	s->spec.net = (struct net_spec){ .policy = buf_str(&s->policy),
					 .preset = text ? p.file : p.preset,
					 .allow = p.allow,
					 .deny = p.deny };
	return 0;
}

/* "snap:NAME" of a key is its own snapshot. */
static int take_template(struct job_run *r, const struct v1_ask *a, const json_t *body,
			 struct v1_spec *s, struct err *e)
{
	const char *given = v1_text(body, "template");
	char id[ID_SIZE];

	s->spec.template_ = given;
	if (!given || !a->in.owner || strncmp(given, "snap:", 5) != 0)
		return 0;
	if (v1_find_snapshot(r, a, given + 5, id, e) < 0)
		return err_field(e, "template");
	(void)snprintf(s->template_, sizeof s->template_, "snap:%s", id);
	s->spec.template_ = s->template_;
	return 0;
}

/* As with the command line: "none" without anything allowed means that there is no network. */
static bool has_network(const json_t *net)
{
	const char *preset = v1_text(net, "preset");

	return v1_text(net, "policy") || json_array_size(json_object_get(net, "allow")) ||
	       json_array_size(json_object_get(net, "deny")) ||
	       (preset && strcmp(preset, "none") != 0);
}

int v1_spec_read(struct job_run *r, const struct v1_ask *a, const json_t *body, struct v1_spec *ret,
		 struct err *e)
{
	const json_t *net = json_object_get(body, "network");
	struct create_spec *spec = &ret->spec;

	*spec = (struct create_spec){ .name = v1_text(body, "name"),
				      .hostname = v1_text(body, "hostname"),
				      .profile = v1_text(body, "profile"),
				      .trace = v1_text(body, "trace"),
				      .copy = v1_is(body, "copy"),
				      .cwd = v1_text(body, "cwd"),
				      .user = v1_text(body, "user"),
				      .owner = a->in.owner,
				      .nested = v1_is(body, "nested") };
	take_limits(body, &spec->limits);
	if (check_key(a, body, e) < 0 || take_template(r, a, body, ret, e) < 0 ||
	    take_mounts(body, ret, e) < 0 ||
	    field_pairs(body, "env", LIMIT_ENV, &ret->env, e) < 0 ||
	    field_pairs(body, "labels", LIMIT_LABELS, &ret->labels, e) < 0)
		return -1;
	spec->env = (struct text_list){ (const char *const *)ret->env.items, ret->env.n };
	spec->labels = (struct text_list){ (const char *const *)ret->labels.items, ret->labels.n };
	if (a->in.owner && api_limits(r, a->in.owner, &spec->limits, e) < 0)
		return -1;
	if (!has_network(net))
		return 0;
	if (!(a->in.scope & SCOPE_NETWORK))
		return err_set(e, ERR_NOT_ALLOWED,
			       "the scope of this key does not include 'network'");
	return v1_policy_read(a, net, ret, NULL, e);
}
