/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/hints.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *field, *option;
} options[] = {
	{ "dirs", "--dir" },
	{ "copy", "--copy" },
	{ "ros", "--ro" },
	{ "env", "--env" },
	{ "labels", "--label" },
	{ "template", "--template" },
	{ "name", "--name" },
	{ "hostname", "--hostname" },
	{ "user", "--user" },
	{ "cwd", "--cwd" },
	{ "to", "--to" },
	{ "trace", "--trace" },
	{ "profile", "--profile" },
	{ "count", "--count" },
	{ "limits.memory", "--memory" },
	{ "limits.disk", "--disk" },
	{ "limits.cpus", "--cpus" },
	{ "limits.pids", "--pids" },
	{ "limits.files", "--files" },
	{ "limits.on_timeout", "--on-timeout" },
	{ "nameservers", "CAY_NAMESERVERS:" },
};

/* %s stands for the subject of the error; at most two per hint. */
static const struct {
	const char *code, *hint;
} hints[] = {
	{ "install.incomplete", "install all of cay, or build it with: make" },
	{ "state.full", "the file system of the state directory is full" },
	{ "sandbox.lost", "it was lost; its files are a snapshot: cay snapshots %s; remove them "
			  "with: cay kill %s" },
	{ "sandbox.ephemeral", "make one with cay create, or cay run --keep" },
	{ "sandbox.not_running", "its files may be a snapshot: cay snapshots %s" },
	{ "sandbox.busy", "wait for it, or see what runs: cay ps %s" },
	{ "call.not_found", "list them with: cay calls %s" },
	{ "call.not_detached", "start it with: cay exec --detach" },
	{ "snapshot.of_another", "make a sandbox of it: cay fork %s" },
	{ "snapshot.of_transaction", "end it with: cay tx commit %s, or cay tx abort %s" },
	{ "snapshot.none", "take one with: cay snapshot %s" },
	{ "source.not_found", "list them with: cay ls, cay snapshots" },
	{ "layers.busy", "try again" },
	{ "layer.gone", "was it in storage (cay setup storage) that has been taken away?" },
	{ "dir.gone",
	  "put it back where it was; while the sandbox lives its files can be taken out "
	  "with cay cp" },
	{ "sandbox.not_kept",
	  "only sandboxes that stay can be compared: cay create, or cay run --keep" },
	{ "diff.no_such", "list them with: cay ls, cay snapshots; a path that is gone: cay diff "
			  "SANDBOX -- %s" },
	{ "diff.host_changed", "copy them with cay cp, and merge them by hand" },
	{ "file.changing", "pause the sandbox, or wait until its command has ended" },
	{ "apply.no_dir", "give it one with --dir when it is made" },
	{ "apply.refused", "name the paths to apply, or resolve these by hand" },
	{ "apply.may_merge", "name the paths to apply, or try --merge" },
	{ "apply.locked", "where that user has no cay apply to finish, remove %s" },
	{ "apply.unfinished", "finish or undo it first: cay apply --resume --to DIR, or --undo" },
	{ "apply.not_undone", "look at the directory, then: cay apply --undo" },
	{ "apply.undone", "nothing was changed; run it again" },
	{ "apply.not_resumed", "undo what was begun with: cay apply --undo" },
	{ "apply.not_remembered",
	  "all was taken over; later these files may count as changed on the host" },
	{ "apply.foreign",
	  "it came with the directory, or with another CAY_STATE or user; where no "
	  "cay apply was cut off here, remove %s" },
	{ "explore.not_compared", "the commands have ended, and all forks are kept: cay ls" },
	{ "copy.no_sandbox", "write ID:/path for a path in a sandbox" },
	{ "copy.no_directory", "make it first, or leave out the slash at its end" },
	{ "copy.device", "copy to '-' and redirect it: cay cp ID:PATH - > %s" },
	{ "copy.is_directory",
	  "only a file can go to stdout; copy it to a directory: cay cp %s ." },
	{ "tx.not_alone", "see cay ps %s; or begin and end it yourself: cay tx" },
	{ "user.locked", "leave out --user, or take --profile dev" },
	{ "start.gone", "put it back where it was; cay cp takes files out of the sandbox" },
	{ "mount.root", "choose another place: --dir PATH:DEST; or a root: --template dir:PATH" },
	{ "mount.in_state", "choose another directory" },
	{ "mount.around_state", "choose a smaller directory, or move the state with CAY_STATE" },
	{ "host.proxy", "http:// and socks5://[user:password@]host:port can; CAY_PROXY=none: "
			"without one" },
	{ "policy.preset",
	  "presets: none, coding, research, open; a file is written with its path: ./%s" },
	{ "pool.slow", "see why: cay pool ls" },
	{ "pool.not_found", "list them with: cay pool ls" },
	{ "sandbox.not_found", "list them with: cay ls" },
	{ "sandbox.misspelt", "did you mean '%s'? list them with: cay ls" },
	{ "sandbox.name_taken", "end that one (cay kill %s) or choose another name" },
	{ "sandbox.too_many", "end sandboxes that are not needed: cay ls, cay kill ID" },
	{ "sandbox.keeps_nothing",
	  "one that ends with its command cannot be snapshotted or forked: make "
	  "it with cay create or cay run --keep" },
	{ "sandbox.ended_meanwhile", "see what is left of it: cay snapshots %s" },
	{ "snapshot.not_found", "list them with: cay snapshots" },
	{ "snapshot.name_taken", "remove that one (cay snapshot rm %s) or choose another name" },
	{ "storage.not_mounted",
	  "the kernel's log says more (dmesg); to give up all that is in it: cay "
	  "setup storage --remove" },
	{ "storage.file_gone",
	  "put it back, or give up all that was in it: cay setup storage --remove" },
	{ "storage.gone", "mount its file system, or give up all that is in it: cay setup storage "
			  "--remove" },
	{ "storage.full", "the storage is full: see cay gc, cay ls" },
	{ "storage.exists", "take it away first: cay setup storage --remove" },
	{ "storage.no_mkfs", "sudo apt-get install btrfs-progs" },
	{ "storage.not_btrfs", "leave it out for storage in a file: cay setup storage --size 20G" },
	{ "storage.not_empty", "choose a new directory for the storage alone" },
	{ "storage.has_sandboxes", "end them first: cay ls, cay kill; then cay gc --lost" },
	{ "storage.has_snapshots", "remove them first: cay snapshots, cay snapshot rm" },
	{ "storage.root", "without one, --disk is watched instead" },
};

const char *hint_option(const char *field)
{
	size_t n = strcspn(field, "[");

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (strlen(options[i].field) == n && strncmp(options[i].field, field, n) == 0)
			return options[i].option;
	return NULL;
}

/* Copies hint with every %s replaced. */
static void fill(const char *hint, const char *about, char *out, size_t size)
{
	size_t n = 0;

	for (; *hint && n + 1 < size; hint++) {
		if (strncmp(hint, "%s", 2) != 0) {
			out[n++] = *hint;
			continue;
		}
		n += (size_t)snprintf(out + n, size - n, "%s", about);
		hint++;
	}
	out[n < size ? n : size - 1] = '\0';
}

void hint_text(const struct err *e, char *out, size_t size)
{
	(void)snprintf(out, size, "%s", e->hint);
	for (size_t i = 0; !e->hint[0] && i < ARRAY_LEN(hints); i++)
		if (strcmp(hints[i].code, e->code) == 0)
			fill(hints[i].hint, e->about, out, size);
}

void hint_message(const struct err *e, char *out, size_t size)
{
	const char *option = e->field[0] ? hint_option(e->field) : NULL;

	(void)snprintf(out, size, "%s%s%s", option ? option : "", option ? " " : "", e->msg);
}
