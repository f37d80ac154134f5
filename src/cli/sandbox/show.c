/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/signal_name.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/output.h"
#include "cli/policy/policy_history.h"
#include "ops/json.h"

enum { LABEL_WIDTH = 11 };

static void call_outcome(const struct call_row *c, char *out, size_t size)
{
	if (c->duration_us < 0)
		(void)snprintf(out, size, "running");
	else if (strcmp(c->reason, "exit") == 0 && WIFEXITED(c->status))
		(void)snprintf(out, size, "exit %d", WEXITSTATUS(c->status));
	else if (strcmp(c->reason, "signal") == 0 && WIFSIGNALED(c->status))
		(void)snprintf(out, size, "SIG%s", signal_name(WTERMSIG(c->status)) ?: "?");
	else
		(void)snprintf(out, size, "%s", c->reason);
}

static int print_calls(const struct show_result *v, const struct cmd_ctx *ctx)
{
	static const struct out_col cols[] = {
		{ .title = "CALL", .right = true },
		{ .title = "CALLER'S ID" },
		{ .title = "RESULT" },
		{ .title = "TIME", .right = true },
		{ .title = "COMMAND", .cut = true },
	};
	auto_done(out_table_done) struct out_table t = { .cols = cols, .ncols = ARRAY_LEN(cols) };
	int r = 0;

	for (int i = 0; i < v->calls.n; i++) {
		const struct call_row *c = &v->calls.rows[i];
		auto_free char *argv = argv_text(c->argv);
		uint64_t now = clock_real_ns();
		uint64_t us = c->duration_us >= 0 ? (uint64_t)c->duration_us
			      : now > c->start_ns ? (now - c->start_ns) / NS_PER_US
						  : 0;
		char text[OUT_NUMBER], outcome[64];

		call_outcome(c, outcome, sizeof outcome);
		r |= out_cellf(&t, OUT_PLAIN, "%u", c->call);
		r |= out_cell(&t, OUT_PLAIN, c->call_id);
		r |= out_cell(&t, strcmp(outcome, "exit 0") == 0 ? OUT_PLAIN : OUT_YELLOW, outcome);
		r |= out_cell(&t, OUT_PLAIN, out_duration(us, text));
		r |= out_cell(&t, OUT_PLAIN, argv);
	}
	if (r == 0 && t.n) {
		putchar('\n');
		out_table_print(&t, stdout, out_width(), true, ctx->color_out);
	}
	return r;
}

static void line(const char *label, const char *text)
{
	if (!text || !text[0])
		return;
	printf("%-*s", LABEL_WIDTH, label);
	out_safe(text);
	putchar('\n');
}

static void print_mounts(const json_t *spec, const char *key, const char *label)
{
	const json_t *list = json_object_get(spec, key);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *path = options_text(json_array_get(list, i), "path");
		const char *dest = options_text(json_array_get(list, i), "dest");

		printf("%-*s", LABEL_WIDTH, label);
		out_safe(path ? path : "?");
		if (dest && (!path || strcmp(path, dest) != 0)) {
			fputs(" as ", stdout);
			out_safe(dest);
		}
		putchar('\n');
	}
}

static void print_limits(const json_t *limits)
{
	static const struct {
		const char *key, *label;
		enum { SIZE, COUNT, MILLI, TIME } kind;
	} rows[] = {
		{ "memory", "memory", SIZE }, { "cpu_milli", "cpus", MILLI },
		{ "pids", "pids", COUNT },    { "files", "files", COUNT },
		{ "disk", "disk", SIZE },     { "call_timeout_ms", "timeout", TIME },
		{ "ttl_ms", "life", TIME },   { "idle_ms", "idleness", TIME },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_int_t n = json_integer_value(json_object_get(limits, rows[i].key));
		char text[OUT_NUMBER];

		if (n <= 0)
			continue;
		if (rows[i].kind == SIZE)
			(void)number_size((uint64_t)n, text);
		else if (rows[i].kind == TIME)
			(void)out_duration((uint64_t)n * 1000, text);
		else if (rows[i].kind == MILLI)
			(void)snprintf(text, sizeof text, "%g", (double)n / 1000);
		else
			(void)snprintf(text, sizeof text, "%lld", (long long)n);
		printf("%-*sat most %s%s%s\n", LABEL_WIDTH, "limit", text,
		       rows[i].kind == SIZE ? " of " : " ", rows[i].label);
	}
}

