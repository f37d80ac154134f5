/* SPDX-License-Identifier: Apache-2.0 */
/* Each test runs in its own user namespace, in which it has every capability. */
#include "sys/ns/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "t_ns.h"

#define BIT(c) (1ull << (c))

/* A "Cap...:" line of /proc/self/status. */
static uint64_t line(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	CHECK(at != NULL);
	return strtoull(at + strlen(key) + 1, NULL, 16);
}

static uint64_t now(const char *key)
{
	auto_done(buf_done) struct buf text = BUF_INIT(64 * 1024);

	CHECK(io_read_file(AT_FDCWD, "/proc/self/status", &text) == 0);
	return line(text.data, key);
}

static void the_bounding_set_is_reduced_to_keep(void)
{
	t_own_namespaces(0);
	CHECK(now("CapBnd") & BIT(CAP_SYS_ADMIN));
	CHECK(caps_bound(caps_root_inside) == 0);
	CHECK(now("CapBnd") == caps_root_inside);
	CHECK(now("CapEff") & BIT(CAP_SYS_ADMIN)); /* it counts only after exec */
	CHECK(caps_bound(0) == 0 && now("CapBnd") == 0);
}

static void bounding_clears_the_ambient_set(void)
{
	t_own_namespaces(0);
	CHECK(caps_keep_over_exec() == 0 && now("CapAmb") != 0);
	CHECK(caps_bound(UINT64_MAX) == 0 && now("CapAmb") == 0);
	CHECK(caps_keep_over_exec() == 0 && now("CapAmb") != 0);
	CHECK(caps_bound(caps_root_inside) == 0 && now("CapAmb") == 0);
}

static void without_the_capability_the_bounding_set_stays(void)
{
	t_own_namespaces(0);
	CHECK(caps_set(0) == 0 && caps_bound(0) == -EPERM);
}

static void caps_set_gives_exactly_the_set(void)
{
	const uint64_t two = BIT(CAP_CHOWN) | BIT(CAP_CHECKPOINT_RESTORE);

	t_own_namespaces(0);
	CHECK(caps_keep_over_exec() == 0);
	CHECK(caps_set(two) == 0);
	CHECK(now("CapPrm") == two && now("CapEff") == two);
	CHECK(now("CapInh") == 0 && now("CapAmb") == 0);
}

static void dropped_capabilities_do_not_return(void)
{
	t_own_namespaces(0);
	CHECK(caps_set(BIT(CAP_CHOWN)) == 0);
	CHECK(caps_set(BIT(CAP_CHOWN) | BIT(CAP_SYS_ADMIN)) == -EPERM);
	CHECK(now("CapEff") == BIT(CAP_CHOWN));
	CHECK(caps_set(0) == 0 && now("CapPrm") == 0);
}

/* The effective set of a program executed by a user other than root. */
static uint64_t after_exec(void)
{
	auto_done(buf_done) struct buf text = BUF_INIT(64 * 1024);
	int p[2], st;
	pid_t pid;

	CHECK(pipe2(p, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		if (dup2(p[1], 1) == 1)
			execlp("cat", "cat", "/proc/self/status", NULL);
		_exit(1);
	}
	CHECK(close(p[1]) == 0 && io_read_all(p[0], &text) == 0);
	CHECK(waitpid(pid, &st, 0) == pid && st == 0);
	return line(text.data, "CapEff");
}

static void exec_keeps_capabilities_only_on_request(void)
{
	uint64_t all;

	t_own_namespaces(1000);
	all = now("CapEff");
	CHECK(all & BIT(CAP_SYS_ADMIN));
	CHECK(after_exec() == 0);
	CHECK(caps_keep_over_exec() == 0);
	CHECK(after_exec() == all);
}

static void root_inside_has_nothing_that_reaches_the_kernel(void)
{
	const uint64_t never = BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_MODULE) | BIT(CAP_SYS_RAWIO) |
			       BIT(CAP_SYS_PTRACE) | BIT(CAP_NET_ADMIN) | BIT(CAP_NET_RAW) |
			       BIT(CAP_MKNOD) | BIT(CAP_BPF) | BIT(CAP_PERFMON) |
			       BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_SYS_BOOT) | BIT(CAP_SYS_TIME) |
			       BIT(CAP_SYSLOG) | BIT(CAP_CHECKPOINT_RESTORE);

	CHECK((caps_root_inside & never) == 0);
}

T_MAIN(T(the_bounding_set_is_reduced_to_keep), T(bounding_clears_the_ambient_set),
       T(without_the_capability_the_bounding_set_stays), T(caps_set_gives_exactly_the_set),
       T(dropped_capabilities_do_not_return), T(exec_keeps_capabilities_only_on_request),
       T(root_inside_has_nothing_that_reaches_the_kernel))
