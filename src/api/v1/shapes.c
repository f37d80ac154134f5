/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of answers. The objects themselves are written by ops/json.c, for --json too. */
#include "api/v1/doc.h"
#include "base/cleanup.h"

/* clang-format off */
#define TEXT(n, a, ...) { .name = (n), .type = V1_TEXT, .about = (a), ##__VA_ARGS__ }
#define INT(n, a, ...) { .name = (n), .type = V1_INT, .about = (a), ##__VA_ARGS__ }
#define NUM(n, a, ...) { .name = (n), .type = V1_NUMBER, .about = (a), ##__VA_ARGS__ }
#define BOOL(n, a, ...) { .name = (n), .type = V1_BOOL, .about = (a), ##__VA_ARGS__ }
#define ANY(n, a, ...) { .name = (n), .type = V1_ANY, .about = (a), ##__VA_ARGS__ }
#define REF(n, a, r, ...) { .name = (n), .type = V1_REF, .about = (a), .ref = (r), ##__VA_ARGS__ }
#define LIST(n, a, o, ...) { .name = (n), .type = V1_ARRAY, .about = (a), .of = (o), ##__VA_ARGS__ }
#define MAP(n, a, ...) { .name = (n), .type = V1_MAP, .about = (a), ##__VA_ARGS__ }
#define OBJ(n, a, o, ...) { .name = (n), .type = V1_OBJECT, .about = (a), .of = (o), ##__VA_ARGS__ }
#define NUL .flags = V1_NULL
#define OPT .flags = V1_OPTIONAL
#define OPT_NUL .flags = V1_OPTIONAL | V1_NULL
#define RAW .flags = V1_RAW
#define RAW_NUL .flags = V1_RAW | V1_NULL
#define END { .name = NULL }

static const struct v1_field text_item[] = { { .type = V1_TEXT, .flags = V1_RAW }, END };
static const struct v1_field any_item[] = { { .type = V1_ANY }, END };
#define ITEM(shape) (const struct v1_field[]){ { .type = V1_REF, .ref = (shape) }, END }

static const struct v1_field error_fields[] = {
	OBJ("error", NULL, ((const struct v1_field[]){
		TEXT("code", "Stable, for programs: sandbox.unknown"),
		TEXT("message", "What happened, to what", RAW),
		TEXT("field", "The field of the request that is wrong", .flags = V1_OPTIONAL | V1_RAW),
		TEXT("hint", "What to do about it", .flags = V1_OPTIONAL | V1_RAW),
		END })),
	END
};

static const struct v1_field warning_fields[] = {
	TEXT("code", NULL), TEXT("text", NULL, RAW), END
};

static const struct v1_field created_fields[] = {
	TEXT("id", NULL), TEXT("name", NULL, NUL), TEXT("template", NULL),
	TEXT("created", "Time in UTC"), NUM("start_ms", "How long its start took"),
	LIST("warnings", "Deviations from the request", ITEM("Warning")), END
};

static const struct v1_field forked_fields[] = {
	TEXT("id", NULL), TEXT("name", NULL, NUL), TEXT("layer", "Topmost layer that it starts from", NUL),
	TEXT("created", "Time in UTC"), NUM("start_ms", NULL), END
};

static const struct v1_field listed_fields[] = {
	TEXT("id", NULL), TEXT("name", NULL, NUL),
	TEXT("state", "creating, running, paused or lost"), TEXT("template", NULL),
	BOOL("ephemeral", "It ends with the command that made it"), TEXT("created", "Time in UTC"),
	INT("calls_running", NULL, NUL), INT("calls_total", NULL, NUL),
	INT("ttl_left_ms", "Time to live that is left; null: no end", NUL),
	LIST("dirs", "Directories of the host", any_item), MAP("labels", NULL), END
};

static const struct v1_field shown_call_fields[] = {
	INT("call", NULL), TEXT("call_id", "The caller's id", RAW_NUL), ANY("argv", NULL), MAP("labels", NULL),
	TEXT("state", "running or ended"), TEXT("reason", "Why it ended", NUL),
	INT("exit_code", NULL, NUL), INT("signal", NULL, NUL), TEXT("start", "Time in UTC"),
	NUM("duration_ms", NULL, NUL), INT("stdout_bytes", NULL), INT("stderr_bytes", NULL), END
};

