/* SPDX-License-Identifier: Apache-2.0 */
/* cay pool set: sets how many sandboxes of a kind to keep ready. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/sandbox/sandbox_options.h"
#include "ops/pool/pool.h"

static struct sandbox_opts o;
static bool wait_for_them;
static struct opt opts[] = {
	{ "dir", 'd', OPT_LIST, "PATH[:DEST]", "As of cay create", &o.dirs },
	{ "profile", 0, OPT_TEXT, "dev|locked", "As of cay create", &o.profile },
	{ "trace", 0, OPT_TEXT, "full|calls", "As of cay create", &o.trace },
	{ "memory", 'm', OPT_SIZE, "SIZE", "As of cay create", &o.limits.memory },
	{ "cpus", 0, OPT_NUMBER, "N", "As of cay create", &o.limits.cpu_milli },
	{ "pids", 0, OPT_COUNT, "N", "As of cay create", &o.limits.pids },
	{ "files", 0, OPT_COUNT, "N", "As of cay create", &o.limits.files },
	{ "disk", 0, OPT_SIZE, "SIZE", "As of cay create", &o.limits.disk },
	{ "ro", 0, OPT_LIST, "PATH[:DEST]", "As of cay create", &o.ros },
	{ "net", 0, OPT_TEXT, "POLICY", "With a network, for any policy; none: without",
	  &o.net.net },
	LIMIT_OPTS_EFFORT(o.limits),
	{ "wait", 0, OPT_FLAG, NULL, "Return when they are ready", &wait_for_them },
	{ 0 },
};

static int parse_count(const char *text, uint32_t *ret, struct err *e)
{
	size_t n = strspn(text, "0123456789");
	unsigned long v = n && n < 8 && !text[n] ? strtoul(text, NULL, 10) : READY_MOST + 1;

	if (v > READY_MOST)
		return err_set(e, ERR_INVALID, "'%.100s': how many, from 0 to %d", text,
			       READY_MOST);
	*ret = (uint32_t)v;
	return 0;
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cli_done) struct cay c = { 0 };
	auto_done(sandbox_spec_done) struct sandbox_spec s = { 0 };
	struct pool_spec spec = { .wait = wait_for_them };

	if (cmd_need_args(ctx, 2, 2, "a TEMPLATE and how many", e) < 0 ||
	    parse_count(ctx->args[1], &spec.wanted, e) < 0)
		return -1;
	o.template_ = ctx->args[0];
	if (sandbox_opts_spec(&o, &s, e) < 0 || cli_open_state(&c, e) < 0)
		return -1;
	spec.of = s.spec;
	return op_pool_set(&c, &spec, e);
}

const struct cmd cmd_pool_set = {
	.name = "pool set",
	.synopsis = "[options] TEMPLATE N",
	.summary = "Keep N sandboxes ready, so that making one takes no time",
	.details =
		"TEMPLATE is as of cay create: host, dir:PATH, or snap:SNAPSHOT; a snapshot without "
		"options is kept as cay fork would make it. From then on cay run, create, fork and "
		"explore take a ready one where there is one of exactly the kind that they would "
		"make; name, host name, labels, environment, user, directory and times are given to "
		"it then, and it looks like a new one. A process in the background makes "
		"others in its place. Limits and priority of whoever asks do not matter; a ready "
		"sandbox stays in the control group of that process. It is used only by the same "
		"user in the same namespaces, and is made anew when the template, the host's packages or cay itself change. Ready sandboxes are not "
		"listed by cay ls; each takes about half a MiB of memory. 0 ends it and removes "
		"them; without options, all pools of the template. A ready sandbox with a network "
		"reaches nothing before whoever takes it brings a policy, and serves every policy. "
		"The storage for sandboxes' files is another thing: cay setup storage.",
	.examples = "cay pool set host 10\n"
		    "cay pool set snap:before-upgrade 100 --wait\n"
		    "cay pool set host 4 --profile locked --memory 2G\n"
		    "cay pool set host 10 --net open\n"
		    "cay pool set host 0",
	.run = run,
	.opts = opts,
	.complete = "host|dir:|snap:",
};
