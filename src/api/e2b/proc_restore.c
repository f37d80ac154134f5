/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that an earlier front started: the warden lists them when a link is opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/e2b/proc.h"
#include "wire/json_write.h"

enum { LIST_MS = 10000 };

/* Tells our calls from those of the host's user; the tag follows. */
#define OURS "e2b:"

void proc_call_id(const char *tag, char out[LIMIT_NAME + 1])
{
	bool fits = strlen(OURS) + strlen(tag) <= LIMIT_NAME;

	(void)snprintf(out, LIMIT_NAME + 1, OURS "%s", fits ? tag : "");
}

/* The warden keeps the first 2 KiB of the arguments, and neither environment nor directory. */
static char *config_of(struct str fields)
{
	auto_done(buf_done) struct buf b = BUF_INIT(ENVD_BODY);
	struct field f;
	struct json j;
	bool first = true;

	json_init(&j, &b);
	json_obj(&j);
	while (field_next(&fields, &f) > 0) {
		if (f.tag != TAG_ARG)
			continue;
		if (first) {
			json_put_str(&j, "cmd", f.value);
			json_put_arr(&j, "args");
		} else {
			json_str(&j, f.value);
		}
		first = false;
	}
	if (first) {
		json_put_c(&j, "cmd", "");
		json_put_arr(&j, "args");
	}
	json_end(&j);
	json_put_obj(&j, "envs");
	json_end(&j);
	json_put_c(&j, "cwd", "");
	json_end(&j);
	return json_done(&j) == 0 ? buf_take(&b, &(size_t){ 0 }) : NULL;
}

static void restore_one(struct box *b, const struct link_call_row *row, struct str fields)
{
	struct proc *p = proc_new(b);

	if (!p)
		return;
	p->config = config_of(fields);
	p->tty = row->tty;
	p->stdin_open = true;
	(void)str_copy(p->tag, sizeof p->tag, str_of(row->call_id + strlen(OURS)));
	if (!p->config || proc_join(p, row) < 0)
		proc_free(p);
}

static int on_row(struct link_ask *a, const struct frame *f)
{
	struct box *b = container_of(a, struct box, restoring);
	struct link_call_row row;

	if (f->type != MSG_C_CALL)
		return f->type == MSG_C_END ? 0 : -1;
	decode_call_row(f, &row);
	if (row.running && row.detached && row.op == CALL_EXEC && row.pid &&
	    strncmp(row.call_id, OURS, strlen(OURS)) == 0)
		restore_one(b, &row, f->body);
	return 1;
}

/* Without the list, only processes that are started from now on are known. */
static void on_listed(struct link_ask *a, const struct err *why)
{
	(void)a;
	(void)why;
}

void procs_restore(struct box *b)
{
	b->restoring = (struct link_ask){ .answer = on_row, .done = on_listed };
	(void)link_ask(b->link, &b->restoring, MSG_C_CALLS, STR_NONE, LIST_MS);
}
