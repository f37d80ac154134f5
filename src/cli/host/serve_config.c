/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host/serve_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"

enum { CONFIG_MOST = 64 * 1024 };

static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t\r");
	for (n = strlen(s); n > 0 && strchr(" \t\r", s[n - 1]); n--)
		;
	s[n] = '\0';
	return s;
}

static bool has_value(const struct opt *o)
{
	if (o->kind == OPT_LIST)
		return ((const struct opt_list *)o->value)->n > 0;
	return *(const char *const *)o->value != NULL;
}

static int add_to_list(struct opt_list *l, const char *value)
{
	const char **items = reallocarray(l->items, (size_t)l->n + 1, sizeof *items);

	if (!items)
		return -ENOMEM;
	l->items = items;
	l->items[l->n++] = value;
	return 0;
}

static int find_row(const struct serve_config *c, const char *name, struct err *e)
{
	for (int i = 0; i < SERVE_OPTIONS && c->opts[i].name; i++)
		/* What is no text is about one run of the command: --restart. */
		if (strcmp(c->opts[i].name, name) == 0 && strcmp(name, "config") != 0 &&
		    (c->opts[i].kind == OPT_TEXT || c->opts[i].kind == OPT_LIST))
			return i;
	return err_set(e, ERR_INVALID, "'%s' is not an option of the server", name);
}

/* given: bit i is set if the command line has option i. */
static int take_line(struct serve_config *c, char *line, int number, uint32_t given, struct err *e)
{
	char *equals = strchr(line, '='), *name, *value;
	const struct opt *o;
	int i;

	if (!equals)
		return err_set(e, ERR_INVALID, "'%s' is not 'name = value'", line);
	*equals = '\0';
	name = trim(line);
	value = trim(equals + 1);
	i = find_row(c, name, e);
	if (i < 0)
		return -1;
	o = &c->opts[i];
	if (!*value)
		return err_set(e, ERR_INVALID, "'%s' has no value", name);
	if (c->lines[i] && o->kind != OPT_LIST)
		return err_set(e, ERR_INVALID, "'%s' stands in line %d already", name, c->lines[i]);
	c->lines[i] = number;
	if (given >> i & 1)
		return 0;
	if (o->kind == OPT_LIST)
		return add_to_list(o->value, value) < 0 ? err_sys(e, ENOMEM, "'%s'", name) : 0;
	*(const char **)o->value = value;
	return 0;
}

int serve_config_parse(struct serve_config *c, char *text, struct err *e)
{
	uint32_t given = 0;
	int number = 0;
	char *line;

	for (int i = 0; i < SERVE_OPTIONS && c->opts[i].name; i++)
		if (c->opts[i].kind == OPT_TEXT || c->opts[i].kind == OPT_LIST)
			given |= has_value(&c->opts[i]) ? 1u << i : 0;
	while ((line = strsep(&text, "\n"))) {
		number++;
		line = trim(line);
		if (*line && *line != '#' && take_line(c, line, number, given, e) < 0)
			return err_ctx(e, "%s:%d", c->path, number);
	}
	/* Errors about an option of the command line are not about the file. */
	for (int i = 0; i < SERVE_OPTIONS; i++)
		if (given >> i & 1)
			c->lines[i] = 0;
	return 0;
}

int serve_config_load(struct serve_config *c, const struct opt *opts, struct err *e)
{
	auto_done(buf_done) struct buf b = BUF_INIT(CONFIG_MOST);
	auto_close int fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int r = fd < 0 ? -errno : io_read_all(fd, &b);
	struct stat st;

	if (r == 0 && fstat(fd, &st) == 0)
		c->mtime = st.st_mtim;
	if (r == -E2BIG)
		return err_set(e, ERR_INVALID, "'%s' is larger than %d bytes", c->path,
			       CONFIG_MOST);
	if (r == 0)
		r = buf_add(&b, "", 1);
	if (r < 0)
		return err_sys(e, -r, "read '%s'", c->path);
	c->opts = opts;
	c->text = buf_take(&b, &(size_t){ 0 });
	if (!c->text)
		return err_sys(e, ENOMEM, "read '%s'", c->path);
	return serve_config_parse(c, c->text, e);
}

bool serve_config_changed(const struct serve_config *c)
{
	struct stat st;

	return c->path && stat(c->path, &st) == 0 &&
	       (st.st_mtim.tv_sec != c->mtime.tv_sec || st.st_mtim.tv_nsec != c->mtime.tv_nsec);
}

int serve_config_blame(const struct serve_config *c, const void *value, struct err *e)
{
	for (int i = 0; c->opts && i < SERVE_OPTIONS && c->opts[i].name; i++)
		if (c->opts[i].value == value && c->lines[i])
			return err_ctx(e, "%s:%d", c->path, c->lines[i]);
	return -1;
}
