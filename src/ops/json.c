/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"

const char *const snapshot_kind_names[SNAPSHOT_KINDS] = { "snapshot", "transaction", "lost",
							  "fork" };

static void put_text(struct json *j, const char *key, const char *text)
{
	json_put_c(j, key, text && text[0] ? text : NULL);
}

static void put_time(struct json *j, const char *key, uint64_t real_ns)
{
	char text[CLOCK_TEXT_SIZE];

	clock_text(real_ns, text);
	put_text(j, key, text);
}

static void put_ms(struct json *j, const char *key, uint64_t us)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%llu.%03u", (unsigned long long)(us / 1000),
		       (unsigned)(us % 1000));
	json_put_raw(j, key, str_of(text));
}

/* JSON that is stored as such; otherwise: where there is none. */
static void put_stored(struct json *j, const char *key, const json_t *value, const char *otherwise)
{
	auto_free char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

	json_put_raw(j, key, str_of(text ? text : otherwise));
}

static void put_left(struct json *j, const char *key, bool known, uint64_t ms)
{
	if (known && ms != UINT64_MAX)
		json_put_u64(j, key, ms);
	else
		json_put_nil(j, key);
}

void json_created(struct json *j, const struct created *r)
{
	json_obj(j);
	put_text(j, "id", r->id);
	put_text(j, "name", r->name);
	put_text(j, "template", r->template_);
	put_time(j, "created", r->created_ns);
	put_ms(j, "start_ms", r->start_us);
	json_end(j);
}

void json_forked(struct json *j, const struct created *r)
{
	json_obj(j);
	put_text(j, "id", r->id);
	put_text(j, "name", r->name);
	put_text(j, "layer", r->top);
	put_time(j, "created", r->created_ns);
	put_ms(j, "start_ms", r->start_us);
	json_end(j);
}

void json_listed(struct json *j, const struct sandbox_row *row, const struct client_question *asked)
{
	auto_done(options_free) json_t *options = options_load(row);
	bool known = asked && asked->known;

	json_obj(j);
	put_text(j, "id", row->id);
	put_text(j, "name", row->name);
	put_text(j, "state", known ? asked->state.state : row->state);
	put_text(j, "template", row->template_);
	json_put_bool(j, "ephemeral", row->ephemeral);
	put_time(j, "created", row->created_ns);
	put_left(j, "calls_running", known, known ? asked->state.calls_running : 0);
	put_left(j, "calls_total", known, known ? asked->state.calls_total : 0);
	put_left(j, "ttl_left_ms", known, known ? asked->state.ttl_left_ms : 0);
	put_stored(j, "dirs", json_object_get(options, "dirs"), "[]");
	put_stored(j, "labels", json_object_get(options, "labels"), "{}");
	json_end(j);
}

static void put_call(struct json *j, const struct call_row *c)
{
	bool ended = c->duration_us >= 0;
	/* By the rows' own reason: what was never run has no status to speak of. */
	bool ran = ended && strcmp(c->reason, "failed") != 0 && strcmp(c->reason, "lost") != 0;

	json_obj(j);
	json_put_u64(j, "call", c->call);
	put_text(j, "call_id", c->call_id);
	json_put_raw(j, "argv", str_of(c->argv ? c->argv : "null"));
	json_put_raw(j, "labels", str_of(c->labels ? c->labels : "{}"));
	put_text(j, "state", ended ? "ended" : "running");
	put_text(j, "reason", ended ? c->reason : NULL);
	put_left(j, "exit_code", ran && WIFEXITED(c->status), (uint64_t)WEXITSTATUS(c->status));
	put_left(j, "signal", ran && WIFSIGNALED(c->status), (uint64_t)WTERMSIG(c->status));
	put_time(j, "start", c->start_ns);
	if (ended)
		put_ms(j, "duration_ms", (uint64_t)c->duration_us);
	else
		json_put_nil(j, "duration_ms");
	json_put_u64(j, "stdout_bytes", c->out_bytes);
	json_put_u64(j, "stderr_bytes", c->err_bytes);
	json_end(j);
}

const char *show_lacks(const struct show_result *r)
{
	const char *profile = r->spec ? options_text(r->spec, "profile") : NULL;

	/* An unprivileged user has one uid to give. */
	if (r->row.uid_slot >= 0 || (profile && strcmp(profile, "dev") != 0))
		return NULL;
	return "root, other users, sudo and setuid programs: they need a cay that runs as root";
}

static void put_status(struct json *j, const struct sandbox_status *s)
{
	json_put_u64(j, "rss_bytes", s->rss_kb * 1024);
	json_put_i64(j, "init_pid", s->init_pid);
	json_put_u64(j, "calls_running", s->calls_running);
	json_put_u64(j, "calls_total", s->calls_total);
	if (s->ttl_left_ms != UINT64_MAX)
		json_put_u64(j, "ttl_left_ms", s->ttl_left_ms);
	if (s->idle_left_ms != UINT64_MAX)
		json_put_u64(j, "idle_left_ms", s->idle_left_ms);
}

void json_shown(struct json *j, const struct show_result *r)
{
	json_obj(j);
	put_text(j, "id", r->row.id);
	put_text(j, "name", r->row.name);
	put_text(j, "state", r->row.state);
	put_text(j, "reason", r->reason);
	put_text(j, "log", r->log);
	put_text(j, "template", r->row.template_);
	json_put_bool(j, "ephemeral", r->row.ephemeral);
	put_time(j, "created", r->row.created_ns);
	if (r->known)
		put_status(j, &r->info);
	put_stored(j, "options", r->spec, "null");
	put_text(j, "lacks", show_lacks(r));
	json_put_arr(j, "calls");
	for (int i = 0; i < r->calls.n; i++)
		put_call(j, &r->calls.rows[i]);
	json_end(j);
	json_end(j);
}

