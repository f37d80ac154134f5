/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion: a small script per shell, which asks `cay __complete WORD...` for candidates. The
 * last word is the one being typed. Each line of the answer is a candidate, with its description
 * after a tab; or one of
 *   :file      complete files
 *   :command   complete programs
 * The candidate for --name=value is the whole word.
 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/options.h"
#include "cli/output.h"
#include "ops/list.h"

static const char bash_script[] =
	"_cay() {\n"
	"	# bash cuts words at = and :, which are put together again here\n"
	"	local i w last=${COMP_WORDS[COMP_CWORD]} glue=''\n"
	"	local -a words=()\n"
	"	for ((i = 1; i <= COMP_CWORD; i++)); do\n"
	"		w=${COMP_WORDS[i]}\n"
	"		if [[ ${#words[@]} -gt 0 && ( -n $glue || $w == [=:]* ) ]]; then\n"
	"			words[-1]+=$w\n"
	"		else\n"
	"			words+=(\"$w\")\n"
	"		fi\n"
	"		glue=''\n"
	"		[[ $w == [=:] ]] && glue=1\n"
	"	done\n"
	"	[[ $last == [=:] ]] && last=''\n"
	"	local prefix=${words[-1]%\"$last\"} word\n"
	"	COMPREPLY=()\n"
	"	while IFS=$'\\t' read -r word _; do\n"
	"		case $word in\n"
	"		:file)\n"
	"			compopt -o filenames 2>/dev/null\n"
	"			while IFS= read -r w; do COMPREPLY+=(\"$w\"); done < <(compgen -f -- \"$last\")\n"
	"			;;\n"
	"		:command)\n"
	"			while IFS= read -r w; do COMPREPLY+=(\"$w\"); done < <(compgen -c -- \"$last\")\n"
	"			;;\n"
	"		*) COMPREPLY+=(\"${word#\"$prefix\"}\") ;;\n"
	"		esac\n"
	"	done < <(cay __complete \"${words[@]}\" 2>/dev/null)\n"
	"}\n"
	"complete -F _cay cay\n";

static const char zsh_script[] =
	"#compdef cay\n"
	"_cay() {\n"
	"	local line\n"
	"	local -a found\n"
	"	for line in \"${(@f)$(cay __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\"; do\n"
	"		case $line in\n"
	"		:file) _files ;;\n"
	"		:command) _command_names -e ;;\n"
	"		?*$'\\t'?*) found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
	"		?*) found+=(\"${${line%%$'\\t'*}//:/\\\\:}\") ;;\n"
	"		esac\n"
	"	done\n"
	"	(( $#found )) && _describe cay found\n"
	"}\n"
	"if [[ $funcstack[1] == _cay ]]; then _cay \"$@\"; else compdef _cay cay; fi\n";

static const char fish_script[] =
	"function __cay_complete\n"
	"	set -l words (commandline -opc) (commandline -ct)\n"
	"	set -e words[1]\n"
	"	for line in (cay __complete $words 2>/dev/null)\n"
	"		switch $line\n"
	"			case ':file'\n"
	"				__fish_complete_path (commandline -ct)\n"
	"			case ':command'\n"
	"				__fish_complete_command\n"
	"			case '*'\n"
	"				printf '%s\\n' $line\n"
	"		end\n"
	"	end\n"
	"end\n"
	"complete -c cay -f -a '(__cay_complete)'\n";

static int run_completion(struct cmd_ctx *ctx, struct err *e)
{
	static const struct {
		const char *shell, *script;
	} scripts[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };

	if (cmd_need_args(ctx, 1, 1, "the shell's name", e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++)
		if (strcmp(ctx->args[0], scripts[i].shell) == 0) {
			fputs(scripts[i].script, stdout);
			return 0;
		}
	return cmd_usage(ctx, e, "no completion for '%s', only for bash, zsh and fish",
			 ctx->args[0]);
}

const struct cmd cmd_completion = {
	.name = "completion",
	.synopsis = "bash|zsh|fish",
	.summary = "Print a script that completes commands, options and sandboxes",
	.examples = "source <(cay completion bash)\n"
		    "cay completion zsh > ~/.zfunc/_cay\n"
		    "cay completion fish > ~/.config/fish/completions/cay.fish",
	.run = run_completion,
	.complete = "bash|zsh|fish",
};

/* The part of the line that decides which words may follow. */
struct line {
	const struct cmd *cmd;
	const struct opt *pending; /* an option whose value is the last word */
	int positionals;	   /* number before the last word */
	bool ended;		   /* no more options */
	const char *word;	   /* the last word */
};

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1];
}

static const struct opt *opt_of(const struct cmd *cmd, const char *word)
{
	if (word[1] != '-')
		return word[2] ? NULL : option_letter(cmd, word[1]);
	return option_long(cmd, str_of(word + 2));
}

static void read_word(struct line *l, const char *word)
{
	if (l->pending) {
		l->pending = NULL;
		return;
	}
	if (l->ended || !is_option(word)) {
		l->positionals++;
		l->ended |= l->cmd->stop_at && l->positionals >= l->cmd->stop_at;
		return;
	}
	if (strcmp(word, "--") == 0) {
		l->ended = true;
		return;
	}
	l->pending = opt_of(l->cmd, word);
	if (l->pending && l->pending->kind == OPT_FLAG)
		l->pending = NULL;
}

