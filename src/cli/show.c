/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/signal_name.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/limit_options.h"
#include "cli/output.h"
#include "cli/sandboxes.h"

enum { LABEL_WIDTH = 11, LOG_TAIL = 2048 };

struct call_list {
	struct call_row *rows;
	int n;
	bool failed;
};

struct view {
	struct sandbox_row row;
	json_t *spec;
	struct call_list calls;
	bool known; /* the warden answered */
	struct client_state info;
	const char *reason; /* why it is lost, or NULL */
	char log[LOG_TAIL]; /* the last line of a lost warden's log */
};

static void view_done(struct view *v)
{
	for (int i = 0; i < v->calls.n; i++) {
		free(v->calls.rows[i].argv);
		free(v->calls.rows[i].labels);
	}
	free(v->calls.rows);
	json_decref(v->spec);
	sandbox_row_done(&v->row);
}
DEFINE_AUTO(struct view, view_done)

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

static void load_log(struct view *v, const struct state *s)
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

static void explain_loss(struct view *v, const struct state *s)
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

static int load(struct view *v, struct cli_store *s, const char *ref, struct err *e)
{
	struct err ignored;

	if (catalog_find(s->catalog, ref, &v->row, e) < 0 ||
	    catalog_index_calls(s->catalog, &s->state, v->row.id, e) < 0 ||
	    catalog_each_call(s->catalog, v->row.id, add_call, &v->calls, e) < 0)
		return -1;
	if (v->calls.failed)
		return err_sys(e, ENOMEM, "calls of sandbox '%s'", v->row.id);
	v->spec = spec_load(&v->row);
	if (strcmp(v->row.state, "lost") == 0 || !state_is_alive(&s->state, v->row.id)) {
		/* The row may not have been told yet. */
		(void)snprintf(v->row.state, sizeof v->row.state, "lost");
		explain_loss(v, &s->state);
	} else {
		v->known = client_info(&s->state, v->row.id, &v->info, &ignored) == 0;
		if (v->known)
			(void)snprintf(v->row.state, sizeof v->row.state, "%s", v->info.state);
	}
	return 0;
}

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

static int print_calls(const struct view *v, const struct cmd_ctx *ctx)
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
		const char *path = spec_text(json_array_get(list, i), "path");
		const char *dest = spec_text(json_array_get(list, i), "dest");

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
			(void)limit_size((uint64_t)n, text);
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
		line("env", spec_text(value, NULL));
	for (i = 0; i < ARRAY_LEN(texts); i++)
		line(texts[i], spec_text(spec, texts[i]));
	print_limits(json_object_get(spec, "limits"));
	json_object_foreach(labels, key, value)
	{
		printf("%-*s", LABEL_WIDTH, "label");
		out_safe(key);
		putchar('=');
		out_safe(spec_text(value, NULL) ?: "");
		putchar('\n');
	}
}

/* What the profile promises and this sandbox cannot keep, or NULL. */
static const char *lacks(const struct view *v)
{
	const char *profile = v->spec ? spec_text(v->spec, "profile") : NULL;

	/* An unprivileged user has one uid to give. */
	if (v->row.uid_slot >= 0 || (profile && strcmp(profile, "dev") != 0))
		return NULL;
	return "root, other users, sudo and setuid programs: they need a cay that runs as root";
}

static void print_times(const struct client_state *st)
{
	char text[OUT_NUMBER];

	if (st->ttl_left_ms != UINT64_MAX)
		printf("%-*s%s of its time to live\n", LABEL_WIDTH, "left",
		       out_duration(st->ttl_left_ms * 1000, text));
	if (st->idle_left_ms != UINT64_MAX)
		printf("%-*s%s without a command\n", LABEL_WIDTH, "left",
		       out_duration(st->idle_left_ms * 1000, text));
}

static int print_text(const struct view *v, const struct cmd_ctx *ctx)
{
	char created[CLOCK_TEXT_SIZE], age[OUT_NUMBER], rss[OUT_NUMBER];

	clock_text(v->row.created_ns, created);
	line("id", v->row.id);
	line("name", v->row.name);
	printf("%-*s%s%s%s\n", LABEL_WIDTH, "state", v->row.state, v->reason ? ": " : "",
	       v->reason ? v->reason : "");
	line("log", v->log);
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
	line("lacks", lacks(v));
	return print_calls(v, ctx);
}