static const struct v1_field shown_fields[] = {
	TEXT("id", NULL), TEXT("name", NULL, NUL), TEXT("state", NULL),
	TEXT("reason", "Why it is lost", RAW_NUL), TEXT("log", "The last log lines of a lost one", RAW_NUL),
	TEXT("template", NULL), BOOL("ephemeral", NULL), TEXT("created", "Time in UTC"),
	INT("rss_bytes", "Memory of its processes", OPT), INT("init_pid", "Of its first process, on the host", OPT),
	INT("calls_running", NULL, OPT), INT("calls_total", NULL, OPT),
	INT("ttl_left_ms", NULL, OPT), INT("idle_left_ms", NULL, OPT),
	ANY("options", "What it was made with"),
	REF("policy", "Its network policy", "Policy", OPT),
	TEXT("lacks", "What its profile promises and this host does not give", NUL),
	LIST("calls", NULL, ITEM("ShownCall")), END
};

static const struct v1_field order_fields[] = {
	TEXT("id", NULL), TEXT("state", "The state afterwards"),
	INT("ttl_left_ms", "null: no end", NUL), END
};

static const struct v1_field call_fields[] = {
	INT("call", "Its number"), TEXT("call_id", "The client's id", RAW_NUL),
	TEXT("op", "exec, read_file, write_file, read_tree or write_tree", NUL),
	TEXT("state", "running, failed, or why it ended: exit, signal, timeout, oom, …"),
	INT("exit_code", "As a shell reports it", NUL), TEXT("error", "Why it did not start", RAW_NUL),
	TEXT("started", "Time in UTC"), NUM("duration_ms", NULL, NUL), BOOL("detached", NULL), BOOL("tty", NULL),
	INT("stdout_bytes", NULL), INT("stderr_bytes", NULL),
	INT("kept_from", "Offset of the output that is kept"), INT("kept_to", NULL),
	TEXT("args", "The command, cut", RAW_NUL), END
};

static const struct v1_field denied_fields[] = {
	TEXT("name", NULL, .flags = V1_OPTIONAL | V1_RAW), TEXT("address", NULL, OPT), INT("port", NULL, OPT),
	TEXT("rule", NULL, RAW), TEXT("reason", NULL, RAW), TEXT("message", NULL, RAW),
	TEXT("allow", "A rule that would allow it", .flags = V1_OPTIONAL | V1_RAW), INT("count", NULL), END
};

#define RESULT \
	INT("call", "Its number"), INT("exit_code", "As a shell reports it: 128 + signal, 124 after a timeout"), \
	TEXT("reason", "exit, signal, timeout, oom, disk, killed, …"), NUM("duration_ms", NULL), \
	INT("oom_kills", NULL, OPT), TEXT("oom_limit", NULL, OPT), INT("oom_bytes", NULL, OPT), \
	LIST("denied", "What the network policy refused", ITEM("Denied")), \
	NUM("cpu_ms", NULL), INT("max_rss_bytes", NULL), INT("stdout_bytes", NULL), INT("stderr_bytes", NULL)

static const struct v1_field result_fields[] = { RESULT, END };
static const struct v1_field output_fields[] = {
	RESULT, TEXT("stdout", "The last MiB", RAW), INT("stdout_cut_bytes", "Bytes before that"),
	TEXT("stderr", "The last MiB", RAW), INT("stderr_cut_bytes", NULL), END
};

static const struct v1_field process_fields[] = {
	INT("pid", "Inside"), INT("ppid", NULL), INT("call", NULL, NUL), TEXT("user", "uid inside"),
	TEXT("state", "As in ps(1)", RAW_NUL), NUM("cpu_ms", NULL), INT("rss_bytes", NULL), TEXT("args", NULL, RAW_NUL), END
};

static const struct v1_field net_fields[] = {
	TEXT("host", NULL, RAW), INT("port", NULL), INT("call", "With by_call", OPT), INT("connections", NULL),
	INT("open", NULL), INT("denied", NULL), INT("up_bytes", NULL), INT("down_bytes", NULL), END
};

static const struct v1_field snapshot_made_fields[] = {
	TEXT("id", NULL), TEXT("name", NULL, NUL), TEXT("sandbox", NULL), TEXT("layer", NULL, NUL),
	BOOL("changed", "false: nothing changed since the last one"), NUM("took_ms", NULL),
	NUM("freeze_ms", "How long commands stood still"), END
};

