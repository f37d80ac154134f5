/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/tables.h"

#include "base/limits.h"
#include "ops/create/create.h"
#include "store/ready.h"

/* clang-format off */
#define TEXT(n, a, ...) { .name = (n), .type = V1_TEXT, .about = (a), .most = LIMIT_PATH - 1, ##__VA_ARGS__ }
#define NAME(n, a, ...) { .name = (n), .type = V1_TEXT, .about = (a), .least = 1, .most = LIMIT_NAME, ##__VA_ARGS__ }
#define CHOICE(n, c, a) { .name = (n), .type = V1_TEXT, .about = (a), .choices = (c) }
#define INT(n, low, high, a, ...) { .name = (n), .type = V1_INT, .about = (a), .least = (low), .most = (high), ##__VA_ARGS__ }
#define BOOL(n, a) { .name = (n), .type = V1_BOOL, .about = (a) }
#define MAP(n, high, a) { .name = (n), .type = V1_MAP, .about = (a), .most = (high) }
#define LIST(n, high, o, a, ...) { .name = (n), .type = V1_ARRAY, .about = (a), .most = (high), .of = (o), ##__VA_ARGS__ }
#define OBJ(n, o, a, ...) { .name = (n), .type = V1_OBJECT, .about = (a), .of = (o), ##__VA_ARGS__ }
#define MUST .flags = V1_REQUIRED
#define END { .name = NULL }

/* Ten years: a longer time is a mistake. */
#define MS_MOST 315360000000ll
#define BYTES_MOST (1ll << 53)
enum { WAIT_MOST = 600000, RESULTS_MOST = 1000, ARG_MOST = 1 << 20 };

static const struct v1_field text_item[] = { { .type = V1_TEXT, .most = LIMIT_PATH - 1 }, END };
static const struct v1_field arg_item[] = { { .type = V1_TEXT, .most = ARG_MOST }, END };

static const struct v1_field mount_fields[] = {
	TEXT("path", "On the host, absolute", MUST), TEXT("dest", "Inside; default: the same"), END
};
static const struct v1_field mount_item[] = { { .type = V1_OBJECT, .of = mount_fields }, END };

static const struct v1_field limit_fields[] = {
	INT("memory_bytes", 0, BYTES_MOST, "Memory of the whole sandbox"),
	INT("disk_bytes", 0, BYTES_MOST, "What may be written since the last snapshot"),
	INT("cpu_milli", 0, 1 << 24, "Thousandths of one CPU"),
	INT("pids", 0, 1 << 24, "Processes and threads"),
	INT("files", 0, 1 << 24, "Open files of one process"),
	INT("call_timeout_ms", 0, MS_MOST, "End every command after this time"), END
};

#define POLICY \
	CHOICE("preset", "none|coding|research|open", "A policy by name"), \
	{ .name = "policy", .type = V1_TEXT, .about = "A policy document: JSON; from the host's user also YAML", .most = LIMIT_POLICY_TEXT }, \
	LIST("allow", 256, text_item, "HOST[:PORT] to allow too"), \
	LIST("deny", 256, text_item, "HOST[:PORT] to deny, whatever else is allowed")

static const struct v1_field network_fields[] = { POLICY, END };
const struct v1_field v1_policy_body[] = { POLICY, END };

#define KIND \
	CHOICE("profile", "dev|locked", "What commands may do; default: dev"), \
	CHOICE("trace", "full|calls", "What is recorded; default: full"), \
	LIST("dirs", LIMIT_MOUNTS, mount_item, "Directories of the host, as writable copies"), \
	LIST("ros", LIMIT_MOUNTS, mount_item, "Directories and files of the host, read-only"), \
	OBJ("limits", limit_fields, "0: no limit"), \
	BOOL("best_effort", "Go on where this host cannot enforce a limit")

const struct v1_field v1_no_body[] = { END };

const struct v1_field v1_create_body[] = {
	TEXT("template", "host (default), snap:SNAPSHOT, or dir:PATH"),
	NAME("name", "Unique on this host"), NAME("hostname", NULL),
	KIND,
	BOOL("copy", "Copy dirs now, not at the first snapshot"),
	MAP("env", LIMIT_ENV, "Environment of its commands"), MAP("labels", LIMIT_LABELS, NULL),
	TEXT("cwd", "Directory of its commands"), TEXT("user", "User of its commands"),
	INT("ttl_ms", 0, MS_MOST, "Time to live; 0: no end"),
	INT("idle_ms", 0, MS_MOST, "How long it may go without a command; 0: no end"),
	CHOICE("on_timeout", "kill|pause", "What happens then; default: kill"),
	OBJ("network", network_fields, "Without it there is no network"),
	BOOL("nested", "Commands may build sandboxes of their own"),
	INT("count", 1, CREATE_MOST, "How many"), END
};

const struct v1_field v1_pool_body[] = {
	TEXT("template", "As of a sandbox", MUST), INT("wanted", 0, READY_MOST, "How many; 0: remove the pool", MUST),
	KIND, BOOL("wait", "Answer when they are ready"), END
};

const struct v1_field v1_list_query[] = {
	INT("limit", 1, RESULTS_MOST, "Default: 100"), TEXT("after", "`next` of the page before"),
	CHOICE("order", "asc|desc", "By creation; default: asc"),
	CHOICE("state", "creating|running|paused|lost", NULL), TEXT("template", NULL),
	LIST("label", LIMIT_LABELS, text_item, "K or K=V; with several, all hold"), END
};