static void offer(const char *word, const char *prefix, const char *text, const char *about)
{
	char all[512];

	(void)snprintf(all, sizeof all, "%s%s", prefix, text);
	if (strncmp(all, word, strlen(word)) == 0)
		printf("%s\t%s\n", all, about);
}

/* Offer the first word of each command; a group only once. */
static void offer_commands(const char *word)
{
	const char *last = "";

	for (int i = 0; commands[i]; i++) {
		const char *name = commands[i]->name;
		size_t n = strcspn(name, " ");
		char first[64];

		if (commands[i]->hidden || !str_copy(first, sizeof first, (struct str){ name, n }))
			continue;
		if (name[n] && cmd_of_group(commands[i], first) && strncmp(last, name, n + 1) == 0)
			continue;
		offer(word, "", first, commands[i]->summary);
		last = name;
	}
}

static void offer_group(const char *group, const char *word)
{
	for (int i = 0; commands[i]; i++) {
		const char *sub = cmd_of_group(commands[i], group);

		if (sub && !commands[i]->hidden)
			offer(word, "", sub, commands[i]->summary);
	}
}

static void offer_options(const struct line *l)
{
	const struct opt *o;

	for (int i = 0; (o = option_at(l->cmd, i)); i++)
		offer(l->word, "--", o->name, o->help);
}

static void offer_choices(const char *word, const char *prefix, const char *choices)
{
	while (*choices) {
		size_t n = strcspn(choices, "|");
		char one[64];

		if (str_copy(one, sizeof one, (struct str){ choices, n }))
			offer(word, prefix, one, "");
		choices += n + (choices[n] == '|');
	}
}

/* Print no errors during completion: without a store there are no candidates. */
static void offer_sandboxes(const char *word, const char *prefix)
{
	auto_done(cli_done) struct cay s = { 0 };
	auto_done(sandbox_list_done) struct sandbox_list list = { 0 };
	struct err ignored;

	if (cli_open(&s, &ignored) < 0 || sandbox_list_load(&list, &s, &ignored) < 0)
		return;
	for (int i = 0; i < list.n; i++) {
		const struct sandbox_row *row = &list.rows[i];

		if (row->name[0])
			offer(word, prefix, row->name, row->id);
		offer(word, prefix, row->id, row->name[0] ? row->name : row->state);
	}
}

/* The value name in help tells what kind of value an option takes. */
static void offer_value(const char *word, const char *prefix, const char *arg)
{
	if (!arg)
		return;
	if (strchr(arg, '|'))
		offer_choices(word, prefix, arg);
	else if (strcmp(arg, "SANDBOX") == 0 || strcmp(arg, "ID") == 0)
		offer_sandboxes(word, prefix);
	else if (strncmp(arg, "PATH", 4) == 0 || strcmp(arg, "FILE") == 0 ||
		 strcmp(arg, "DIR") == 0)
		puts(":file");
}

static void offer_positional(const struct line *l)
{
	const char *what = l->cmd->complete;
	bool more = l->cmd->synopsis && strstr(l->cmd->synopsis, "...");

	if (l->cmd->stop_at && l->positionals >= l->cmd->stop_at)
		puts(":file");
	else if (l->cmd->runs_commands && l->positionals == l->cmd->stop_at - 1)
		puts(":command");
	else if (!what || (l->positionals > 0 && !more))
		return;
	else if (strchr(what, '|'))
		offer_choices(l->word, "", what);
	else if (strcmp(what, "sandbox") == 0)
		offer_sandboxes(l->word, "");
	else if (strcmp(what, "command-name") == 0)
		offer_commands(l->word);
	else
		printf(":%s\n", strcmp(what, "command") == 0 ? "command" : "file");
}

static void offer_for(const struct line *l)
{
	const char *eq = strchr(l->word, '=');
	const struct opt *o;

	if (l->pending) {
		offer_value(l->word, "", l->pending->arg);
		return;
	}
	if (l->ended || l->word[0] != '-') {
		offer_positional(l);
		return;
	}
	if (!eq || l->word[1] != '-') {
		offer_options(l);
		return;
	}
	o = option_long(l->cmd, (struct str){ l->word + 2, (size_t)(eq - l->word - 2) });
	if (o && o->kind != OPT_FLAG) {
		char prefix[80];

		(void)snprintf(prefix, sizeof prefix, "--%s=", o->name);
		offer_value(l->word, prefix, o->arg);
	}
}

static int run_complete(struct cmd_ctx *ctx, struct err *e)
{
	struct line l = { .word = ctx->nargs ? ctx->args[ctx->nargs - 1] : "" };
	int at = 0, used = 0;

	(void)e;
	while (at < ctx->nargs - 1 && is_option(ctx->args[at]))
		at++;
	if (at >= ctx->nargs - 1) {
		offer_commands(l.word);
		return 0;
	}
	l.cmd = cmd_find(ctx->args + at, ctx->nargs - 1 - at, &used);
	if (!l.cmd && at == ctx->nargs - 2)
		offer_group(ctx->args[at], l.word);
	if (!l.cmd || l.cmd->raw)
		return 0;
	for (at += used; at < ctx->nargs - 1; at++)
		read_word(&l, ctx->args[at]);
	offer_for(&l);
	return 0;
}

const struct cmd cmd_complete = {
	.name = "__complete",
	.synopsis = "WORD...",
	.summary = "Candidates for the last of the words (completion scripts call this)",
	.run = run_complete,
	.hidden = true,
	.raw = true,
};
