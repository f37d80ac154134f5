/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy_load.h"

#include <fcntl.h>

#include "base/io.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "policy/compile.h"

static bool is_path(const char *net)
{
	return strchr(net, '/') || strchr(net, '.') || strcmp(net, "-") == 0;
}

static bool is_json(struct str name, struct str text)
{
	static const struct str ext = STR(".json");

	/* JSON is YAML, but not all readers of YAML take all of it; an object begins with '{'. */
	if (name.n > ext.n && memcmp(name.p + name.n - ext.n, ext.p, ext.n) == 0)
		return true;
	return text.n > 1 && text.p[0] == '{' && (text.p[1] == '"' || text.p[1] == '\n');
}

static int read_file(const char *path, struct buf *ret, struct err *e)
{
	int r = strcmp(path, "-") == 0 ? io_read_all(STDIN_FILENO, ret)
				       : io_read_file(AT_FDCWD, path, ret);

	if (r == -E2BIG)
		return err_set(e, ERR_INVALID, "%s: a policy has at most %d KiB", path,
			       LIMIT_POLICY_TEXT / 1024);
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, "policy file '%s' not found", path);
	return r < 0 ? err_sys(e, -r, "policy file '%s'", path) : 0;
}

static int add_file(struct policy_builder *b, const char *path, struct err *e)
{
	auto_done(buf_done) struct buf text = BUF_INIT(LIMIT_POLICY_TEXT);
	struct policy_document d = { .file = strcmp(path, "-") == 0 ? "stdin" : path };

	if (read_file(path, &text, e) < 0)
		return -1;
	d.text = buf_str(&text);
	d.format = is_json(str_of(path), d.text) ? POLICY_JSON : POLICY_YAML;
	return policy_add_document(b, &d, e);
}

static int no_preset(const char *name, struct err *e)
{
	struct suggest s = { .word = name };
	const struct policy_preset *p;

	for (size_t i = 0; (p = policy_preset_at(i)); i++)
		suggest_offer(&s, p->name);
	if (s.best)
		(void)err_set(e, ERR_NOT_FOUND, "no preset '%s'; did you mean '%s'?", name, s.best);
	else
		(void)err_set(e, ERR_NOT_FOUND, "no preset '%s'", name);
	return err_hint(e,
			"presets: none, coding, research, open; a file is written with its "
			"path: ./%s",
			name);
}

static int add_net(struct policy_builder *b, const char *net, struct err *e)
{
	const struct policy_preset *p;

	if (is_path(net))
		return add_file(b, net, e);
	p = policy_preset_find(str_of(net));
	return p ? policy_add_preset(b, p, e) : no_preset(net, e);
}

static int add_targets(struct policy_builder *b, enum policy_action action,
		       const struct opt_list *list, struct err *e)
{
	for (int i = 0; list && i < list->n; i++)
		if (policy_add_target(b, action, list->items[i], e) < 0)
			return -1;
	return 0;
}

int policy_load(const struct policy_source *s, struct buf *ret_compiled, struct policy **ret,
		struct err *e)
{
	auto_done(policy_builder_done) struct policy_builder b;
	int r;

	policy_builder_init(&b);
	if (add_targets(&b, POLICY_ACT_DENY, s->deny, e) < 0 ||
	    add_targets(&b, POLICY_ACT_ALLOW, s->allow, e) < 0 ||
	    add_net(&b, s->net ? s->net : "none", e) < 0 || policy_build(&b, ret_compiled, e) < 0)
		return -1;
	if (!ret)
		return 0;
	r = policy_decode(buf_str(ret_compiled), ret);
	return r < 0 ? err_sys(e, -r, "the compiled policy cannot be read") : 0;
}
