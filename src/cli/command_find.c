/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the row of a command from its words. */
#include <string.h>

#include "base/suggest.h"
#include "cli/cmd.h"

const char *cmd_of_group(const struct cmd *cmd, const char *group)
{
	size_t n = strlen(group);

	return strncmp(cmd->name, group, n) == 0 && cmd->name[n] == ' ' ? cmd->name + n + 1 : NULL;
}

bool cmd_is_group(const char *word)
{
	for (int i = 0; commands[i]; i++)
		if (cmd_of_group(commands[i], word))
			return true;
	return false;
}

const struct cmd *cmd_find(char *const *words, int n, int *ret_used)
{
	for (int i = 0; commands[i]; i++) {
		const char *sub = n > 1 ? cmd_of_group(commands[i], words[0]) : NULL;
		bool two = sub && strcmp(sub, words[1]) == 0;

		if (!two && strcmp(commands[i]->name, words[0]) != 0)
			continue;
		*ret_used = two ? 2 : 1;
		return commands[i];
	}
	return NULL;
}

/* Candidates to compare with: the second words in a group, else the first words. */
static void offer_all(struct suggest *s, const char *group)
{
	for (int i = 0; commands[i]; i++) {
		const char *name = group ? cmd_of_group(commands[i], group) : commands[i]->name;

		if (name && !commands[i]->hidden)
			suggest_offer(s, name);
	}
}

int cmd_unknown(struct cmd_ctx *ctx, char *const *words, int n, struct err *e)
{
	const char *group = n > 1 && cmd_is_group(words[0]) ? words[0] : NULL;
	struct suggest s = { .word = group ? words[1] : words[0] };
	const char *before = group ? group : "", *blank = group ? " " : "";

	/* --json may follow an unknown command. */
	for (int i = 1; i < ctx->nargs && strcmp(ctx->args[i], "--") != 0; i++)
		ctx->json |= strcmp(ctx->args[i], "--json") == 0;
	offer_all(&s, group);
	if (s.best)
		(void)err_set(e, ERR_INVALID, "no command '%s%s%s'; did you mean '%s%s%s'?", before,
			      blank, s.word, before, blank, s.best);
	else
		(void)err_set(e, ERR_INVALID, "no command '%s%s%s'", before, blank, s.word);
	return err_hint(e, "cay %s%s--help lists the commands", before, blank);
}