static void print_options(json_t *spec)
{
	static const char *const texts[] = { "cwd", "user", "hostname", "profile", "trace" };
	json_t *value, *labels = json_object_get(spec, "labels");
	const char *key;
	size_t i;

	print_mounts(spec, "dirs", "dir");
	print_mounts(spec, "ros", "ro");
	json_array_foreach(json_object_get(spec, "env_keys"), i, value)
		line("env", options_text(value, NULL));
	for (i = 0; i < ARRAY_LEN(texts); i++)
		line(texts[i], options_text(spec, texts[i]));
	if (json_is_true(json_object_get(spec, "nested")))
		line("nested", "commands may build sandboxes of their own; see SECURITY.md");
	print_limits(json_object_get(spec, "limits"));
	json_object_foreach(labels, key, value)
	{
		printf("%-*s", LABEL_WIDTH, "label");
		out_safe(key);
		putchar('=');
		out_safe(options_text(value, NULL) ?: "");
		putchar('\n');
	}
}

static void print_times(const struct sandbox_status *st)
{
	char text[OUT_NUMBER];

	if (st->ttl_left_ms != UINT64_MAX)
		printf("%-*s%s of its time to live\n", LABEL_WIDTH, "left",
		       out_duration(st->ttl_left_ms * 1000, text));
	if (st->idle_left_ms != UINT64_MAX)
		printf("%-*s%s without a command\n", LABEL_WIDTH, "left",
		       out_duration(st->idle_left_ms * 1000, text));
}

/* Prints the current policy briefly; cay policy show prints all of it. */
static void print_policy(const struct policy_record *r)
{
	size_t n = json_array_size(r->history);
	auto_done(buf_done) struct buf who = BUF_INIT(4096);

	if (!r->now)
		return;
	printf("%-*s", LABEL_WIDTH, "policy");
	out_safe_to(stdout, r->now->name);
	printf(" (%zu rules, default %s)\n", r->now->nrules,
	       r->now->def == POLICY_ACT_ALLOW ? "allow" : "deny");
	if (n && policy_history_who(json_array_get(r->history, n - 1), &who) == 0) {
		printf("%-*s%s ", LABEL_WIDTH, "", n > 1 || r->cut ? "changed" : "since");
		out_safe(who.data);
		putchar('\n');
	}
}

static int print_text(const struct show_result *v, const struct cmd_ctx *ctx)
{
	char created[CLOCK_TEXT_SIZE], age[OUT_NUMBER], rss[OUT_NUMBER];

	clock_text(v->row.created_ns, created);
	line("id", v->row.id);
	line("name", v->row.name);
	printf("%-*s%s%s%s\n", LABEL_WIDTH, "state", v->row.state, v->lost ? ": " : "",
	       v->end.reason);
	line("log", v->end.log);
	line("template", v->row.template_);
	printf("%-*s%s (%s ago)\n", LABEL_WIDTH, "created", created,
	       out_age(v->row.created_ns, clock_real_ns(), age));
	line("ends", v->row.ephemeral ? "with the command that made it" : NULL);
	if (v->known) {
		printf("%-*s%s\n", LABEL_WIDTH, "memory", out_size(v->info.rss_kb * 1024, rss));
		printf("%-*s%d\n", LABEL_WIDTH, "init pid", v->info.init_pid);
		printf("%-*s%u running, %llu in all\n", LABEL_WIDTH, "calls", v->info.calls_running,
		       (unsigned long long)v->info.calls_total);
	}
	if (v->known)
		print_times(&v->info);
	if (v->spec)
		print_options(v->spec);
	print_policy(&v->policy);
	line("lacks", show_lacks(v));
	return print_calls(v, ctx);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay s = { 0 };
	auto_done(show_result_done) struct show_result v = { 0 };

	if (cmd_need_args(ctx, 1, 1, "SANDBOX", e) < 0 || cli_open_state(&s, e) < 0 ||
	    op_show(&s, ctx->args[0], &v, e) < 0)
		return -1;
	if (ctx->quiet)
		puts(v.row.id);
	else if (ctx->json)
		PRINT_JSON(json_shown, &v);
	else if (print_text(&v, ctx) < 0)
		return err_sys(e, ENOMEM, "sandbox '%s'", v.row.id);
	return 0;
}

const struct cmd cmd_show = {
	.name = "show",
	.synopsis = "SANDBOX",
	.summary = "Show all that is known about a sandbox",
	.details =
		"Its state, the options that it was made with, the network policy that holds now, "
		"and its calls with their results.",
	.examples = "cay show box\ncay show box --json | jq '.calls[-1].exit_code'",
	.run = run,
	.data = true,
	.complete = "sandbox",
};
