/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/show.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

void show_result_done(struct show_result *v)
{
	for (int i = 0; i < v->calls.n; i++) {
		free(v->calls.rows[i].argv);
		free(v->calls.rows[i].labels);
	}
	free(v->calls.rows);
	json_decref(v->spec);
	policy_record_done(&v->policy);
	sandbox_row_done(&v->row);
}

static int add_call(void *ctx, const struct call_row *row)
{
	struct call_list *l = ctx;
	struct call_row *rows = reallocarray(l->rows, (size_t)l->n + 1, sizeof *rows);

	if (!rows) {
		l->failed = true;
		return 1;
	}
	l->rows = rows;
	rows[l->n] = *row;
	rows[l->n].argv = row->argv ? strdup(row->argv) : NULL;
	rows[l->n].labels = row->labels ? strdup(row->labels) : NULL;
	l->n++;
	return 0;
}

static void load_log(struct show_result *v, const struct state *s)
{
	struct err ignored;
	auto_close int dir = FD_NONE, fd = FD_NONE;
	char *nl;
	ssize_t n;
	off_t end;

	if (state_sandbox_open(s, v->row.id, &dir, &ignored) < 0)
		return;
	fd = openat(dir, "warden.log", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (end < 0)
		return;
	n = pread(fd, v->log, sizeof v->log - 1,
		  end > (off_t)sizeof v->log ? end - (off_t)sizeof v->log + 1 : 0);
	v->log[n > 0 ? n : 0] = '\0';
	while (n > 0 && v->log[n - 1] == '\n')
		v->log[--n] = '\0';
	nl = strrchr(v->log, '\n');
	if (nl)
		memmove(v->log, nl + 1, strlen(nl + 1) + 1);
}

static void explain_loss(struct show_result *v, const struct state *s)
{
	struct timespec up = { 0 };
	uint64_t up_ns;

	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	up_ns = (uint64_t)up.tv_sec * NS_PER_S + (uint64_t)up.tv_nsec;
	if (v->row.created_ns + up_ns < clock_real_ns())
		v->reason = "the machine was restarted";
	else
		v->reason = "its warden died";
	load_log(v, s);
}

static int read_calls(struct show_result *v, struct cay *c, struct err *e)
{
	return catalog_index_calls(c->catalog, &c->state, v->row.id, e) < 0
		       ? -1
		       : catalog_each_call(c->catalog, v->row.id, add_call, &v->calls, e);
}

/* Calls are read from the trace into the catalog. One without a row has one for that long. */
static int load_calls(struct show_result *v, struct cay *c, struct err *e)
{
	struct sandbox_row row = v->row;
	struct err undone;
	int r;

	if (!v->row.unlisted)
		return read_calls(v, c, e);
	if (catalog_batch_begin(c->catalog, e) < 0)
		return -1;
	r = catalog_add_sandbox(c->catalog, &row, false, e);
	if (r == 0)
		r = read_calls(v, c, e);
	(void)catalog_batch_end(c->catalog, -1, &undone);
	return r;
}

/* Reading the history reads the whole trace: only of those that have a network. */
static int load_policy(struct show_result *v, struct cay *c, struct err *e)
{
	if (policy_record_now(c, v->row.id, &v->policy, e) < 0)
		return -1;
	if (!v->policy.now)
		return 0;
	policy_record_done(&v->policy);
	return op_policy_record(c, v->row.id, &v->policy, e);
}

static int load(struct show_result *v, struct cay *c, const char *ref, struct err *e)
{
	auto_done(link_free) struct link *l = NULL;
	struct err ignored = { 0 };

	if (cay_catalog(c, e) < 0 || catalog_find(c->catalog, ref, &v->row, e) < 0 ||
	    load_calls(v, c, e) < 0)
		return -1;
	if (v->calls.failed)
		return err_sys(e, ENOMEM, "calls of sandbox '%s'", v->row.id);
	if (load_policy(v, c, e) < 0)
		return -1;
	v->spec = options_load(&v->row);
	if (strcmp(v->row.state, "lost") == 0 || !state_is_alive(&c->state, v->row.id)) {
		/* The row may not have been told yet. */
		(void)snprintf(v->row.state, sizeof v->row.state, "lost");
		explain_loss(v, &c->state);
	} else {
		v->known = link_connect(&c->wait, &c->state, v->row.id, &l, &ignored) == 0 &&
			   link_info(l, &c->wait, &v->info, &ignored) == 0;
		if (v->known)
			(void)snprintf(v->row.state, sizeof v->row.state, "%s", v->info.state);
	}
	return 0;
}

int op_show(struct cay *c, const char *ref, struct show_result *ret, struct err *e)
{
	auto_done(show_result_done) struct show_result v = { 0 };

	if (load(&v, c, ref, e) < 0)
		return -1;
	*ret = v;
	v = (struct show_result){ 0 };
	return 0;
}