void json_process(struct json *j, const struct link_process *p)
{
	char state[] = { p->state, '\0' }, user[16];

	(void)snprintf(user, sizeof user, "%u", p->user);
	json_obj(j);
	json_put_i64(j, "pid", p->pid);
	json_put_i64(j, "ppid", p->ppid);
	put_left(j, "call", p->call != 0, p->call);
	put_text(j, "user", user);
	put_text(j, "state", state);
	put_ms(j, "cpu_ms", p->cpu_us);
	json_put_u64(j, "rss_bytes", p->rss_kb * 1024);
	put_text(j, "args", p->args);
	json_end(j);
}

static const char *op_name(enum call_op op)
{
	static const char *const names[] = { "exec", "read_file", "write_file", "read_tree",
					     "write_tree" };

	return (size_t)op < ARRAY_LEN(names) ? names[op] : NULL;
}

void json_call(struct json *j, const struct link_call_row *r)
{
	bool ended = !r->running && !r->failed;

	json_obj(j);
	json_put_i64(j, "call", r->call);
	put_text(j, "call_id", r->call_id);
	put_text(j, "op", op_name(r->op));
	put_text(j, "state", call_row_state(r));
	put_left(j, "exit_code", ended, (uint64_t)r->result.code);
	put_text(j, "error", r->error);
	put_time(j, "started", r->start_ms * NS_PER_MS);
	if (ended)
		put_ms(j, "duration_ms", r->result.duration_us);
	else
		json_put_nil(j, "duration_ms");
	json_put_bool(j, "detached", r->detached);
	json_put_bool(j, "tty", r->tty);
	json_put_u64(j, "stdout_bytes", r->out_bytes);
	json_put_u64(j, "stderr_bytes", r->err_bytes);
	json_put_u64(j, "kept_from", r->kept_from);
	json_put_u64(j, "kept_to", r->kept_to);
	put_text(j, "args", r->args);
	json_end(j);
}

void json_order(struct json *j, const struct order_result *r)
{
	json_obj(j);
	put_text(j, "id", r->id);
	put_text(j, "state", r->state.state);
	put_left(j, "ttl_left_ms", true, r->state.ttl_left_ms);
	json_end(j);
}

void json_snapshot_made(struct json *j, const struct snapshot_result *r)
{
	json_obj(j);
	put_text(j, "id", r->id);
	put_text(j, "name", r->name);
	put_text(j, "sandbox", r->sandbox);
	put_text(j, "layer", r->top);
	json_put_bool(j, "changed", r->changed);
	put_ms(j, "took_ms", r->took_us);
	put_ms(j, "freeze_ms", r->freeze_us);
	json_end(j);
}

void json_snapshot(struct json *j, const struct snapshot_row *row)
{
	json_obj(j);
	put_text(j, "id", row->id);
	put_text(j, "name", row->name);
	put_text(j, "note", row->note);
	put_text(j, "kind", snapshot_kind_names[row->kind]);
	put_text(j, "sandbox", row->sandbox);
	put_text(j, "template", row->template_);
	put_text(j, "layer", row->top);
	put_time(j, "created", row->created_ns);
	json_end(j);
}

void json_rollback(struct json *j, const struct rollback_result *r)
{
	json_obj(j);
	put_text(j, "id", r->id);
	put_text(j, "snapshot", r->snapshot);
	put_ms(j, "took_ms", r->took_us);
	json_end(j);
}

void json_tx(struct json *j, const struct tx_result *r, const char *done)
{
	json_obj(j);
	put_text(j, "id", r->id);
	put_text(j, "transaction", r->transaction);
	put_text(j, "done", done);
	json_end(j);
}

void json_net_row(struct json *j, const struct net_row *r, bool by_call)
{
	json_obj(j);
	put_text(j, "host", r->host);
	json_put_u64(j, "port", r->port);
	if (by_call)
		json_put_u64(j, "call", r->call);
	json_put_u64(j, "connections", r->connections);
	json_put_u64(j, "open", r->open);
	json_put_u64(j, "denied", r->denied);
	json_put_u64(j, "up_bytes", r->up);
	json_put_u64(j, "down_bytes", r->down);
	json_end(j);
}

void json_pool(struct json *j, const struct pool_item *it, long keeper)
{
	json_obj(j);
	put_text(j, "template", it->row->template_);
	put_text(j, "options", it->row->options);
	json_put_u64(j, "wanted", it->row->wanted);
	json_put_u64(j, "ready", it->ready);
	json_put_u64(j, "claimed", it->claimed);
	put_left(j, "keeper_pid", keeper != 0, (uint64_t)keeper);
	put_text(j, "problem", it->problem);
	json_end(j);
}

void json_gc(struct json *j, const struct gc_result *r)
{
	json_obj(j);
	json_put_i64(j, "leftovers_removed", r->removed);
	json_put_i64(j, "lost_removed", r->lost_removed);
	json_put_i64(j, "lost_kept", r->lost_kept);
	json_put_i64(j, "layers_removed", r->layers);
	json_put_i64(j, "bases_removed", r->bases);
	json_put_u64(j, "freed_bytes", r->bytes);
	json_end(j);
}
