/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int http, code;
} table[] = {
#define X(id, name_, http_, code_) [ERR_##id] = { name_, http_, code_ },
	ERR_KINDS(X)
#undef X
};

/* Put ": tail" at offset n. Text that does not fit is cut. */
static void append(struct err *e, int n, const char *tail)
{
	int room = (int)sizeof e->msg - n - (int)sizeof ": ";

	if (n >= 0 && room > 0)
		(void)snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %.*s", room, tail);
}

static void err_reset(struct err *e, enum err_kind kind, int sys)
{
	e->kind = kind;
	e->sys = sys;
	e->code[0] = e->field[0] = e->about[0] = e->hint[0] = '\0';
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	err_reset(e, kind, 0);
	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	return -1;
}

int err_sys(struct err *e, int errnum, const char *fmt, ...)
{
	va_list ap;
	int n;

	err_reset(e, ERR_SYS, errnum);
	va_start(ap, fmt);
	n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	append(e, n, strerror(errnum));
	return -1;
}

int err_ctx(struct err *e, const char *fmt, ...)
{
	char old[sizeof e->msg];
	va_list ap;
	int n;

	memcpy(old, e->msg, sizeof old);
	va_start(ap, fmt);
	n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	append(e, n, old);
	return -1;
}

int err_code(struct err *e, const char *code, const char *about)
{
	(void)snprintf(e->code, sizeof e->code, "%s", code);
	(void)snprintf(e->about, sizeof e->about, "%s", about ? about : "");
	return -1;
}

int err_field(struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e->field, sizeof e->field, fmt, ap);
	va_end(ap);
	return -1;
}

int err_hint(struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(e->hint, sizeof e->hint, fmt, ap);
	va_end(ap);
	return -1;
}

const char *err_name(enum err_kind kind)
{
	return table[kind].name;
}

int err_http(enum err_kind kind)
{
	return table[kind].http;
}

int err_exit(enum err_kind kind)
{
	return table[kind].code;
}

enum err_kind err_kind_of(const char *name)
{
	for (int k = 0; k < ERR_KIND_COUNT; k++)
		if (strcmp(table[k].name, name) == 0)
			return (enum err_kind)k;
	return ERR_FAILED;
}
