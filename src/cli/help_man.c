/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#include "cli/options.h"

/* Escape text for roff: no escapes, no requests, hyphens that can be copied. */
static void put_str(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if ((c == '.' || c == '\'') && (i == 0 || s.p[i - 1] == '\n'))
			fputs("\\&", stdout);
		if (c == '\\')
			fputs("\\e", stdout);
		else if (c == '-')
			fputs("\\-", stdout);
		else
			putchar(c);
	}
}

static void put(const char *text)
{
	put_str(str_of(text));
}

/* Paragraphs are separated by empty lines. */
static void paragraphs(const char *text)
{
	const char *end;

	for (; (end = strstr(text, "\n\n")); text = end + 2) {
		put_str((struct str){ text, (size_t)(end - text) });
		fputs("\n.PP\n", stdout);
	}
	put(text);
	putchar('\n');
}

static void option(const struct opt *o)
{
	fputs(".TP\n", stdout);
	if (o->letter)
		printf("\\fB\\-%c\\fR, ", o->letter);
	fputs("\\fB", stdout);
	put("--");
	put(o->name);
	fputs("\\fR", stdout);
	if (o->kind != OPT_FLAG) {
		fputs(" \\fI", stdout);
		put(o->arg ? o->arg : "VALUE");
		fputs("\\fR", stdout);
	}
	putchar('\n');
	put(o->help);
	putchar('\n');
}

static void command(const struct cmd *cmd)
{
	const struct opt *o;

	fputs(".SS ", stdout);
	put("cay ");
	put(cmd->name);
	if (cmd->synopsis) {
		putchar(' ');
		put(cmd->synopsis);
	}
	putchar('\n');
	put(cmd->summary);
	fputs(".\n", stdout);
	if (cmd->details) {
		fputs(".PP\n", stdout);
		paragraphs(cmd->details);
	}
	for (int i = 0; !cmd->raw && (o = option_at(cmd, i)); i++)
		if (!option_is_common(o) || strcmp(o->name, "json") == 0 || o->letter == 'q')
			option(o);
	if (!cmd->examples)
		return;
	fputs(".PP\nExamples:\n.PP\n.nf\n.RS\n", stdout);
	put(cmd->examples);
	fputs("\n.RE\n.fi\n", stdout);
}

static const char head[] =
	".SH NAME\n"
	"cay \\- sandboxes for coding agents\n"
	".SH SYNOPSIS\n"
	".B cay\n"
	".RI [ options ]\n"
	".I command\n"
	".RI [ arguments ]\n"
	".SH DESCRIPTION\n"
	"Each sandbox is an isolated machine with a file system, processes and limits of its "
	"own. It starts in milliseconds from a template and keeps its changes to itself. Every "
	"call in it is recorded in a trace.\n"
	".PP\n"
	"A sandbox is named by its id, by a unique beginning of its id, or by the name that it "
	"was given.\n";

static const char common[] =
	".SH COMMON OPTIONS\n"
	".TP\n"
	"\\fB\\-\\-color\\fR \\fIauto|always|never\\fR\n"
	"When to use colours. By default on terminals only, and not where NO_COLOR is set or TERM "
	"is dumb.\n"
	".TP\n"
	"\\fB\\-\\-json\\-file\\fR \\fIPATH\\fR, \\fB\\-\\-json\\-fd\\fR \\fIN\\fR\n"
	"Write the JSON, also that of errors, to a file or an open descriptor. For all commands "
	"with \\fB\\-\\-json\\fR, which it implies.\n"
	".TP\n"
	"\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n"
	"Show help and do nothing else.\n"
	".TP\n"
	"\\fB\\-V\\fR, \\fB\\-\\-version\\fR\n"
	"Print the version. Before the command only.\n"
	".PP\n"
	"Long options take their value as \\fB\\-\\-name value\\fR or \\fB\\-\\-name=value\\fR. "
	"\\fB\\-\\-\\fR ends the options.\n";

static const char tail[] =
	".SH OUTPUT\n"
	"Data goes to standard output, notes and errors to standard error. With \\fB\\-\\-json\\fR, "
	"lists are one object per line; times are RFC 3339, sizes are bytes and durations are "
	"milliseconds; text that is not UTF\\-8 is an object with the key b64. An error is then "
	"printed in the same place as well: an object with the key error, which holds code, "
	"message, hint and exit_code.\n"
	".SH EXIT STATUS\n"
	"Commands that run a command pass its exit status on; 124 stands for a timeout, 125 for a "
	"failure of Cay, 126 and 127 for a command that could not be started or was not found, "
	"128 and the signal's number for one that was killed. All other commands:\n"
	".TP\n.B 0\nsuccess\n"
	".TP\n.B 1\nfailure\n"
	".TP\n.B 2\nmistake in the command line\n"
	".TP\n.B 3\nthe sandbox's warden cannot be reached\n"
	".TP\n.B 4\nnot allowed\n"
	".TP\n.B 5\nno such sandbox, file or preset\n"
	".TP\n.B 6\ndenied by policy\n"
	".SH ENVIRONMENT\n"
	".TP\n.B CAY_KEEP_ENDED, CAY_KEEP_DAYS\n"
	"How many ended sandboxes \\fBcay ls \\-\\-ended\\fR, \\fBcay why\\fR and \\fBcay "
	"trace\\fR know, and for how many days (0: any age). Default: 256 and 30.\n"
	".TP\n.B CAY_STATE\n"
	"The state directory. Default: /var/lib/cay for root, otherwise $XDG_STATE_HOME/cay or "
	"~/.local/state/cay. It must be yours and closed to others (mode 0700).\n"
	".TP\n.B CAY_TRACE_MAX\n"
	"The size of a trace, such as 64M; older events are dropped. Default: 256M.\n"
	".TP\n.B NO_COLOR\nNo colours where set and not empty.\n"
	".SH SEE ALSO\n"
	".BR cay\\-warden (8),\n"
	".BR cay\\-init (8)\n";

int help_man(void)
{
	printf(".TH CAY 1 \"\" \"cay %s\" \"Cay\"\n", CAY_VERSION);
	fputs(head, stdout);
	fputs(".SH COMMANDS\n", stdout);
	for (int i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			command(commands[i]);
	fputs(common, stdout);
	fputs(tail, stdout);
	return 0;
}
