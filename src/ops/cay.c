/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ops/background.h"

int cay_open(struct cay *c, const struct cay_config *config, struct err *e)
{
	int r;

	*c = (struct cay){ .config = *config, .state.fd = FD_NONE, .loop.epfd = FD_NONE };
	if (state_open(&c->state, e) < 0)
		return -1;
	c->open = true;
	r = loop_init(&c->loop);
	if (r < 0) {
		cay_close(c);
		return err_sys(e, -r, "make an event loop");
	}
	c->wait = (struct waiter){ .loop = &c->loop, .cancel_fd = FD_NONE };
	return 0;
}

int cay_catalog(struct cay *c, struct err *e)
{
	return c->catalog ? 0 : catalog_open(&c->state, &c->catalog, e);
}

/*
 * Companion programs are beside this program in a build directory, and in libexec once installed.
 */
int programs_find(struct programs *p, struct err *e)
{
	static const char *const places[] = { "cay-warden", "../libexec/cay/cay-warden" };
	ssize_t n = readlink("/proc/self/exe", p->cay, sizeof p->cay - 1);
	const char *slash;

	if (n < 0)
		return err_sys(e, errno, "find our own program");
	p->cay[n] = '\0';
	slash = strrchr(p->cay, '/');
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		(void)snprintf(p->warden, sizeof p->warden, "%.*s/%s", (int)(slash - p->cay),
			       p->cay, places[i]);
		if (access(p->warden, X_OK) == 0)
			return 0;
	}
	p->warden[0] = '\0';
	(void)err_set(e, ERR_FAILED, "cay-warden is missing beside '%s'", p->cay);
	return err_code(e, "install.incomplete", NULL);
}

int cay_programs(struct cay *c, struct err *e)
{
	return c->programs.warden[0] ? 0 : programs_find(&c->programs, e);
}

int cay_wait(struct cay *c, const bool *done, const char *what, struct err *e)
{
	int r = wait_until(&c->wait, done);

	if (r == -ECANCELED) {
		(void)err_set(e, ERR_FAILED, "%s was cancelled", what);
		return err_code(e, "cancelled", NULL);
	}
	if (r == -ETIMEDOUT)
		return err_set(e, ERR_TIMEOUT, "%s did not end in time", what);
	return r < 0 ? err_sys(e, -r, "wait for %s", what) : 0;
}

void cay_after(struct cay *c)
{
	if (c->after & AFTER_FLATTEN)
		background_flatten(c);
	if (c->after & AFTER_POOL)
		background_keeper(c);
	c->after = 0;
}

void cay_close(struct cay *c)
{
	if (c->catalog)
		catalog_close(c->catalog);
	if (c->open)
		state_done(&c->state);
	if (c->wait.loop)
		loop_done(&c->loop);
	*c = (struct cay){ 0 };
}

void warnings_add(struct warnings *w, const char *code, struct str text)
{
	if (w->n == (int)ARRAY_LEN(w->v))
		return;
	(void)str_copy(w->v[w->n].code, sizeof w->v[0].code, str_of(code));
	(void)snprintf(w->v[w->n].text, sizeof w->v[0].text, "%.*s", (int)text.n, text.p);
	w->n++;
}