static const struct v1_field snapshot_fields[] = {
	TEXT("id", NULL), TEXT("name", NULL, NUL), TEXT("note", NULL, RAW_NUL),
	TEXT("kind", "snapshot, transaction, lost or fork"), TEXT("sandbox", NULL), TEXT("template", NULL, NUL),
	TEXT("layer", NULL, NUL), TEXT("created", "Time in UTC"), END
};

static const struct v1_field rollback_fields[] = {
	TEXT("id", NULL), TEXT("snapshot", NULL), NUM("took_ms", NULL), END
};

static const struct v1_field tx_fields[] = {
	TEXT("id", NULL), TEXT("transaction", NULL), TEXT("done", "begin, commit or abort"), END
};

static const struct v1_field side_fields[] = {
	TEXT("type", NULL), TEXT("mode", NULL), INT("uid", NULL), INT("gid", NULL), INT("size", NULL, OPT), END
};

static const struct v1_field change_fields[] = {
	TEXT("path", NULL, RAW), TEXT("kind", "added, deleted, changed, type or renamed"),
	TEXT("from", "The old path of a renamed file", .flags = V1_OPTIONAL | V1_RAW),
	BOOL("content", NULL), BOOL("mode", NULL), BOOL("metadata", NULL), BOOL("host_changed", NULL),
	REF("old", NULL, "Side", NUL), REF("new", NULL, "Side", NUL),
	BOOL("binary", "With format=stat", OPT), INT("added_lines", NULL, OPT), INT("removed_lines", NULL, OPT), END
};

static const struct v1_field diff_fields[] = {
	LIST("items", NULL, ITEM("Change")), TEXT("next", NULL, NUL),
	OBJ("totals", NULL, ((const struct v1_field[]){
		INT("files", NULL), INT("added_lines", NULL), INT("removed_lines", NULL), END })), END
};

static const struct v1_field verified_fields[] = {
	BOOL("ok", NULL), TEXT("sandbox", NULL), INT("events", NULL), TEXT("head", "Hash of the last event"),
	BOOL("head_checked", "The running sandbox confirmed it"), INT("dropped", NULL), END
};

static const struct v1_field policy_fields[] = {
	TEXT("sandbox", NULL), TEXT("policy", "Its name; null: no network", RAW_NUL), TEXT("default", NULL, OPT),
	TEXT("hash", NULL, OPT), ANY("rules", NULL, OPT), ANY("history", "Its changes, oldest first"),
	BOOL("history_cut", NULL), END
};

static const struct v1_field policy_set_fields[] = {
	INT("connections_cut", NULL), LIST("added", NULL, text_item), LIST("removed", NULL, text_item), END
};

static const struct v1_field rule_fields[] = {
	TEXT("id", NULL, RAW), TEXT("origin", NULL, RAW), TEXT("action", NULL), LIST("targets", NULL, text_item),
	TEXT("ports", NULL), TEXT("protocols", NULL), END
};

static const struct v1_field checked_fields[] = {
	TEXT("policy", NULL, RAW), TEXT("default", NULL), LIST("rules", NULL, ITEM("Rule")), END
};

static const struct v1_field ended_fields[] = {
	TEXT("id", NULL), TEXT("name", NULL, NUL), TEXT("state", "running, lost or ended"),
	TEXT("cause", NULL, OPT_NUL), TEXT("reason", NULL, .flags = V1_OPTIONAL | V1_NULL | V1_RAW),
	TEXT("by", NULL, .flags = V1_OPTIONAL | V1_NULL | V1_RAW), INT("by_pid", NULL, OPT_NUL), INT("by_uid", NULL, OPT_NUL),
	TEXT("template", NULL, OPT_NUL), TEXT("created", NULL, OPT_NUL), TEXT("ended", NULL, OPT_NUL),
	TEXT("last_event", NULL, OPT_NUL), ANY("argv", NULL, OPT_NUL), ANY("last_call", NULL, OPT_NUL),
	INT("events", NULL, OPT_NUL), TEXT("log", NULL, .flags = V1_OPTIONAL | V1_NULL | V1_RAW),
	TEXT("snapshot", "With the files of a lost one", OPT_NUL), END
};

static const struct v1_field entry_fields[] = {
	TEXT("name", NULL, RAW), TEXT("path", NULL, RAW), TEXT("type", "file, directory, symlink, fifo, socket or device"),
	INT("size", NULL), TEXT("mode", "Octal"), TEXT("owner", NULL, RAW), TEXT("group", NULL, RAW),
	TEXT("modified", "Time in UTC"), TEXT("target", "Of a symlink", .flags = V1_OPTIONAL | V1_RAW), END
};

