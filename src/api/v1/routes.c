/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the native API, with what each takes and answers. */
#include "api/v1/doc.h"
#include "api/v1/tables.h"
#include "api/v1/v1.h"
#include "base/cleanup.h"

/* clang-format off */
#define DOC(...) &(const struct route_doc){ __VA_ARGS__ }
#define JOB(m, p, job, flags, ...) { { (m), "/v1" p, (job), NULL, ROUTE_NATIVE | (flags) }, DOC(__VA_ARGS__) }
#define FRONT(m, p, fn, flags, ...) { { (m), "/v1" p, NULL, (fn), ROUTE_NATIVE | (flags) }, DOC(__VA_ARGS__) }
#define OK(shape_) .answers = { { 200, NULL, (shape_), NULL, false, NULL } }
#define MADE(shape_) .answers = { { 201, "Made", (shape_), NULL, false, NULL } }
#define ITEMS(shape_) .answers = { { 200, "A list", (shape_), NULL, true, NULL } }
#define NOTHING .answers = { { 204, "Done", NULL, NULL, false, NULL } }
#define BYTES(type_) .answers = { { 200, "The bytes", NULL, (type_), false, NULL } }

#define BOX "/sandboxes/{id}"

/* Rows with the same path stand together (openapi.c). */
const struct v1_route v1_routes[] = {
	JOB("POST", "/sandboxes", "v1.create", ROUTE_BODY | ROUTE_ONCE | ROUTE_CREATES, "createSandbox", "sandboxes",
	    "Create a sandbox", "With `count` the answer is a list. dirs, ros, nested and the templates dir:PATH are for the host's user alone.",
	    .body = v1_create_body, .answers = { { 201, "It runs", NULL, "application/json", false, NULL } },
	    .errors = "name.taken host.only idempotency.mismatch snapshot.unknown"),
	JOB("GET", "/sandboxes", "v1.list", 0, "listSandboxes", "sandboxes", "List sandboxes", NULL, .query = v1_list_query, ITEMS("Sandbox")),
	JOB("GET", BOX, "v1.get", 0, "getSandbox", "sandboxes", "Show a sandbox", NULL, OK("SandboxDetail")),
	JOB("PATCH", BOX, "v1.patch", ROUTE_BODY, "changeSandbox", "sandboxes", "Change the time to live", NULL, .body = v1_patch_body, OK("State")),
	JOB("DELETE", BOX, "v1.delete", 0, "deleteSandbox", "sandboxes", "End a sandbox", NULL, NOTHING),
	JOB("POST", BOX "/pause", "v1.pause", ROUTE_BODY, "pauseSandbox", "sandboxes", "Stop everything inside", NULL, .body = v1_no_body, OK("State"), .errors = "sandbox.busy"),
	JOB("POST", BOX "/resume", "v1.resume", ROUTE_BODY, "resumeSandbox", "sandboxes", "Go on after a pause", NULL, .body = v1_no_body, OK("State")),
	JOB("GET", BOX "/why", "v1.why", 0, "whySandbox", "sandboxes", "Why a sandbox ended", "Of an ended one, for the host's user alone.", OK("Ended")),
	JOB("GET", BOX "/ps", "v1.ps", 0, "listProcesses", "sandboxes", "List the processes inside", NULL, ITEMS("Process")),

	FRONT("POST", BOX "/calls", v1_call_start, ROUTE_BODY | ROUTE_ONCE, "startCall", "calls", "Run a command",
	      "The call belongs to no connection. With an id of the client (`id`, or Idempotency-Key) a repeated request joins the same call. `Accept: text/event-stream` streams its events.",
	      .query = v1_start_query, .body = v1_call_body,
	      .answers = { { 201, "It runs", "Call", NULL, false, NULL }, { 200, "With wait_ms: it ended. Or the call was there", NULL, "application/json", false, "text/event-stream" },
			   { 202, "With wait_ms: it still runs", "Call", NULL, false, NULL } },
	      .errors = "call.conflict exec.failed sandbox.not_running"),
	JOB("GET", BOX "/calls", "v1.calls", 0, "listCalls", "calls", "List running calls and the last ended ones", NULL, ITEMS("Call")),
	JOB("GET", BOX "/calls/{sub}", "v1.call", 0, "getCall", "calls", "Show a call", "By its number, or by the client's id.", OK("Call"), .errors = "call.not_found"),
	FRONT("GET", BOX "/calls/{sub}/output", v1_call_output, ROUTE_USES, "getOutput", "calls", "The output of a call",
	      "Bytes, or server-sent events (`Accept: text/event-stream`), whose ids are offsets: Last-Event-ID goes on there.",
	      .query = v1_output_query, .answers = { { 200, "The bytes", NULL, "application/octet-stream", false, "text/event-stream" } }, .errors = "call.not_found call.not_detached"),
	FRONT("POST", BOX "/calls/{sub}/wait", v1_call_wait, ROUTE_BODY, "waitCall", "calls", "Wait for the end of a call", NULL, .query = v1_wait_query, .body = v1_no_body,
	      .answers = { { 200, "It ended", "Result", NULL, false, NULL }, { 202, "It still runs", "Call", NULL, false, NULL } }, .errors = "call.not_found call.not_detached"),
	FRONT("POST", BOX "/calls/{sub}/signal", v1_call_signal, ROUTE_BODY, "signalCall", "calls", "Send a signal", NULL, .body = v1_signal_body, NOTHING, .errors = "call.ended call.not_found"),
	FRONT("POST", BOX "/calls/{sub}/resize", v1_call_resize, ROUTE_BODY, "resizeCall", "calls", "Change the size of its terminal", NULL, .body = v1_size_body, NOTHING, .errors = "call.ended call.not_found"),
	FRONT("POST", BOX "/calls/{sub}/stdin", v1_call_stdin, 0, "writeStdin", "calls", "Write to its input", NULL, .query = v1_stdin_query, .raw = "application/octet-stream", NOTHING,
	      .errors = "call.ended call.not_found stdin.taken"),
	FRONT("GET", BOX "/calls/{sub}/attach", v1_call_attach, ROUTE_USES, "attachCall", "calls", "Join a call by WebSocket",
	      "Binary messages: one byte (0 stdin, 1 stdout, 2 stderr), then data. Text: JSON orders and events.", .query = v1_attach_query,
	      .answers = { { 101, "A WebSocket", NULL, NULL, false, NULL } }, .errors = "call.not_found call.not_detached stdin.taken upgrade.required"),

	FRONT("GET", BOX "/files", v1_file_get, ROUTE_USES, "readFile", "files", "Read a file", "Takes one Range.", .query = v1_path_query,
	      .answers = { { 200, "The bytes", NULL, "application/octet-stream", false, NULL }, { 206, "The range", NULL, "application/octet-stream", false, NULL } },
	      .errors = "file.unknown file.is_directory file.denied range.invalid"),
	FRONT("PUT", BOX "/files", v1_file_put, 0, "writeFile", "files", "Write a file", "It appears whole or not at all.", .query = v1_write_query, .raw = "application/octet-stream", NOTHING,
	      .errors = "file.unknown file.is_directory file.denied disk.full"),
	FRONT("DELETE", BOX "/files", v1_file_delete, 0, "deleteFile", "files", "Remove a file or directory", NULL, .query = v1_path_query, NOTHING, .errors = "file.unknown file.denied"),
	FRONT("GET", BOX "/files/stat", v1_file_stat, ROUTE_USES, "statFile", "files", "Show a file or directory", NULL, .query = v1_path_query, OK("Entry"), .errors = "file.unknown file.denied"),
	FRONT("GET", BOX "/files/list", v1_file_list, ROUTE_USES, "listFiles", "files", "List a directory", NULL, .query = v1_dir_query, ITEMS("Entry"), .errors = "file.unknown file.not_directory"),
	FRONT("POST", BOX "/files/mkdir", v1_file_mkdir, ROUTE_BODY, "makeDirectory", "files", "Make a directory and its parents", NULL, .query = v1_path_query, .body = v1_no_body, OK("Entry"), .errors = "file.exists"),
	FRONT("POST", BOX "/files/move", v1_file_move, ROUTE_BODY, "moveFile", "files", "Rename a file or directory", NULL, .query = v1_path_query, .body = v1_move_body, OK("Entry"), .errors = "file.unknown"),
	FRONT("GET", BOX "/tree", v1_tree_get, ROUTE_USES, "readTree", "files", "Read a file or directory as tar", NULL, .query = v1_path_query, BYTES("application/x-tar"), .errors = "file.unknown"),
	FRONT("PUT", BOX "/tree", v1_tree_put, 0, "writeTree", "files", "Unpack a tar stream into a directory", NULL, .query = v1_path_query, .raw = "application/x-tar", NOTHING),

	JOB("POST", BOX "/snapshots", "v1.snapshot", ROUTE_BODY | ROUTE_SNAPSHOT, "createSnapshot", "state", "Keep the files as they are now", NULL, .body = v1_snapshot_body, MADE("SnapshotMade"), .errors = "name.taken sandbox.busy"),
	JOB("POST", BOX "/rollback", "v1.rollback", ROUTE_BODY, "rollbackSandbox", "state", "Go back to a snapshot", NULL, .body = v1_rollback_body, OK("RolledBack"), .errors = "calls.running snapshot.unknown sandbox.busy"),
	JOB("POST", BOX "/fork", "v1.fork", ROUTE_BODY | ROUTE_CREATES, "forkSandbox", "state", "Make sandboxes with the same files", NULL, .body = v1_fork_body,
	    .answers = { { 201, "They run", "Forked", NULL, true, NULL } }, .errors = "name.taken"),
	JOB("POST", BOX "/transactions", "v1.tx.begin", ROUTE_BODY, "beginTransaction", "state", "Begin a transaction", NULL, .body = v1_tx_body, MADE("Transaction")),
	JOB("POST", BOX "/transactions/{sub}/commit", "v1.tx.commit", ROUTE_BODY, "commitTransaction", "state", "Keep what happened since its begin", NULL, .body = v1_no_body, OK("Transaction"), .errors = "tx.unknown"),
	JOB("POST", BOX "/transactions/{sub}/abort", "v1.tx.abort", ROUTE_BODY, "abortTransaction", "state", "Undo what happened since its begin", NULL, .body = v1_abort_body, OK("Transaction"), .errors = "tx.unknown calls.running"),
	JOB("GET", BOX "/diff", "v1.diff", ROUTE_USES, "diffSandbox", "state", "What a sandbox changed", "format=patch is a patch for git apply.", .query = v1_diff_query,
	    .answers = { { 200, "The changes", "Diff", NULL, false, "text/x-patch" } }, .errors = "diff.host_changed snapshot.unknown"),
	JOB("GET", "/snapshots", "v1.snapshots", 0, "listSnapshots", "state", "List snapshots", NULL, .query = v1_snapshots_query, ITEMS("Snapshot")),
	JOB("GET", "/snapshots/{id}", "v1.snapshot.get", 0, "getSnapshot", "state", "Show a snapshot", NULL, OK("Snapshot"), .errors = "snapshot.unknown"),
	JOB("DELETE", "/snapshots/{id}", "v1.snapshot.delete", ROUTE_SNAPSHOT, "deleteSnapshot", "state", "Remove a snapshot", NULL, NOTHING, .errors = "snapshot.unknown"),
	JOB("POST", "/snapshots/{id}/fork", "v1.snapshot.fork", ROUTE_BODY | ROUTE_CREATES, "forkSnapshot", "state", "Make sandboxes from a snapshot", NULL, .body = v1_fork_body,
	    .answers = { { 201, "They run", "Forked", NULL, true, NULL } }, .errors = "snapshot.unknown name.taken"),

	FRONT("GET", BOX "/trace", v1_trace, 0, "getTrace", "record", "What happened, as lines of JSON", "With `Accept: text/event-stream` as events, whose ids are the numbers of the trace's events.", .query = v1_trace_query,
	      .answers = { { 200, "The events", NULL, "application/x-ndjson", false, "text/event-stream" } }),
	JOB("GET", BOX "/trace/verify", "v1.trace.verify", 0, "verifyTrace", "record", "Check the chain of hashes", NULL, OK("TraceVerified"), .errors = "trace.broken"),
	JOB("GET", BOX "/net", "v1.net", 0, "listNetUse", "record", "Use of the network, by host", NULL, .query = v1_net_query, ITEMS("NetUse")),
	JOB("GET", BOX "/policy", "v1.policy.get", 0, "getPolicy", "record", "The network policy and its history", NULL, OK("Policy")),
	JOB("PUT", BOX "/policy", "v1.policy.set", ROUTE_BODY | ROUTE_NETWORK, "setPolicy", "record", "Replace the network policy", NULL, .body = v1_policy_body, OK("PolicySet")),
	JOB("POST", "/policies/check", "v1.policy.check", ROUTE_BODY, "checkPolicy", "record", "Check a policy and list its rules", NULL, .body = v1_policy_body, OK("PolicyChecked")),
	FRONT("GET", BOX "/ports/{sub}/connect", v1_port_connect, ROUTE_USES, "connectPort", "ports", "One connection to a port, by WebSocket", "Binary messages are its bytes.",
	      .answers = { { 101, "A WebSocket", NULL, NULL, false, NULL } }, .errors = "port.closed upgrade.required"),

	JOB("GET", "/ended", "v1.ended", ROUTE_ADMIN, "listEnded", "host", "List ended sandboxes", NULL, .query = v1_ended_query, ITEMS("Ended")),
	JOB("GET", "/pools", "v1.pools", ROUTE_ADMIN, "listPools", "host", "List pools of ready sandboxes", NULL, ITEMS("Pool")),
	JOB("PUT", "/pools", "v1.pool.set", ROUTE_ADMIN | ROUTE_BODY, "setPool", "host", "Keep sandboxes ready", "wanted 0 removes the pool.", .body = v1_pool_body, NOTHING),
	JOB("GET", "/keys", "v1.keys", ROUTE_ADMIN, "listKeys", "host", "List API keys", NULL, ITEMS("Key")),
	JOB("POST", "/keys", "v1.key.create", ROUTE_ADMIN | ROUTE_BODY, "createKey", "host", "Make an API key", NULL, .body = v1_key_body, MADE("Key")),
	JOB("DELETE", "/keys/{id}", "v1.key.revoke", ROUTE_ADMIN, "revokeKey", "host", "Revoke an API key", NULL, NOTHING),
	JOB("POST", "/gc", "v1.gc", ROUTE_ADMIN | ROUTE_BODY, "collectGarbage", "host", "Remove what dead sandboxes left", NULL, .body = v1_gc_body, OK("Cleaned")),
	JOB("GET", "/doctor", "v1.doctor", ROUTE_ADMIN, "getDoctor", "host", "What this host gives", NULL, OK("Doctor")),
	JOB("GET", "/version", "v1.version", 0, "getVersion", "host", "The version of the server", NULL, OK("Version")),
	FRONT("GET", "/openapi.json", v1_openapi, ROUTE_OPEN, "getOpenAPI", "host", "This document", NULL, .answers = { { 200, "OpenAPI 3.1", NULL, "application/json", false, NULL } }),
};
const size_t nv1_routes = ARRAY_LEN(v1_routes);
/* clang-format on */

const struct route *v1_route_find(struct str method, struct str path, struct route_params *p,
				  bool *ret_other)
{
	*ret_other = false;
	for (size_t i = 0; i < nv1_routes; i++) {
		const struct route *row = &v1_routes[i].route;

		if (!route_fits(row, path, p))
			continue;
		if (str_is(method, row->method))
			return row;
		*ret_other = true;
	}
	return NULL;
}
