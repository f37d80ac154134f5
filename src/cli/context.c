/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/context.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/output.h"

static const char *first_env(const char *const *names)
{
	for (; *names; names++) {
		const char *value = getenv(*names);

		if (value && *value)
			return value;
	}
	return NULL;
}

int cli_open_state(struct cay *c, struct err *e)
{
	static const char *const proxies[] = { "CAY_PROXY", "HTTPS_PROXY", "https_proxy",
					       "ALL_PROXY", "all_proxy",   NULL };
	static const char *const excepts[] = { "NO_PROXY", "no_proxy", NULL };
	const struct cay_config config = {
		.net = { getenv("CAY_NAMESERVERS"), first_env(proxies), first_env(excepts) },
		.keep_ended = getenv("CAY_KEEP_ENDED"),
		.keep_days = getenv("CAY_KEEP_DAYS"),
		.trace_max = getenv("CAY_TRACE_MAX"),
	};

	return cay_open(c, &config, e);
}

int cli_open(struct cay *c, struct err *e)
{
	return cli_open_state(c, e) < 0 ? -1 : cay_catalog(c, e);
}

void cli_let_go(struct cay *c)
{
	cli_print_warnings(&c->warnings);
	if (c->catalog) {
		/* Other processes may wait for the catalog. */
		catalog_close(c->catalog);
		c->catalog = NULL;
	}
	if (c->open)
		cay_after(c);
}

void cli_done(struct cay *c)
{
	cli_let_go(c);
	cay_close(c);
}

void cli_print_warnings(const struct warnings *w)
{
	for (int i = 0; i < w->n; i++) {
		fputs("cay: warning: ", stderr);
		out_safe_to(stderr, str_of(w->v[i].text));
		fputc('\n', stderr);
	}
}
