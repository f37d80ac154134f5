/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "ops/create/options.h"

static void put_argument(FILE *f, const char *arg)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "@%+=:,./_-";

	if (arg[0] && arg[strspn(arg, plain)] == '\0') {
		fputs(arg, f);
		return;
	}
	putc('\'', f);
	for (; *arg; arg++)
		if (*arg == '\'')
			fputs("'\\''", f);
		else
			putc(*arg, f);
	putc('\'', f);
}

char *argv_text(const char *json)
{
	auto_done(options_free) json_t *args = json ? json_loads(json, 0, NULL) : NULL;
	char *out = NULL;
	size_t n = 0;
	FILE *f;

	if (!json_is_array(args))
		return NULL;
	f = open_memstream(&out, &n);
	if (!f)
		return NULL;
	for (size_t i = 0; i < json_array_size(args); i++) {
		const json_t *v = json_array_get(args, i);
		const char *arg = options_text(v, NULL);

		fputs(i ? " " : "", f);
		fputs(json_is_object(v) ? "b64:" : "", f);
		put_argument(f, arg ? arg : "?");
	}
	if (fclose(f) == 0)
		return out;
	free(out);
	return NULL;
}
