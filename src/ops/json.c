/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"

const char *const snapshot_kind_names[SNAPSHOT_KINDS] = { "snapshot", "transaction", "lost",
							  "fork" };

static void put_time(struct json *j, const char *key, uint64_t real_ns)
{
	char text[CLOCK_TEXT_SIZE];

	clock_text(real_ns, text);
	json_put_text(j, key, text);
}

/* JSON that is stored as text. otherwise: written if there is none. */
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

static void put_warnings(struct json *j, const struct warnings *w)
{
	json_put_arr(j, "warnings");
	for (int i = 0; i < w->n; i++) {
		json_obj(j);
		json_put_c(j, "code", w->v[i].code);
		json_put_str(j, "text", str_of(w->v[i].text));
		json_end(j);
	}
	json_end(j);
}

void json_created(struct json *j, const struct created *r)
{
	json_obj(j);
	json_put_text(j, "id", r->id);
	json_put_text(j, "name", r->name);
	json_put_text(j, "template", r->template_);
	put_time(j, "created", r->created_ns);
	json_put_ms(j, "start_ms", r->start_us);
	put_warnings(j, &r->warnings);
	json_end(j);
}

void json_forked(struct json *j, const struct created *r)
{
	json_obj(j);
	json_put_text(j, "id", r->id);
	json_put_text(j, "name", r->name);
	json_put_text(j, "layer", r->top);
	put_time(j, "created", r->created_ns);
	json_put_ms(j, "start_ms", r->start_us);
	json_end(j);
}

void json_listed(struct json *j, const struct sandbox_row *row, const struct client_question *asked)
{
	auto_done(options_free) json_t *options = options_load(row);
	bool known = asked && asked->known;

	json_obj(j);
	json_put_text(j, "id", row->id);
	json_put_text(j, "name", row->name);
	json_put_text(j, "state", known ? asked->state.state : row->state);
	json_put_text(j, "template", row->template_);
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
	/* Judged by the reason in the row: a call that never ran has no exit status. */
	bool ran = ended && strcmp(c->reason, "failed") != 0 && strcmp(c->reason, "lost") != 0;

	json_obj(j);
	json_put_u64(j, "call", c->call);
	json_put_text(j, "call_id", c->call_id);
	json_put_raw(j, "argv", str_of(c->argv ? c->argv : "null"));
	json_put_raw(j, "labels", str_of(c->labels ? c->labels : "{}"));
	json_put_text(j, "state", ended ? "ended" : "running");
	json_put_text(j, "reason", ended ? c->reason : NULL);
	put_left(j, "exit_code", ran && WIFEXITED(c->status), (uint64_t)WEXITSTATUS(c->status));
	put_left(j, "signal", ran && WIFSIGNALED(c->status), (uint64_t)WTERMSIG(c->status));
	put_time(j, "start", c->start_ns);
	if (ended)
		json_put_ms(j, "duration_ms", (uint64_t)c->duration_us);
	else
		json_put_nil(j, "duration_ms");
	json_put_u64(j, "stdout_bytes", c->out_bytes);
	json_put_u64(j, "stderr_bytes", c->err_bytes);
	json_end(j);
}

const char *show_lacks(const struct show_result *r)
{
	const char *profile = r->spec ? options_text(r->spec, "profile") : NULL;

	/* An unprivileged user can map only one uid. */
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
	json_put_text(j, "id", r->row.id);
	json_put_text(j, "name", r->row.name);
	json_put_text(j, "state", r->row.state);
	json_put_text(j, "reason", r->end.reason);
	json_put_text(j, "log", r->end.log);
	json_put_text(j, "template", r->row.template_);
	json_put_bool(j, "ephemeral", r->row.ephemeral);
	put_time(j, "created", r->row.created_ns);
	if (r->known)
		put_status(j, &r->info);
	put_stored(j, "options", r->spec, "null");
	if (r->policy.now) {
		json_key(j, "policy");
		json_policy_record(j, &r->policy);
	}
	json_put_text(j, "lacks", show_lacks(r));
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
	json_put_text(j, "user", user);
	json_put_text(j, "state", state);
	json_put_ms(j, "cpu_ms", p->cpu_us);
	json_put_u64(j, "rss_bytes", p->rss_kb * 1024);
	json_put_text(j, "args", p->args);
	json_end(j);
}

static const char *op_name(enum call_op op)
{
	static const char *const names[] = { "exec",	   "read_file", "write_file", "read_tree",
					     "write_tree", "list",	"watch" };

	return (size_t)op < ARRAY_LEN(names) ? names[op] : NULL;
}

