/* SPDX-License-Identifier: Apache-2.0 */
/* Claim a ready sandbox: set another host name, and make its files no older than the claim. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/ns/ns.h"
#include "driver/ns/prepare.h"

/*
 * The name belongs to the namespace's owner: us, or if rootless the outer user namespace. A process
 * that enters that one cannot return.
 */
static int set_name(const struct cell_keep *k, int uts_fd, const char *name)
{
	if (k->outer_ns >= 0 && setns(k->outer_ns, CLONE_NEWUSER) < 0)
		return -errno;
	if (setns(uts_fd, CLONE_NEWUTS) < 0 || sethostname(name, strlen(name)) < 0)
		return -errno;
	return 0;
}

static int rename_host(const struct ns_cell *c, const char *name)
{
	auto_close int uts = FD_NONE;
	char path[40];
	int status = 0;
	pid_t pid;

	(void)snprintf(path, sizeof path, "/proc/%d/ns/uts", (int)c->pub.pid);
	uts = open(path, O_RDONLY | O_CLOEXEC);
	if (uts < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		_exit(-set_name(&c->keep, uts, name) & 0xff);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

int ns_claim(struct cell *c, const struct cell_spec *spec, bool renamed, struct err *e)
{
	int r = renamed ? rename_host(ns_cell(c), spec->hostname) : 0;

	if (r == 0 && renamed)
		r = prepare_names(spec);
	if (r == 0)
		r = prepare_times(spec);
	return r < 0 ? err_sys(e, -r, "give the sandbox its name and times") : 0;
}
