/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/state/diff_print.h"

#include <string.h>
#include <sys/stat.h>

#include "cli/output.h"

/* A, D, M, T, R; or m if neither content nor type changed. */
static char diff_letter(const struct diff_entry *en)
{
	switch (en->kind) {
	case DIFF_ADDED:
		return 'A';
	case DIFF_DELETED:
		return 'D';
	case DIFF_TYPE:
		return 'T';
	case DIFF_RENAMED:
		return 'R';
	case DIFF_CHANGED:
		break;
	}
	return en->content ? 'M' : 'm';
}

static enum out_color color_of(char letter)
{
	return letter == 'A' ? OUT_GREEN : letter == 'D' ? OUT_RED : OUT_YELLOW;
}

static void put_path(FILE *f, const char *dest, const char *path, mode_t mode)
{
	out_safe_to(f, str_of(strcmp(dest, "/") == 0 ? "" : dest));
	putc('/', f);
	out_safe_to(f, str_of(path));
	if (S_ISDIR(mode) && path[0])
		putc('/', f);
}

static mode_t mode_of(const struct diff_entry *en)
{
	return en->new.mode ? en->new.mode : en->old.mode;
}

static void put_details(FILE *f, const struct diff_entry *en)
{
	if (en->mode)
		fprintf(f, "  mode %04o -> %04o", en->old.mode & 07777, en->new.mode & 07777);
	if (en->owner)
		fprintf(f, "  owner %u:%u -> %u:%u", en->old.uid, en->old.gid, en->new.uid,
			en->new.gid);
	if (en->xattr)
		fputs("  attributes", f);
	if (en->host_changed || en->from_copy)
		fputs("  (changed on the host since)", f);
	if (en->unread)
		fputs("  (could not be read)", f);
}

static void print_counts(const struct diff_change *c)
{
	const struct diff_entry *en = c->entry;
	char text[64], a[OUT_NUMBER], b[OUT_NUMBER];

	if (c->n.binary)
		(void)snprintf(text, sizeof text, "%s -> %s",
			       out_size(S_ISREG(en->old.mode) ? en->old.size : 0, a),
			       out_size(S_ISREG(en->new.mode) ? en->new.size : 0, b));
	else
		(void)snprintf(text, sizeof text, "+%llu -%llu", (unsigned long long)c->n.added,
			       (unsigned long long)c->n.removed);
	printf("%-14s ", text);
}

void diff_print_line(const struct cmd_ctx *ctx, const struct diff_change *c)
{
	const struct diff_entry *en = c->entry;
	char letter = diff_letter(en);

	if (c->counted)
		print_counts(c);
	printf("%s%c%s  ", out_sgr(ctx->color_out, color_of(letter)), letter,
	       out_sgr(ctx->color_out, OUT_PLAIN));
	if (en->old_path) {
		put_path(stdout, c->dest, en->old_path, en->old.mode);
		fputs(" -> ", stdout);
	}
	put_path(stdout, c->dest, en->path, mode_of(en));
	put_details(stdout, en);
	putchar('\n');
}

void diff_print_totals(FILE *f, const struct diff_totals *t)
{
	char size[OUT_NUMBER];

	fprintf(f, "%llu changed, %llu lines added, %llu removed", (unsigned long long)t->files,
		(unsigned long long)t->added, (unsigned long long)t->removed);
	if (t->binary)
		fprintf(f, ", %llu binary", (unsigned long long)t->binary);
	if (t->bytes)
		fprintf(f, ", %s", out_size(t->bytes, size));
	putc('\n', f);
}
