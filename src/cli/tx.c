/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tx.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "cli/commands.h"
#include "cli/output.h"

static bool force;
static struct opt opts[] = {
	{ "force", 'f', OPT_FLAG, NULL, "Of abort: end commands that run in it first", &force },
	{ 0 },
};

int tx_begin(struct moment *m, struct snapshot_row *ret, struct err *e)
{
	*ret = (struct snapshot_row){ .kind = SNAPSHOT_TX };
	return moment_snapshot(m, ret, NULL, e);
}

int tx_abort(struct moment *m, const struct snapshot_row *to, bool end_calls, struct err *e)
{
	if (moment_rollback(m, to, end_calls, NULL, e) < 0 ||
	    catalog_del_snapshot(m->s->catalog, to->id, e) < 0)
		return -1;
	catalog_free_layers_soon(m->s->catalog, &m->s->state);
	return 0;
}

static int abort_alone(struct cli_store *s, const struct snapshot_row *tx, struct err *e)
{
	auto_done(moment_done) struct moment m = MOMENT_INIT;

	return moment_open(&m, s, tx->sandbox, e) < 0 ? -1 : tx_abort(&m, tx, true, e);
}

/* The beginning of one around a command. */
struct start {
	struct moment m;
	struct moment_step step;
	struct snapshot_row tx;
	struct buf request;
};

static void start_done(struct start *st)
{
	moment_done(&st->m);
	moment_step_done(&st->step);
	snapshot_row_done(&st->tx);
	buf_done(&st->request);
}
DEFINE_AUTO(struct start, start_done)

static int start_open(struct start *st, struct cli_store *s, const char *ref, struct err *e)
{
	if (moment_open(&st->m, s, ref, e) < 0)
		return -1;
	st->m.alone = true;
	st->tx.kind = SNAPSHOT_TX;
	/* By which it is known as one that has to be undone, whoever finds it: store/snapshots.c.
	 */
	st->tx.note = strdup("begun with its command");
	if (!st->tx.note)
		return err_sys(e, ENOMEM, "begin a transaction");
	if (moment_plan_snapshot(&st->m, &st->tx, &st->step, e) < 0 ||
	    moment_step_begin(&st->m, &st->step, e) < 0)
		return -1;
	if (client_put_switch(&st->request, &st->step.ask) == 0)
		return 0;
	(void)err_sys(e, ENOMEM, "ask");
	moment_step_fail(&st->m, &st->step, e);
	return -1;
}

static void start_meanwhile(void *ctx)
{
	struct start *st = ctx;

	st->step.ask.meanwhile(st->step.ask.ctx);
}

/* Nobody else has to wait while the command runs. */
static int start_begun(void *ctx, const struct frame *answer, struct err *e)
{
	struct start *st = ctx;
	struct client_switched res;
	int r;

	client_take_switched(answer, &res);
	r = moment_step_end(&st->m, &st->step, &res, e);
	moment_done(&st->m);
	return r;
}

static int not_begun(struct start *st, bool refused, struct err *e)
{
	moment_step_fail(&st->m, &st->step, e);
	if (!refused || e->kind != ERR_CONFLICT)
		return -1;
	(void)err_ctx(e, "an abort would undo the changes of others too");
	return err_hint(e, "see cay ps %s; or begin and end it yourself: cay tx", st->m.row.id);
}

int tx_around(struct cli_store *s, const char *ref,
	      int (*run)(struct cmd_ctx *ctx, struct cli_store *s, const char *id,
			 struct session_first *first, struct err *e),
	      struct cmd_ctx *ctx, struct err *e)
{
	auto_done(start_done) struct start st = { .m = MOMENT_INIT,
						  .request = BUF_INIT(LIMIT_FRAME_BODY) };
	struct session_first first = { .request = &st.request,
				       .meanwhile = start_meanwhile,
				       .done = start_begun,
				       .ctx = &st };
	struct err failed = { 0 };
	int code, r;

	if ((!s->catalog && catalog_open(&s->state, &s->catalog, e) < 0) ||
	    start_open(&st, s, ref, e) < 0)
		return -1;
	code = run(ctx, s, st.m.row.id, &first, e);
	if (!first.answered)
		return not_begun(&st, first.refused, e);
	/* It is no operation on the sandbox: nothing has to stand still for a commit. */
	r = code == 0 ? catalog_del_snapshot(s->catalog, st.tx.id, &failed)
		      : abort_alone(s, &st.tx, &failed);
	if (r < 0) {
		(void)err_ctx(&failed, "%s the transaction", code == 0 ? "commit" : "abort");
		*e = failed;
		return -1;
	}
	return code;
}

static int innermost(struct moment *m, struct snapshot_row *ret, struct err *e)
{
	int r = catalog_last_snapshot(m->s->catalog, m->row.id, SNAPSHOT_TX, ret, e);

	if (r != 0)
		return r < 0 ? -1 : 0;
	return err_set(e, ERR_CONFLICT, "no transaction is open in sandbox '%s'", m->row.id);
}

static int act(const char *verb, struct moment *m, struct snapshot_row *row, struct err *e)
{
	if (strcmp(verb, "begin") == 0)
		return tx_begin(m, row, e);
	if (innermost(m, row, e) < 0)
		return -1;
	return strcmp(verb, "commit") == 0 ? catalog_del_snapshot(m->s->catalog, row->id, e)
					   : tx_abort(m, row, force, e);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(moment_done) struct moment m = MOMENT_INIT;
	auto_done(snapshot_row_done) struct snapshot_row row = { 0 };
	struct out_json j = { .f = stdout };
	const char *verb;

	if (cmd_need_args(ctx, 2, 2, "begin, commit or abort, and a sandbox", e) < 0)
		return -1;
	verb = ctx->args[0];
	if (strcmp(verb, "begin") != 0 && strcmp(verb, "commit") != 0 && strcmp(verb, "abort") != 0)
		return cmd_usage(ctx, e, "'%s': begin, commit or abort", verb);
	if (cli_store_open(&s, e) < 0 || moment_open(&m, &s, ctx->args[1], e) < 0 ||
	    act(verb, &m, &row, e) < 0)
		return -1;
	if (ctx->json) {
		out_json_open(&j, NULL, '{');
		out_json_c(&j, "id", m.row.id);
		out_json_c(&j, "transaction", row.id);
		out_json_c(&j, "done", verb);
		out_json_close(&j, '}');
		out_json_line(&j);
	}
	return 0;
}

const struct cmd cmd_tx = {
	.name = "tx",
	.synopsis = "begin|commit|abort [--force] SANDBOX",
	.summary = "Keep or drop all that is done to a sandbox's files from now on",
	.details = "After abort the files are what they were at begin, in every detail. "
		   "Transactions nest: commit and abort end the innermost. For one command, "
		   "cay exec --tx begins, and commits if it exits with 0, else aborts. Where that "
		   "cay is killed, its command ends with it, and the transaction stays open "
		   "until somebody commits or aborts it.",
	.examples = "cay tx begin work; cay exec work -- ./migrate.sh; cay tx abort work\n"
		    "cay exec --tx work -- make install",
	.run = run,
	.opts = opts,
	.data = true,
	.complete = "begin|commit|abort",
};