void json_call(struct json *j, const struct link_call_row *r)
{
	bool ended = !r->running && !r->failed;

	json_obj(j);
	json_put_i64(j, "call", r->call);
	json_put_text(j, "call_id", r->call_id);
	json_put_text(j, "op", op_name(r->op));
	json_put_text(j, "state", call_row_state(r));
	put_left(j, "exit_code", ended, (uint64_t)r->result.code);
	json_put_text(j, "error", r->error);
	put_time(j, "started", r->start_ms * NS_PER_MS);
	if (ended)
		json_put_ms(j, "duration_ms", r->result.duration_us);
	else
		json_put_nil(j, "duration_ms");
	json_put_bool(j, "detached", r->detached);
	json_put_bool(j, "tty", r->tty);
	json_put_u64(j, "stdout_bytes", r->out_bytes);
	json_put_u64(j, "stderr_bytes", r->err_bytes);
	json_put_u64(j, "kept_from", r->kept_from);
	json_put_u64(j, "kept_to", r->kept_to);
	json_put_text(j, "args", r->args);
	json_end(j);
}

const char *call_limit_name(const struct call_result *r)
{
	return r->oom_own ? "call-memory" : "memory";
}

void json_denied(struct json *j, const struct call_denied *d)
{
	json_obj(j);
	if (d->name.n)
		json_put_str(j, "name", d->name);
	if (d->address.n)
		json_put_str(j, "address", d->address);
	if (d->port)
		json_put_i64(j, "port", (int64_t)d->port);
	if (d->rule.n)
		json_put_str(j, "rule", d->rule);
	json_put_str(j, "reason", d->reason);
	json_put_str(j, "message", d->why);
	if (d->fix.n)
		json_put_str(j, "allow", d->fix);
	json_put_i64(j, "count", (int64_t)d->count);
	json_end(j);
}

void json_call_result(struct json *j, const struct call_result *r, struct str denied)
{
	struct call_denied d;

	json_put_i64(j, "call", r->call);
	json_put_i64(j, "exit_code", r->code);
	json_put_text(j, "reason", r->reason);
	json_put_ms(j, "duration_ms", r->duration_us);
	if (r->oom_kills) {
		json_put_i64(j, "oom_kills", (int64_t)r->oom_kills);
		json_put_text(j, "oom_limit", call_limit_name(r));
		json_put_i64(j, "oom_bytes", (int64_t)r->oom_limit);
	}
	json_put_arr(j, "denied");
	while (denied_next(&denied, &d))
		json_denied(j, &d);
	json_end(j);
}

void json_order(struct json *j, const struct order_result *r)
{
	json_obj(j);
	json_put_text(j, "id", r->id);
	json_put_text(j, "state", r->state.state);
	put_left(j, "ttl_left_ms", true, r->state.ttl_left_ms);
	json_end(j);
}

void json_snapshot_made(struct json *j, const struct snapshot_result *r)
{
	json_obj(j);
	json_put_text(j, "id", r->id);
	json_put_text(j, "name", r->name);
	json_put_text(j, "sandbox", r->sandbox);
	json_put_text(j, "layer", r->top);
	json_put_bool(j, "changed", r->changed);
	json_put_ms(j, "took_ms", r->took_us);
	json_put_ms(j, "freeze_ms", r->freeze_us);
	json_end(j);
}

void json_snapshot(struct json *j, const struct snapshot_row *row)
{
	json_obj(j);
	json_put_text(j, "id", row->id);
	json_put_text(j, "name", row->name);
	json_put_text(j, "note", row->note);
	json_put_text(j, "kind", snapshot_kind_names[row->kind]);
	json_put_text(j, "sandbox", row->sandbox);
	json_put_text(j, "template", row->template_);
	json_put_text(j, "layer", row->top);
	put_time(j, "created", row->created_ns);
	json_end(j);
}

void json_rollback(struct json *j, const struct rollback_result *r)
{
	json_obj(j);
	json_put_text(j, "id", r->id);
	json_put_text(j, "snapshot", r->snapshot);
	json_put_ms(j, "took_ms", r->took_us);
	json_end(j);
}

void json_tx(struct json *j, const struct tx_result *r, const char *done)
{
	json_obj(j);
	json_put_text(j, "id", r->id);
	json_put_text(j, "transaction", r->transaction);
	json_put_text(j, "done", done);
	json_end(j);
}

