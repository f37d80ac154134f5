/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host/serve_group.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "sys/cgroup/cgroup_join.h"

static const char group_file[] = "group";

/* A group that is gone is no reason to serve nothing: sandboxes are then in the server's own. */
void serve_group_join(const char *state_dir)
{
	auto_done(buf_done) struct buf b = BUF_INIT(PATH_MAX);
	auto_close int dir = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 || io_read_file(dir, group_file, &b) < 0 || buf_add(&b, "", 1) < 0)
		return;
	b.data[strcspn(b.data, "\n")] = '\0';
	(void)cgroup_join(b.data);
}

static void wait_for_stop(void)
{
	sigset_t set;
	int sig;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)sigwait(&set, &sig);
}

static int run(struct cmd_ctx *ctx, struct err *e)
{
	auto_done(cay_close) struct cay c = { 0 };
	char path[PATH_MAX], text[PATH_MAX + 1];
	int r;

	(void)ctx;
	if (cli_open_state(&c, e) < 0)
		return -1;
	r = cgroup_settle(path, sizeof path);
	if (r < 0)
		return err_sys(e, -r, "settle in a control group (version 2)");
	(void)snprintf(text, sizeof text, "%s\n", path);
	r = io_replace_file(c.state.fd, "group.new", group_file, str_of(text));
	if (r < 0)
		return err_sys(e, -r, "write '%s/%s'", c.state.dir, group_file);
	wait_for_stop();
	return 0;
}

const struct cmd cmd_serve_group = {
	.name = "serve-group",
	.synopsis = "",
	.summary = "Hold the control group of a server's sandboxes (cay-sandboxes.service)",
	.run = run,
	.hidden = true,
};
