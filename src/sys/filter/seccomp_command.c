/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter/seccomp_command.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/filter/seccomp_arch.h"
#include "sys/filter/seccomp_list.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV /* Linux 5.19 */
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { MOST = 64 };

struct code {
	struct sock_filter at[MOST];
	unsigned short n;
};

static void code_add(struct code *c, struct sock_filter f)
{
	if (c->n < MOST)
		c->at[c->n] = f;
	c->n++;
}

static void add_verdict(struct code *c, uint32_t nr, uint32_t verdict)
{
	code_add(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1));
	code_add(c, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

static void add_refusals(struct code *c, bool locked, bool nested)
{
	for (int i = 0; i < seccomp_ncalls; i++) {
		const struct seccomp_call *call = &seccomp_calls[i];

		uint8_t answer = seccomp_answer_of(call, nested);

		if (answer == SECCOMP_INIT_ABSENT)
			add_verdict(c, call->nr, SECCOMP_RET_ERRNO | ENOSYS);
		else if (answer == SECCOMP_INIT || (answer == SECCOMP_DEV && locked))
			add_verdict(c, call->nr, SECCOMP_RET_ERRNO | EPERM);
	}
}

static void build(struct code *c, bool locked, bool listen, bool nested)
{
	/* The inherited list kills other ABIs. */
	code_add(c, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch)));
	code_add(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_NATIVE_ARCH, 1,
						 0));
	code_add(c, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	code_add(c, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr)));
	add_refusals(c, locked, nested);
	if (listen) {
		add_verdict(c, SYS_execve, SECCOMP_RET_USER_NOTIF);
		add_verdict(c, SYS_execveat, SECCOMP_RET_USER_NOTIF);
#ifdef SYS_rename
		add_verdict(c, SYS_rename, SECCOMP_RET_USER_NOTIF);
#endif
		add_verdict(c, SYS_renameat, SECCOMP_RET_USER_NOTIF);
		add_verdict(c, SYS_renameat2, SECCOMP_RET_USER_NOTIF);
	}
	code_add(c, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

static int install(struct code *c, unsigned long flags)
{
	struct sock_fprog prog = { .len = c->n, .filter = c->at };
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);

	return fd < 0 ? -errno : (int)fd;
}

int seccomp_command_install(bool locked, bool listen, bool nested)
{
	/*
	 * Without the second flag (Linux 5.19), a signal or the stop that the warden requests would
	 * end the system call before the warden has answered.
	 */
	unsigned long flags =
		listen ? SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
		       : 0;
	struct code c = { .n = 0 };

	build(&c, locked, listen, nested);
	return c.n > MOST ? -E2BIG : install(&c, flags);
}