void json_net_row(struct json *j, const struct net_row *r, bool by_call)
{
	json_obj(j);
	json_put_text(j, "host", r->host);
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
	json_put_text(j, "template", it->row->template_);
	json_put_text(j, "options", it->row->options);
	json_put_u64(j, "wanted", it->row->wanted);
	json_put_u64(j, "ready", it->ready);
	json_put_u64(j, "claimed", it->claimed);
	put_left(j, "keeper_pid", keeper != 0, (uint64_t)keeper);
	json_put_text(j, "problem", it->problem);
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

static const char *file_type(mode_t mode)
{
	return S_ISREG(mode)	? "file"
	       : S_ISDIR(mode)	? "directory"
	       : S_ISLNK(mode)	? "symlink"
	       : S_ISFIFO(mode) ? "fifo"
	       : S_ISSOCK(mode) ? "socket"
				: "device";
}

/* dest: mount point; path: below it, empty for the mount itself. */
static void put_path(struct json *j, const char *key, const char *dest, const char *path)
{
	auto_free char *full = NULL;
	const char *top = strcmp(dest, "/") == 0 ? "" : dest;

	if (asprintf(&full, "%s%s%s", top, path[0] || !top[0] ? "/" : "", path) < 0)
		j->err = -ENOMEM;
	else
		json_put_str(j, key, str_of(full));
}

static void put_side(struct json *j, const char *key, const struct stack_node *n)
{
	char mode[8];

	if (!n->mode) {
		json_put_nil(j, key);
		return;
	}
	(void)snprintf(mode, sizeof mode, "%04o", n->mode & 07777);
	json_put_obj(j, key);
	json_put_text(j, "type", file_type(n->mode));
	json_put_text(j, "mode", mode);
	json_put_u64(j, "uid", n->uid);
	json_put_u64(j, "gid", n->gid);
	if (!S_ISDIR(n->mode))
		json_put_u64(j, "size", n->size);
	json_end(j);
}

void json_diff_change(struct json *j, const struct diff_change *c)
{
	static const char *const kinds[] = { "added", "deleted", "changed", "type", "renamed" };
	const struct diff_entry *en = c->entry;

	json_obj(j);
	put_path(j, "path", c->dest, en->path);
	json_put_text(j, "kind", kinds[en->kind]);
	if (en->old_path)
		put_path(j, "from", c->dest, en->old_path);
	json_put_bool(j, "content", en->content);
	json_put_bool(j, "mode", en->mode);
	json_put_bool(j, "metadata", en->owner || en->xattr);
	json_put_bool(j, "host_changed", en->host_changed || en->from_copy);
	put_side(j, "old", &en->old);
	put_side(j, "new", &en->new);
	if (c->counted) {
		json_put_bool(j, "binary", c->n.binary);
		json_put_u64(j, "added_lines", c->n.added);
		json_put_u64(j, "removed_lines", c->n.removed);
	}
	json_end(j);
}

void json_apply_change(struct json *j, const struct apply_change *c)
{
	json_obj(j);
	json_put_str(j, "dir", str_of(c->dir));
	json_put_str(j, "path", str_of(c->path));
	json_put_text(j, "action", c->action);
	json_put_text(j, "reason", c->reason);
	json_end(j);
}

void json_branch(struct json *j, const struct branch *b)
{
	json_obj(j);
	json_put_i64(j, "fork", b->number);
	json_put_text(j, "id", b->id);
	put_left(j, "exit_code", b->code >= 0, (uint64_t)b->code);
	json_put_ms(j, "duration_ms", b->duration_us);
	json_put_u64(j, "files", b->totals.files);
	json_put_u64(j, "added_lines", b->totals.added);
	json_put_u64(j, "removed_lines", b->totals.removed);
	json_put_bool(j, "kept", b->kept);
	json_end(j);
}

void json_copied(struct json *j, const struct copy_result *r)
{
	json_obj(j);
	json_put_u64(j, "files", r->n.files);
	json_put_u64(j, "directories", r->n.dirs);
	json_put_u64(j, "bytes", r->n.bytes);
	json_put_u64(j, "skipped", r->n.skipped);
	json_put_u64(j, "changed", r->n.changed);
	json_end(j);
}

void json_version(struct json *j)
{
	json_obj(j);
	json_put_text(j, "version", CAY_VERSION);
	json_put_i64(j, "client_protocol", PROTO_CLIENT_VERSION);
	json_put_i64(j, "init_protocol", PROTO_INIT_VERSION);
	json_end(j);
}
