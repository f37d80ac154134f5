/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that run, create and exec share: their rows, and what is made of them.
 *
 * A command has one static struct sandbox_opts and puts the rows that apply to it into its
 * table:
 *
 *   static struct sandbox_opts o;
 *   static struct opt opts[] = { SANDBOX_OPTS_BUILD(o), SANDBOX_OPTS_CALL(o), { 0 } };
 *
 * sandbox_opts_spec() reads them, and create_check() checks everything before anything is made, so
 * that a mistake in the last option leaves nothing behind.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "cli/cmd.h"
#include "cli/sandbox/limit_options.h"
#include "cli/sandbox/net_options.h"
#include "ops/create/create_check.h"

struct sandbox_opts {
	const char *template_;
	struct opt_list dirs, ros, envs, labels;
	const char *cwd, *user, *name, *call_id, *hostname, *profile, *trace;
	uint64_t timeout_ms; /* 0: none */
	bool copy;
	bool tty;
	bool keep;
	bool tx;
	bool nested, toolchains;
	bool json;
	bool outlives; /* the sandbox does not end with its first command */
	struct limit_opts limits;
	struct net_opts net;
};

/* clang-format off */
/* How to build a sandbox. */
#define SANDBOX_OPTS_BUILD(o) \
	{ "template", 0, OPT_TEXT, "NAME", \
	  "What the sandbox starts from: host, the system of this machine (default), dir:PATH, " \
	  "or snap:SNAPSHOT", \
	  &(o).template_ }, \
	{ "dir", 'd', OPT_LIST, "PATH[:DEST]", \
	  "Show a directory inside, as a copy that can be changed; the original stays as it is", \
	  &(o).dirs }, \
	{ "copy", 0, OPT_FLAG, NULL, \
	  "Copy each --dir now, so that changes on the host do not show inside; else it is copied " \
	  "at the first snapshot or fork", \
	  &(o).copy }, \
	{ "ro", 0, OPT_LIST, "PATH[:DEST]", "Show a file or directory inside, read-only", &(o).ros }, \
	{ "toolchains", 0, OPT_FLAG, NULL, \
	  "Show the programs of your ~/.cargo, ~/.rustup, ~/.pyenv, ~/.nvm and ~/go inside, read-only", \
	  &(o).toolchains }, \
	{ "name", 'n', OPT_TEXT, "NAME", "A name, unique while the sandbox lives", &(o).name }, \
	{ "hostname", 0, OPT_TEXT, "NAME", "The host's name inside", &(o).hostname }, \
	{ "profile", 0, OPT_TEXT, "dev|locked", \
	  "What commands may do: as on a machine of one's own (default), or one user without " \
	  "any way to more rights", &(o).profile }, \
	{ "nested", 0, OPT_FLAG, NULL, \
	  "Let commands build sandboxes of their own: bubblewrap, browsers, podman, cay; more of " \
	  "the kernel is within reach then", &(o).nested }, \
	{ "trace", 0, OPT_TEXT, "full|calls", \
	  "What is recorded: also processes and files (default), or calls only", &(o).trace }

/* How to run one call. */
#define SANDBOX_OPTS_CALL(o) \
	{ "env", 'e', OPT_LIST, "K[=V]", "Set a variable; without V it gets your own value", \
	  &(o).envs }, \
	{ "cwd", 'w', OPT_TEXT, "DEST", "Working directory inside; default: the first --dir", \
	  &(o).cwd }, \
	{ "user", 'u', OPT_TEXT, "USER", "Run as this user: a name, UID, or UID:GID", &(o).user }, \
	{ "label", 'l', OPT_LIST, "K=V", "Attach a label", &(o).labels }

/* Only for commands that run a call. */
#define SANDBOX_OPTS_RUN(o) \
	{ "timeout", 0, OPT_DURATION, "TIME", \
	  "End the command after this time (500ms, 10s, 5m, 1h); exit code 124", &(o).timeout_ms }, \
	{ "tty", 't', OPT_FLAG, NULL, "Give the command a terminal", &(o).tty }, \
	{ "call-id", 0, OPT_TEXT, "TEXT", "Your own id for this call, kept in the trace", \
	  &(o).call_id }, \
	{ "json", 0, OPT_FLAG, NULL, \
	  "When it has ended, print how on stderr as one line of JSON: code, times, refusals", \
	  &(o).json }

#define SANDBOX_OPTS_TX(o) \
	{ "tx", 0, OPT_FLAG, NULL, \
	  "Undo all changes of files unless the command exits with 0", &(o).tx }

#define SANDBOX_OPTS_KEEP(o) \
	{ "keep", 0, OPT_FLAG, NULL, "Keep the sandbox when the command has ended", &(o).keep }
/* clang-format on */

/* A create_spec made from these options, and the memory that it borrows. */
struct sandbox_spec {
	struct create_spec spec;
	struct mount_spec *mounts; /* dirs, then ros */
	char **texts; /* allocated strings: parts of mounts, and variables with their values */
	int ntexts;
	const char **env;
	struct buf policy;
};

/*
 * INVALID, naming the option and its value, if they cannot be parsed; ops/create/create_check.h
 * checks their meaning.
 */
int sandbox_opts_spec(const struct sandbox_opts *o, struct sandbox_spec *ret, struct err *e);
void sandbox_spec_done(struct sandbox_spec *s);
DEFINE_AUTO(struct sandbox_spec, sandbox_spec_done)
