/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy/policy_load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/limits.h"
#include "ops/policy.h"

static bool is_path(const char *net)
{
	return strchr(net, '/') || strchr(net, '.') || strcmp(net, "-") == 0;
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

static struct text_list list_of(const struct opt_list *l)
{
	return l ? (struct text_list){ l->items, l->n } : (struct text_list){ 0 };
}

int policy_load(const struct policy_source *s, struct buf *ret_compiled, struct policy **ret,
		struct err *e)
{
	auto_done(buf_done) struct buf text = BUF_INIT(LIMIT_POLICY_TEXT);
	struct policy_spec spec = { .allow = list_of(s->allow), .deny = list_of(s->deny) };

	if (s->net && is_path(s->net)) {
		if (read_file(s->net, &text, e) < 0)
			return -1;
		spec.file = strcmp(s->net, "-") == 0 ? "stdin" : s->net;
		spec.text = buf_str(&text);
	} else {
		spec.preset = s->net;
	}
	return op_policy_compile(&spec, ret_compiled, ret, e);
}
