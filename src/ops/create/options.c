/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/create/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

enum { OPTIONS_MAX = 256 * 1024 };

/* Lists show the first of the dirs, so it stays first although the plan is sorted. */
static void put_mounts(struct json *j, const char *key, const struct create_plan *p, bool ro)
{
	json_put_arr(j, key);
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < p->nmounts; i++) {
			const struct plan_mount *m = &p->mounts[i];
			bool first = !ro && p->first_dir && strcmp(m->dest, p->first_dir) == 0;

			if (m->ro != ro || first != (pass == 0))
				continue;
			json_obj(j);
			json_put_str(j, "path", str_of(m->path));
			json_put_str(j, "dest", str_of(m->dest));
			json_end(j);
		}
	json_end(j);
}

/* NULL and empty text are written as null. */
static void put_text(struct json *j, const char *key, const char *text)
{
	json_put_c(j, key, text && text[0] ? text : NULL);
}

static void put_list(struct json *j, const char *key, const struct text_list *l)
{
	if (!l->n)
		return;
	json_put_arr(j, key);
	for (int i = 0; i < l->n; i++)
		json_c(j, l->items[i]);
	json_end(j);
}

static void put_labels(struct json *j, const struct create_plan *p)
{
	json_put_obj(j, "labels");
	for (int i = 0; i < p->nlabels; i++) {
		size_t n = strcspn(p->labels[i], "=");
		char key[LIMIT_LABEL + 1];

		(void)str_copy(key, sizeof key, (struct str){ p->labels[i], n });
		json_put_str(j, key, str_of(p->labels[i] + n + 1));
	}
	json_end(j);
}

static void put_options(struct json *j, const struct create_plan *p)
{
	const struct create_spec *s = p->spec;

	json_obj(j);
	json_put_str(j, "template", str_of(p->template_));
	put_mounts(j, "dirs", p, false);
	put_mounts(j, "ros", p, true);
	json_put_arr(j, "env_keys");
	for (int i = 0; i < p->nenv; i++)
		json_str(j, (struct str){ p->env[i], strcspn(p->env[i], "=") });
	json_end(j);
	put_text(j, "cwd", s->cwd);
	put_text(j, "user", s->user);
	put_text(j, "name", s->name);
	put_labels(j, p);
	put_text(j, "hostname", s->hostname);
	json_put_c(j, "profile", p->profile == PROFILE_LOCKED ? "locked" : "dev");
	json_put_c(j, "trace", p->trace == TRACE_CALLS ? "calls" : "full");
	if (s->nested)
		json_put_bool(j, "nested", true);
	limits_options(&s->limits, j);
	if (s->net.preset)
		put_text(j, "net", s->net.preset);
	put_list(j, "allow", &s->net.allow);
	put_list(j, "deny", &s->net.deny);
	if (p->seen_ns)
		json_put_u64(j, "seen_ns", p->seen_ns);
	json_end(j);
}

char *options_write(const struct create_plan *p)
{
	auto_done(buf_done) struct buf b = BUF_INIT(OPTIONS_MAX);
	struct json j;

	json_init(&j, &b);
	put_options(&j, p);
	return json_done(&j) == 0 ? strndup(b.data, b.len) : NULL;
}

json_t *options_load(const struct sandbox_row *row)
{
	json_t *spec = row->spec ? json_loads(row->spec, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (json_is_object(spec))
		return spec;
	json_decref(spec);
	return NULL;
}

uint64_t options_seen_ns(const char *spec)
{
	auto_done(options_free) json_t *v = spec ? json_loads(spec, 0, NULL) : NULL;

	return (uint64_t)json_integer_value(json_object_get(v, "seen_ns"));
}

const char *options_text(const json_t *v, const char *key)
{
	if (key)
		v = json_object_get(v, key);
	if (json_is_object(v))
		v = json_object_get(v, "b64");
	return json_string_value(v);
}

const char *options_first_dir(const json_t *spec)
{
	return options_text(json_array_get(json_object_get(spec, "dirs"), 0), "path");
}

bool options_has_label(const json_t *spec, const char *want)
{
	const char *eq = strchr(want, '=');
	auto_free char *key = eq ? strndup(want, (size_t)(eq - want)) : strdup(want);
	const char *value = key ? options_text(json_object_get(spec, "labels"), key) : NULL;

	return value && (!eq || strcmp(value, eq + 1) == 0);
}
