/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter/seccomp_command.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/filter/seccomp_arch.h"
#include "sys/filter/seccomp_list.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV /* Linux 5.19 */
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { MOST = 96 };

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

/* The call with any bit of the mask is for init only. */
static void add_flags(struct code *c, uint32_t nr, const struct seccomp_question *q, uint32_t user)
{
	uint32_t arg = (uint32_t)(offsetof(struct seccomp_data, args) + 8u * q->arg);

	code_add(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 6));
	code_add(c, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg));
	code_add(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1));
	code_add(c, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, user));
	code_add(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, q->mask, 0, 1));
	code_add(c, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
	code_add(c, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

static const struct seccomp_question *question_of(uint8_t answer)
{
	const struct seccomp_question *q =
		answer < SECCOMP_ASK_FIRST ? NULL : &seccomp_questions[answer - SECCOMP_ASK_FIRST];

	return q && q->other == SECCOMP_INIT ? q : NULL;
}

static void add_refusals(struct code *c, bool locked, bool nested, uint32_t user)
{
	for (int i = 0; i < seccomp_ncalls; i++) {
		const struct seccomp_call *call = &seccomp_calls[i];
		uint8_t answer = seccomp_answer_of(call, nested);

		if (question_of(answer))
			add_flags(c, call->nr, question_of(answer), user);
		else if (answer == SECCOMP_INIT_ABSENT)
			add_verdict(c, call->nr, SECCOMP_RET_ERRNO | ENOSYS);
		else if (answer == SECCOMP_INIT || (answer == SECCOMP_DEV && locked))
			add_verdict(c, call->nr, SECCOMP_RET_ERRNO | EPERM);
	}
}

static void build(struct code *c, bool locked, enum seccomp_listen listen, bool nested)
{
	uint32_t user = listen ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EPERM;

	/* The inherited list kills other ABIs. */
	code_add(c, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch)));
	code_add(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_NATIVE_ARCH, 1,
						 0));
	code_add(c, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	code_add(c, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr)));
	add_refusals(c, locked, nested, user);
	if (listen == SECCOMP_LISTEN_EXECS) {
		add_verdict(c, SYS_execve, SECCOMP_RET_USER_NOTIF);
		add_verdict(c, SYS_execveat, SECCOMP_RET_USER_NOTIF);
	}
	if (listen) {
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

int seccomp_command_install(bool locked, enum seccomp_listen listen, bool nested)
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