const struct v1_field v1_patch_body[] = {
	INT("ttl_ms", 0, MS_MOST, "Time to live from now; 0: no end", MUST), END
};

/* ---- calls ---- */

static const struct v1_field size_fields[] = {
	INT("rows", 1, 65535, NULL, MUST), INT("cols", 1, 65535, NULL, MUST), END
};

const struct v1_field v1_call_body[] = {
	LIST("argv", LIMIT_ARGS, arg_item, "The command"),
	{ .name = "shell", .type = V1_TEXT, .about = "Or a line for /bin/sh -c", .least = 1, .most = ARG_MOST },
	NAME("id", "The client's id of the call: a repeated request joins it"),
	MAP("env", LIMIT_ENV, NULL), MAP("labels", LIMIT_LABELS, NULL), TEXT("cwd", NULL), TEXT("user", NULL),
	{ .name = "stdin", .type = V1_TEXT, .about = "Its input", .most = LIMIT_STDIN_WINDOW },
	{ .name = "stdin_b64", .type = V1_TEXT, .about = "Its input as base64", .most = 2 * LIMIT_STDIN_WINDOW },
	BOOL("stdin_open", "More input follows: …/stdin, …/attach"),
	BOOL("tty", "Give it a terminal"), OBJ("tty_size", size_fields, "Default: 24 rows, 80 columns"),
	INT("timeout_ms", 0, MS_MOST, "0: none of its own"), INT("memory_bytes", 0, BYTES_MOST, "0: none of its own"),
	BOOL("best_effort", "Go on where this host cannot enforce a limit"),
	INT("retain_bytes", 0, LIMIT_RETAIN, "Output to keep; 0: 1 MiB"), END
};

const struct v1_field v1_start_query[] = {
	INT("wait_ms", 0, WAIT_MOST, "Answer when it has ended, at the latest after this time"), END
};
const struct v1_field v1_output_query[] = {
	CHOICE("stream", "stdout|stderr", "Default: both, in order"), INT("from", 0, BYTES_MOST, "Offset over both streams"),
	BOOL("follow", "Go on until it ends; default: true"), END
};
const struct v1_field v1_wait_query[] = { INT("timeout_ms", 0, WAIT_MOST, "Default: 60000"), END };
const struct v1_field v1_signal_body[] = { NAME("signal", "INT, TERM, KILL, …", MUST), END };
const struct v1_field v1_size_body[] = {
	INT("rows", 1, 65535, NULL, MUST), INT("cols", 1, 65535, NULL, MUST), END
};
const struct v1_field v1_stdin_query[] = { BOOL("eof", "No more input follows"), END };
const struct v1_field v1_attach_query[] = {
	INT("from", 0, BYTES_MOST, "Offset of the output"), BOOL("stdin", "Write to its input; default: true"), END
};

/* ---- files ---- */

#define PATH TEXT("path", "Absolute, inside", MUST), TEXT("user", "Default: the sandbox's")
const struct v1_field v1_path_query[] = { PATH, END };
const struct v1_field v1_write_query[] = {
	PATH, { .name = "mode", .type = V1_TEXT, .about = "Octal, of a new file; default: 0644", .least = 1, .most = 5 }, END
};
const struct v1_field v1_dir_query[] = { PATH, INT("depth", 1, 1000, "Default: 1"), END };
const struct v1_field v1_move_body[] = { TEXT("to", "Absolute, inside", MUST), END };

/* ---- state ---- */

const struct v1_field v1_snapshot_body[] = {
	NAME("name", NULL), TEXT("note", "For people; from the host's user alone"), BOOL("sync", "Wait until all of it is on the disk"), END
};
const struct v1_field v1_rollback_body[] = {
	NAME("snapshot", "Default: the latest"), BOOL("force", "End running calls first"), END
};
const struct v1_field v1_fork_body[] = {
	INT("count", 1, 1000, "Default: 1"), NAME("name", "Of several: NAME-1, NAME-2 and so on"), END
};
const struct v1_field v1_tx_body[] = { BOOL("alone", "Refuse while commands run"), END };
const struct v1_field v1_abort_body[] = { BOOL("force", "End running calls first"), END };
const struct v1_field v1_diff_query[] = {
	NAME("from", "Compare with this snapshot or sandbox"), NAME("to", "The other way round"),
	CHOICE("format", "json|stat|patch", "stat counts lines; default: json"),
	LIST("path", 256, text_item, "Only this and what is below"),
	NAME("call", "Only what this call changed"), BOOL("no_renames", "Show a rename as deleted and added"), END
};
const struct v1_field v1_snapshots_query[] = {
	INT("limit", 1, RESULTS_MOST, "Default: 100"), TEXT("after", "`next` of the page before"), NAME("sandbox", "Only of this one, by id"), END
};

/* ---- record, host ---- */

const struct v1_field v1_trace_query[] = {
	NAME("call", "Only this call: its number, or the client's id"), NAME("kind", "process.exec, file, …"),
	INT("since", 0, BYTES_MOST, "Only events with a higher number"), INT("limit", 1, BYTES_MOST, "At most so many"),
	BOOL("follow", "Go on until the sandbox ends"), END
};
const struct v1_field v1_net_query[] = { BOOL("by_call", "One row per call and host"), END };
const struct v1_field v1_ended_query[] = { INT("limit", 1, 4096, "Default: 100"), END };
const struct v1_field v1_key_body[] = { NAME("name", NULL, MUST), END };
const struct v1_field v1_gc_body[] = { BOOL("lost", "Remove lost sandboxes with their files, too"), END };
