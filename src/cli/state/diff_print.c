/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/state/diff_print.h"

#include <string.h>
#include <sys/stat.h>

#include "cli/output.h"

char diff_letter(const struct diff_entry *en)
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

void diff_print_line(const struct cmd_ctx *ctx, const char *dest, const struct diff_entry *en)
{
	char letter = diff_letter(en);

	printf("%s%c%s  ", out_sgr(ctx->color_out, color_of(letter)), letter,
	       out_sgr(ctx->color_out, OUT_PLAIN));
	if (en->old_path) {
		put_path(stdout, dest, en->old_path, en->old.mode);
		fputs(" -> ", stdout);
	}
	put_path(stdout, dest, en->path, mode_of(en));
	put_details(stdout, en);
	putchar('\n');
}

void diff_add_totals(struct diff_totals *t, const struct patch_counts *n)
{
	t->files++;
	t->added += n->added;
	t->removed += n->removed;
	t->binary += n->binary;
	t->omitted += n->omitted;
	t->host_changed += n->host_changed;
}

static uint64_t grown(const struct diff_entry *en)
{
	uint64_t a = S_ISREG(en->old.mode) ? en->old.size : 0;
	uint64_t b = S_ISREG(en->new.mode) ? en->new.size : 0;

	return a > b ? a - b : b - a;
}

int diff_print_stat(const struct cmd_ctx *ctx, const char *dest, const struct diff *d,
		    const struct diff_entry *en, struct diff_totals *t, struct err *e)
{
	struct patch_counts n;
	char text[64], a[OUT_NUMBER], b[OUT_NUMBER];

	if (patch_count(d, en, &n, e) < 0)
		return -1;
	diff_add_totals(t, &n);
	t->bytes += grown(en);
	if (n.binary)
		(void)snprintf(text, sizeof text, "%s -> %s",
			       out_size(S_ISREG(en->old.mode) ? en->old.size : 0, a),
			       out_size(S_ISREG(en->new.mode) ? en->new.size : 0, b));
	else
		(void)snprintf(text, sizeof text, "+%llu -%llu", (unsigned long long)n.added,
			       (unsigned long long)n.removed);
	printf("%-14s ", text);
	diff_print_line(ctx, dest, en);
	return 0;
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

static const char *type_of(mode_t mode)
{
	return S_ISREG(mode)	? "file"
	       : S_ISDIR(mode)	? "directory"
	       : S_ISLNK(mode)	? "symlink"
	       : S_ISFIFO(mode) ? "fifo"
	       : S_ISSOCK(mode) ? "socket"
	       : mode		? "device"
				: NULL;
}

static void json_path(struct out_json *j, const char *key, const char *dest, const char *path)
{
	char *full = NULL;

	if (asprintf(&full, "%s/%s", strcmp(dest, "/") == 0 ? "" : dest, path) < 0)
		return;
	if (!path[0] && full[1])
		full[strlen(full) - 1] = '\0';
	out_json_text(j, key, str_of(full));
	free(full);
}

static void json_side(struct out_json *j, const char *key, const struct stack_node *n)
{
	char mode[8];

	if (!n->mode) {
		out_json_raw(j, key, NULL);
		return;
	}
	(void)snprintf(mode, sizeof mode, "%04o", n->mode & 07777);
	out_json_open(j, key, '{');
	out_json_c(j, "type", type_of(n->mode));
	out_json_c(j, "mode", mode);
	out_json_num(j, "uid", n->uid);
	out_json_num(j, "gid", n->gid);
	if (!S_ISDIR(n->mode))
		out_json_num(j, "size", (int64_t)n->size);
	out_json_close(j, '}');
}

int diff_print_json(const char *dest, const struct diff *d, const struct diff_entry *en, bool stat,
		    struct err *e)
{
	static const char *const kinds[] = { "added", "deleted", "changed", "type", "renamed" };
	struct out_json j = { .f = stdout };
	struct patch_counts n = { 0 };

	if (stat && patch_count(d, en, &n, e) < 0)
		return -1;
	out_json_open(&j, NULL, '{');
	json_path(&j, "path", dest, en->path);
	out_json_c(&j, "kind", kinds[en->kind]);
	if (en->old_path)
		json_path(&j, "from", dest, en->old_path);
	out_json_bool(&j, "content", en->content);
	out_json_bool(&j, "mode", en->mode);
	out_json_bool(&j, "metadata", en->owner || en->xattr);
	out_json_bool(&j, "host_changed", en->host_changed || en->from_copy);
	json_side(&j, "old", &en->old);
	json_side(&j, "new", &en->new);
	if (stat) {
		out_json_bool(&j, "binary", n.binary);
		out_json_num(&j, "added_lines", (int64_t)n.added);
		out_json_num(&j, "removed_lines", (int64_t)n.removed);
	}
	out_json_close(&j, '}');
	out_json_line(&j);
	return 0;
}