static const struct v1_field pool_fields[] = {
	TEXT("template", NULL), TEXT("options", NULL, NUL), INT("wanted", NULL), INT("ready", NULL),
	INT("claimed", NULL), INT("keeper_pid", NULL, NUL), TEXT("problem", NULL, NUL), END
};

static const struct v1_field gc_fields[] = {
	INT("leftovers_removed", NULL), INT("lost_removed", NULL), INT("lost_kept", NULL),
	INT("layers_removed", NULL), INT("bases_removed", NULL), INT("freed_bytes", NULL), END
};

static const struct v1_field doctor_fields[] = {
	LIST("checks", NULL, ((const struct v1_field[]){ { .type = V1_OBJECT, .of = (const struct v1_field[]){
		TEXT("name", NULL), TEXT("group", NULL), TEXT("state", "ok, note or missing"), TEXT("finding", NULL, NUL),
		TEXT("fix", NULL, NUL), END } }, END })),
	LIST("drivers", NULL, ((const struct v1_field[]){ { .type = V1_OBJECT, .of = (const struct v1_field[]){
		TEXT("driver", NULL), TEXT("profile", NULL), TEXT("mode", NULL), TEXT("level", "full, reduced or none"),
		TEXT("sentence", NULL, NUL), END } }, END })),
	END
};

static const struct v1_field version_fields[] = {
	TEXT("version", NULL), INT("client_protocol", NULL), INT("init_protocol", NULL), END
};

static const struct v1_field key_fields[] = {
	TEXT("id", NULL), TEXT("name", NULL), TEXT("begins", "Its first characters"), TEXT("created", "Time in UTC"),
	TEXT("expires", "Time in UTC; missing: never", OPT), ANY("limits", "Its quotas, as far as it says any; null: none"),
	TEXT("scope", "What it may do; missing: all", OPT),
	TEXT("key", "The key itself, in the answer that made it", OPT), END
};

const struct v1_shape v1_shapes[] = {
	{ "Error", "Every error", error_fields },
	{ "Warning", "A deviation from a request that is not a failure", warning_fields },
	{ "Created", "A new sandbox", created_fields },
	{ "Forked", "A new sandbox with the files of another", forked_fields },
	{ "Sandbox", "A sandbox in a list", listed_fields },
	{ "SandboxDetail", "Everything about a sandbox", shown_fields },
	{ "ShownCall", "A call in the history of a sandbox", shown_call_fields },
	{ "State", "The state of a sandbox after an order", order_fields },
	{ "Call", "A call: running, or one of the last that ended", call_fields },
	{ "Result", "How a call ended", result_fields },
	{ "ResultWithOutput", "How a call ended, with the end of its output", output_fields },
	{ "Denied", "A connection that the policy refused", denied_fields },
	{ "Process", "A process inside", process_fields },
	{ "NetUse", "Use of the network by host", net_fields },
	{ "SnapshotMade", "A new snapshot", snapshot_made_fields },
	{ "Snapshot", "A snapshot", snapshot_fields },
	{ "RolledBack", "The result of a rollback", rollback_fields },
	{ "Transaction", "A step of a transaction", tx_fields },
	{ "Side", "One side of a change", side_fields },
	{ "Change", "A changed path", change_fields },
	{ "Diff", "What changed", diff_fields },
	{ "TraceVerified", "A trace whose chain of hashes is whole", verified_fields },
	{ "Policy", "The network policy of a sandbox", policy_fields },
	{ "PolicySet", "What a new policy changed", policy_set_fields },
	{ "PolicyChecked", "A policy with its rules", checked_fields },
	{ "Rule", "A rule of a policy", rule_fields },
	{ "Ended", "The end of a sandbox", ended_fields },
	{ "Entry", "A file or directory inside", entry_fields },
	{ "Pool", "Sandboxes that are kept ready", pool_fields },
	{ "Cleaned", "What cleaning removed", gc_fields },
	{ "Doctor", "What this host gives", doctor_fields },
	{ "Version", "The program and its protocols", version_fields },
	{ "Key", "An API key", key_fields },
};
const size_t nv1_shapes = ARRAY_LEN(v1_shapes);
