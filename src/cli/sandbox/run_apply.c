/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sandbox/run_apply.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/hints.h"
#include "cli/state/apply_print.h"

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

static enum answer ask(size_t steps, int code)
{
	char text[16] = "";

	if (code)
		fprintf(stderr, "The command ended with code %d.\n", code);
	fprintf(stderr,
		"Apply %zu change%s? [y]es, [n]o and drop them, [k]eep the sandbox: ", steps,
		steps == 1 ? "" : "s");
	(void)fflush(stderr);
	/* Without an answer, keep the changes. */
	if (!fgets(text, sizeof text, stdin))
		return KEEP;
	return text[0] == 'y' || text[0] == 'Y'	  ? YES
	       : text[0] == 'n' || text[0] == 'N' ? NO
						  : KEEP;
}

static int keep(const struct creation *n, struct err *e)
{
	char why[sizeof e->hint];

	hint_text(e, why, sizeof why);
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
	auto_done(apply_planned_done) struct apply_planned p = { 0 };
	const struct apply_spec spec = { .sandbox = n->row.id };
	enum answer answer = YES;
	size_t conflicts;

	if (op_apply_plan(n->cay, &spec, &p, e) < 0)
		return keep(n, e);
	if (!p.refused && !p.steps)
		return 0;
	apply_print(&p, ctx, p.refused > 0, stderr);
	if (apply_check(&p, e) < 0)
		return keep(n, e);
	if (how == RUN_APPLY_ASK)
		answer = ask(p.steps, code);
	if (answer == YES && op_apply_run(&p, &conflicts, e) < 0)
		return keep(n, e);
	return answer == KEEP;
}
