/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox/run_apply.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/state/takeover.h"

int run_apply_parse(const char *text, bool has_dir, enum run_apply *ret, struct err *e)
{
	static const char *const names[] = { "never", "success", "ask", "always" };

	*ret = RUN_APPLY_NEVER;
	if (!text)
		return 0;
	while (strcmp(text, names[*ret]) != 0)
		if (++*ret > RUN_APPLY_ALWAYS)
			return err_set(e, ERR_INVALID,
				       "--apply '%.100s': write success, ask, always or never",
				       text);
	if (*ret != RUN_APPLY_NEVER && !has_dir)
		return err_set(e, ERR_INVALID, "--apply %s: there is no --dir to apply to", text);
	if (*ret == RUN_APPLY_ASK && !isatty(STDIN_FILENO)) {
		(void)err_set(e, ERR_INVALID, "--apply ask: there is no terminal to ask on");
		return err_hint(e, "write --apply success, or --keep and then: cay apply");
	}
	return 0;
}

enum answer { YES, NO, KEEP };

static enum answer ask(const struct takeover *t, int code)
{
	char text[16] = "";

	if (code)
		fprintf(stderr, "The command ended with code %d.\n", code);
	fprintf(stderr, "Apply %zu change%s? [y]es, [n]o and drop them, [k]eep the sandbox: ",
		takeover_steps(t), takeover_steps(t) == 1 ? "" : "s");
	(void)fflush(stderr);
	/* Nothing is dropped without a word. */
	if (!fgets(text, sizeof text, stdin))
		return KEEP;
	return text[0] == 'y' || text[0] == 'Y'	  ? YES
	       : text[0] == 'n' || text[0] == 'N' ? NO
						  : KEEP;
}

static int keep(const struct creation *n, struct err *e)
{
	char why[sizeof e->hint];

	(void)str_copy(why, sizeof why, str_of(e->hint));
	return err_hint(e, "%s%ssandbox %s is kept: cay apply %s, or cay kill %s", why,
			why[0] ? "; " : "", n->row.id, n->row.id, n->row.id);
}

bool run_apply_wants(enum run_apply how, bool tx, int code)
{
	if (how == RUN_APPLY_NEVER || code < 0)
		return false;
	return code == 0 || (how != RUN_APPLY_SUCCESS && !tx);
}

int run_apply(const struct cmd_ctx *ctx, struct creation *n, enum run_apply how, int code,
	      struct err *e)
{
	auto_done(takeover_done) struct takeover t = { 0 };
	const struct takeover_opts opts = { 0 };
	enum answer answer = YES;
	size_t refused, conflicts;

	if (takeover_plan(&t, n->cay, &n->row, &opts, e) < 0)
		return keep(n, e);
	refused = takeover_refused(&t);
	if (!refused && !takeover_steps(&t))
		return 0;
	takeover_print(&t, ctx, refused > 0, stderr);
	if (refused) {
		(void)err_set(e, ERR_CONFLICT, "%zu changes cannot be applied; nothing was changed",
			      refused);
		return keep(n, e);
	}
	if (how == RUN_APPLY_ASK)
		answer = ask(&t, code);
	if (answer == YES && takeover_run(&t, &conflicts, e) < 0)
		return keep(n, e);
	return answer == KEEP;
}
