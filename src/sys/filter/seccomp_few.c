/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter/seccomp_few.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/filter/seccomp_arch.h"

enum { MOST = 256, TYPE_MASK = 0xf };

struct program {
	struct sock_filter code[MOST];
	unsigned short n;
};

static void program_put(struct program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (p->n < MOST)
		p->code[p->n] = (struct sock_filter)BPF_JUMP(code, k, jt, jf);
	p->n++;
}

static void load(struct program *p, size_t offset)
{
	program_put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(struct program *p, uint32_t verdict)
{
	program_put(p, BPF_RET | BPF_K, verdict, 0, 0);
}

static void each(struct program *p, const uint16_t *calls, int n, uint32_t verdict)
{
	for (int i = 0; i < n; i++) {
		program_put(p, BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		answer(p, verdict);
	}
}

/* socket(AF_INET or AF_INET6, SOCK_STREAM or SOCK_DGRAM, …) */
static void check_socket(struct program *p)
{
	program_put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 9);
	load(p, offsetof(struct seccomp_data, args[0]));
	program_put(p, BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0);
	program_put(p, BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0);
	answer(p, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
	load(p, offsetof(struct seccomp_data, args[1]));
	program_put(p, BPF_ALU | BPF_AND | BPF_K, TYPE_MASK, 0, 0);
	program_put(p, BPF_JMP | BPF_JGT | BPF_K, SOCK_DGRAM, 0, 1);
	answer(p, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
	answer(p, SECCOMP_RET_ALLOW);
}

/* The kernel reads the flags of sendto(2) and sendmsg(2) from the register's lower half. */
static void check_send(struct program *p, uint32_t call, size_t flags)
{
	program_put(p, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
	load(p, flags);
	program_put(p, BPF_JMP | BPF_JSET | BPF_K, MSG_FASTOPEN, 0, 1);
	answer(p, SECCOMP_RET_ERRNO | EPERM);
	answer(p, SECCOMP_RET_ALLOW);
}

int seccomp_few_install(const struct seccomp_few *f)
{
	static const uint16_t dialling[] = { SYS_socket, SYS_connect, SYS_bind, SYS_listen,
					     SYS_sendmmsg };
	struct program p = { .n = 0 };
	struct sock_fprog prog = { .filter = p.code };

	load(&p, offsetof(struct seccomp_data, arch));
	program_put(&p, BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_NATIVE_ARCH, 1, 0);
	answer(&p, SECCOMP_RET_KILL_PROCESS);
	load(&p, offsetof(struct seccomp_data, nr));
	check_send(&p, SYS_sendto, offsetof(struct seccomp_data, args[3]));
	check_send(&p, SYS_sendmsg, offsetof(struct seccomp_data, args[2]));
	if (f->dials)
		check_socket(&p);
	else
		each(&p, dialling, ARRAY_LEN(dialling), SECCOMP_RET_ERRNO | EPERM);
	each(&p, f->allow, f->nallow, SECCOMP_RET_ALLOW);
	each(&p, f->absent, f->nabsent, SECCOMP_RET_ERRNO | ENOENT);
	answer(&p, SECCOMP_RET_ERRNO | ENOSYS);
	if (p.n > MOST)
		return -E2BIG;
	prog.len = p.n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}