static void json_call(struct out_json *j, const struct call_row *c)
{
	bool ended = c->duration_us >= 0;
	/* By the rows' own reason: what was never run has no status to speak of. */
	bool ran = ended && strcmp(c->reason, "failed") != 0 && strcmp(c->reason, "lost") != 0;

	out_json_open(j, NULL, '{');
	out_json_num(j, "call", c->call);
	out_json_c(j, "call_id", c->call_id);
	out_json_raw(j, "argv", c->argv);
	out_json_raw(j, "labels", c->labels ? c->labels : "{}");
	out_json_c(j, "state", ended ? "ended" : "running");
	out_json_c(j, "reason", ended ? c->reason : NULL);
	if (ran && WIFEXITED(c->status))
		out_json_num(j, "exit_code", WEXITSTATUS(c->status));
	else
		out_json_raw(j, "exit_code", NULL);
	if (ran && WIFSIGNALED(c->status))
		out_json_num(j, "signal", WTERMSIG(c->status));
	else
		out_json_raw(j, "signal", NULL);
	out_json_time(j, "start", c->start_ns);
	if (ended)
		out_json_ms(j, "duration_ms", (uint64_t)c->duration_us);
	else
		out_json_raw(j, "duration_ms", NULL);
	out_json_num(j, "stdout_bytes", (int64_t)c->out_bytes);
	out_json_num(j, "stderr_bytes", (int64_t)c->err_bytes);
	out_json_close(j, '}');
}

static void print_json(const struct view *v)
{
	auto_free char *options = v->spec ? json_dumps(v->spec, JSON_COMPACT) : NULL;
	struct out_json j = { .f = stdout };

	out_json_open(&j, NULL, '{');
	out_json_c(&j, "id", v->row.id);
	out_json_c(&j, "name", v->row.name);
	out_json_c(&j, "state", v->row.state);
	out_json_c(&j, "reason", v->reason);
	out_json_c(&j, "log", v->log);
	out_json_c(&j, "template", v->row.template_);
	out_json_bool(&j, "ephemeral", v->row.ephemeral);
	out_json_time(&j, "created", v->row.created_ns);
	if (v->known) {
		out_json_num(&j, "rss_bytes", (int64_t)(v->info.rss_kb * 1024));
		out_json_num(&j, "init_pid", v->info.init_pid);
		out_json_num(&j, "calls_running", v->info.calls_running);
		out_json_num(&j, "calls_total", (int64_t)v->info.calls_total);
		if (v->info.ttl_left_ms != UINT64_MAX)
			out_json_num(&j, "ttl_left_ms", (int64_t)v->info.ttl_left_ms);
		if (v->info.idle_left_ms != UINT64_MAX)
			out_json_num(&j, "idle_left_ms", (int64_t)v->info.idle_left_ms);
	}
	out_json_raw(&j, "options", options);
	out_json_c(&j, "lacks", lacks(v));
	out_json_open(&j, "calls", '[');
	for (int i = 0; i < v->calls.n; i++)
		json_call(&j, &v->calls.rows[i]);
	out_json_close(&j, ']');
	out_json_close(&j, '}');
	out_json_line(&j);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_store_done) struct cli_store s = { 0 };
	auto_done(view_done) struct view v = { 0 };

	if (cmd_need_args(ctx, 1, 1, "SANDBOX", e) < 0 || cli_store_open(&s, e) < 0 ||
	    load(&v, &s, ctx->args[0], e) < 0)
		return -1;
	if (ctx->quiet)
		puts(v.row.id);
	else if (ctx->json)
		print_json(&v);
	else if (print_text(&v, ctx) < 0)
		return err_sys(e, ENOMEM, "sandbox '%s'", v.row.id);
	return 0;
}

const struct cmd cmd_show = {
	.name = "show",
	.synopsis = "SANDBOX",
	.summary = "Show all that is known about a sandbox",
	.details =
		"Its state, the options that it was made with, and its calls with their results.",
	.examples = "cay show box\ncay show box --json | jq '.calls[-1].exit_code'",
	.run = run,
	.data = true,
	.complete = "sandbox",
};
