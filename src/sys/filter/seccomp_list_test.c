/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the list, the program made from it, and the kernel's behaviour with it. */
#include "sys/filter/seccomp_list.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "sys/filter/seccomp_arch.h"
#include "sys/filter/seccomp_filter.h"
#include "t.h"

enum { NUMBERS = 600, X32 = 0x40000000 };

static struct seccomp_program program;
static int steps; /* of the last run */

static uint32_t load(const struct seccomp_data *d, uint32_t at)
{
	uint32_t v;

	CHECK(at % 4 == 0 && at <= sizeof *d - 4);
	memcpy(&v, (const char *)d + at, sizeof v);
	return v;
}

/* The part of classic BPF that the program uses; any other instruction is a failure. */
static uint32_t run(const struct seccomp_data *d)
{
	uint32_t a = 0;

	steps = 0;
	for (int pc = 0; pc >= 0 && pc < program.n; pc++) {
		const struct sock_filter *f = &program.code[pc];

		steps++;
		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			a = load(d, f->k);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == f->k ? f->jt : f->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= f->k ? f->jt : f->jf;
			break;
		case BPF_JMP | BPF_JA:
			pc += (int)f->k;
			break;
		case BPF_RET | BPF_K:
			return f->k;
		default:
			t_fail(__FILE__, __LINE__, "an instruction that nobody expects");
		}
	}
	t_fail(__FILE__, __LINE__, "the program ends without a verdict");
}

static uint32_t call(uint32_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	struct seccomp_data d = { .nr = (int)nr,
				  .arch = SECCOMP_NATIVE_ARCH,
				  .args = { a0, a1, a2 } };

	return run(&d);
}

/* Looks up the answer in the list itself, row by row. */
static uint8_t answer_of(uint32_t nr)
{
	for (int i = 0; i < seccomp_ncalls; i++)
		if (seccomp_calls[i].nr == nr)
			return seccomp_calls[i].answer;
	return SECCOMP_ABSENT;
}

static uint8_t asked(uint8_t answer, const uint64_t *args)
{
	const struct seccomp_question *q = &seccomp_questions[answer - SECCOMP_ASK_FIRST];
	uint32_t v = (uint32_t)(args[q->arg] >> (q->high ? 32 : 0)) & q->mask;

	for (int i = 0; i < q->n; i++)
		if (v >= q->spans[i].first && v <= q->spans[i].last)
			return q->spans[i].answer;
	return q->other;
}

static uint32_t expected(uint32_t nr, const uint64_t *args)
{
	static const uint32_t of[] = {
		[SECCOMP_ABSENT] = SECCOMP_RET_ERRNO | ENOSYS,
		[SECCOMP_ALLOW] = SECCOMP_RET_ALLOW,
		[SECCOMP_REFUSE] = SECCOMP_RET_ERRNO | EPERM,
		[SECCOMP_UNKNOWN] = SECCOMP_RET_ERRNO | EINVAL,
		[SECCOMP_NO_PROTOCOL] = SECCOMP_RET_ERRNO | EPROTONOSUPPORT,
		[SECCOMP_PRETEND] = SECCOMP_RET_ERRNO,
	};
	uint8_t answer = answer_of(nr);

	while (answer >= SECCOMP_ASK_FIRST)
		answer = asked(answer, args);
	if (answer == SECCOMP_DEV || answer == SECCOMP_INIT || answer == SECCOMP_INIT_ABSENT)
		answer = SECCOMP_ALLOW;
	return of[answer];
}

/* Every edge of every question, with one less and one more, and noise in the upper half. */
static int values_of(int answer, uint64_t *out)
{
	const struct seccomp_question *q = &seccomp_questions[answer - SECCOMP_ASK_FIRST];
	int n = 0;

	for (int i = 0; i < q->n; i++)
		for (int d = -1; d <= 1; d++) {
			out[n++] = q->spans[i].first + (uint32_t)d;
			out[n++] = (uint32_t)(q->spans[i].last + (uint32_t)d) | 7ull << 32;
		}
	for (int bit = 0; bit < 32; bit++)
		out[n++] = 1u << bit;
	return n;
}

static int compare(uint32_t nr, const uint64_t *args)
{
	CHECK(call(nr, args[0], args[1], args[2]) == expected(nr, args));
	return 1;
}

static int compare_all_args(uint32_t nr)
{
	int n[3] = { 0 }, done = 0;
	uint64_t all[3][512] = { { 0 } };

	for (int q = SECCOMP_ASK_FIRST; q < SECCOMP_ANSWERS; q++) {
		int first = answer_of(nr), last = first;
		int arg = seccomp_questions[q - SECCOMP_ASK_FIRST].arg;

		if (first == SECCOMP_ASK_SOCKET)
			last = SECCOMP_ANSWERS - 1;
		else if (first == SECCOMP_ASK_PRLIMIT_PID)
			last = SECCOMP_ASK_PRLIMIT_HIGH;
		if (q < first || q > last)
			continue;
		n[arg] += values_of(q, all[arg] + n[arg]);
	}
	for (int i = 0; i < 3; i++)
		n[i] += n[i] == 0;
	for (int i = 0; i < n[0]; i++)
		for (int j = 0; j < n[1]; j++)
			for (int k = 0; k < n[2]; k++) {
				uint64_t args[] = { all[0][i], all[1][j], all[2][k] };

				done += compare(nr, args);
			}
	return done;
}

static void the_program_agrees_with_the_list(void)
{
	int done = 0;

	CHECK(seccomp_program_build(&program, false) == 0);
	for (uint32_t nr = 0; nr < NUMBERS; nr++)
		done += compare_all_args(nr);
	CHECK(done > 100000);
}

static void every_instruction_is_reached(void)
{
	static bool jumped[SECCOMP_PROGRAM_MOST + 1];

	/*
	 * Every range has its leaf: an instruction that no jump and no predecessor reaches is dead.
	 */
	CHECK(seccomp_program_build(&program, false) == 0);
	jumped[0] = true;
	for (int i = 0; i < program.n; i++) {
		const struct sock_filter *f = &program.code[i];
		bool ja = f->code == (BPF_JMP | BPF_JA), ret = f->code == (BPF_RET | BPF_K);

		CHECK(jumped[i]);
		if (ja)
			jumped[i + 1 + (int)f->k] = true;
		else if (!ret && BPF_CLASS(f->code) == BPF_JMP)
			jumped[i + 1 + f->jt] = jumped[i + 1 + f->jf] = true;
		else if (!ret)
			jumped[i + 1] = true;
	}
}

static void a_number_costs_few_steps(void)
{
	int most = 0, sum = 0;

	CHECK(seccomp_program_build(&program, false) == 0);
	for (uint32_t nr = 0; nr < 470; nr++) {
		(void)call(nr, 0, 0, 0);
		sum += steps;
		most = steps > most ? steps : most;
	}
	printf("# %d instructions, a call takes %d steps on average, %d at most\n", program.n,
	       sum / 470, most);
	CHECK(program.n < 512 && most <= 32);
}

static void each_number_is_listed_once(void)
{
	bool seen[NUMBERS] = { 0 };

	for (int i = 0; i < seccomp_ncalls; i++) {
		CHECK(seccomp_calls[i].nr < NUMBERS && !seen[seccomp_calls[i].nr]);
		seen[seccomp_calls[i].nr] = true;
	}
}

static void questions_are_in_order(void)
{
	for (int i = 0; i < (int)ARRAY_LEN(seccomp_questions); i++) {
		const struct seccomp_question *q = &seccomp_questions[i];

		CHECK(q->spans && q->n > 0 && q->mask && q->other < SECCOMP_ASK_FIRST);
		for (int s = 0; s < q->n; s++) {
			CHECK(q->spans[s].first <= q->spans[s].last);
			CHECK(s == 0 || q->spans[s].first > q->spans[s - 1].last);
			/* Jumps go forward only. */
			CHECK(q->spans[s].answer < SECCOMP_ASK_FIRST ||
			      q->spans[s].answer > SECCOMP_ASK_FIRST + i);
		}
	}
}

static void other_abis_are_killed(void)
{
	struct seccomp_data d = { .nr = SYS_read, .arch = 0x40000003 /* i386 */ };

	CHECK(seccomp_program_build(&program, false) == 0);
	CHECK(run(&d) == SECCOMP_RET_KILL_PROCESS);
	d.arch = 0;
	CHECK(run(&d) == SECCOMP_RET_KILL_PROCESS);
	for (uint32_t nr = 0; nr < NUMBERS; nr++)
		CHECK(call(nr | X32, 0, 0, 0) == (SECCOMP_RET_ERRNO | ENOSYS));
	CHECK(call(~0u, 0, 0, 0) == (SECCOMP_RET_ERRNO | ENOSYS));
}

/* With --nested: only namespaces and mounts are added. */
static void nesting_opens_namespaces_and_mounts_only(void)
{
	static const uint32_t ok = SECCOMP_RET_ALLOW, no = SECCOMP_RET_ERRNO | EPERM;
	static const uint32_t opened[] = { SYS_clone3,	      SYS_setns,       SYS_mount,
					   SYS_umount2,	      SYS_fsopen,      SYS_fsconfig,
					   SYS_fsmount,	      SYS_fspick,      SYS_open_tree,
					   SYS_move_mount,    SYS_pivot_root,  467,
					   SYS_mount_setattr, SYS_sethostname, SYS_setdomainname };
	uint32_t before[NUMBERS];
	int differ = 0;

	CHECK(seccomp_program_build(&program, false) == 0);
	for (uint32_t nr = 0; nr < NUMBERS; nr++)
		before[nr] = call(nr, 0, 0, 0);
	CHECK(seccomp_program_build(&program, true) == 0);
	for (size_t i = 0; i < ARRAY_LEN(opened); i++)
		CHECK(call(opened[i], 0, 0, 0) == ok);
	for (uint32_t nr = 0; nr < NUMBERS; nr++)
		differ += call(nr, 0, 0, 0) != before[nr];
	CHECK(differ == (int)ARRAY_LEN(opened) - 2 + 1); /* init had two; keyctl */
	CHECK(call(SYS_keyctl, 0, 0, 0) == (SECCOMP_RET_ERRNO | ENOSYS));
	CHECK(call(SYS_clone, SIGCHLD | CLONE_NEWUSER, 0, 0) == ok);
	CHECK(call(SYS_unshare, CLONE_NEWUSER, 0, 0) == ok);
	CHECK(call(SYS_socket, AF_PACKET, SOCK_RAW, 0) == no && call(SYS_bpf, 0, 0, 0) == no);
	CHECK(call(SYS_io_uring_setup, 0, 0, 0) == no &&
	      call(SYS_open_by_handle_at, 0, 0, 0) == no);
}

/* Verdicts that the list must never lose. */
static void important_calls_have_their_verdict(void)
{
	static const uint32_t ok = SECCOMP_RET_ALLOW, no = SECCOMP_RET_ERRNO | EPERM;

	CHECK(seccomp_program_build(&program, false) == 0);
	CHECK(call(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) == ok);
	CHECK(call(SYS_socket, AF_INET6, SOCK_DGRAM, IPPROTO_UDP) == ok);
	CHECK(call(SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP) == ok);
	CHECK(call(SYS_socket, AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6) == ok);
	CHECK(call(SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP) == no);
	CHECK(call(SYS_socket, AF_INET, SOCK_STREAM, 262 /* MPTCP */) == no);
	CHECK(call(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP) == no);
	CHECK(call(SYS_socket, AF_INET, SOCK_RAW, IPPROTO_TCP) == no);
	CHECK(call(SYS_socket, AF_UNIX | 1ull << 32, SOCK_STREAM, 0) == ok);
	CHECK(call(SYS_socket, AF_VSOCK, SOCK_STREAM, 0) == no);
	CHECK(call(SYS_socket, AF_NETLINK, SOCK_RAW, 0) == ok);
	CHECK(call(SYS_socket, AF_NETLINK, SOCK_RAW, 12 /* netfilter */) == no);
	CHECK(call(SYS_ioctl, 0, TIOCSTI | 5ull << 32, 0) == no);
	CHECK(call(SYS_ioctl, 0, TIOCGWINSZ, 0) == ok);
	CHECK(call(SYS_clone, SIGCHLD, 0, 0) == ok);
	CHECK(call(SYS_unshare, CLONE_FILES, 0, 0) == ok);
	CHECK(call(SYS_prctl, PR_SET_MM, 0, 0) == no && call(SYS_prctl, PR_SET_NAME, 0, 0) == ok);
	CHECK(call(SYS_personality, 0x0400000 /* READ_IMPLIES_EXEC */, 0, 0) == no);
	CHECK(call(SYS_prlimit64, 0, RLIMIT_NOFILE, 1) == ok);
	CHECK(call(SYS_prlimit64, 1 | 1ull << 32, RLIMIT_NOFILE, 1) == no);
	CHECK(call(SYS_prlimit64, 2, RLIMIT_NOFILE, 1) == ok);
	CHECK(call(SYS_prlimit64, 2, RLIMIT_CORE, 1) == SECCOMP_RET_ERRNO);
	CHECK(call(447 /* memfd_secret */, 0, 0, 0) == no);
	CHECK(call(SYS_ptrace, 0, 0, 0) == ok && call(SYS_setns, 0, 0, 0) == ok);
	CHECK(call(SYS_mount, 0, 0, 0) == no);
}

/* Uses invalid arguments, so that an allowed call does no harm. */
static int try(uint32_t nr)
{
	errno = 0;
	(void)syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L);
	return errno;
}

static int try_all_refused(int *errs)
{
	int n = 0;

	for (int i = 0; i < seccomp_ncalls; i++) {
		/* This call takes no argument that could be invalid. */
		if (seccomp_calls[i].answer == SECCOMP_REFUSE && seccomp_calls[i].nr != SYS_vhangup)
			errs[n++] = try(seccomp_calls[i].nr);
	}
	return n;
}

static void the_kernel_refuses_what_the_list_refuses(void)
{
	int before[NUMBERS], after[NUMBERS], n = try_all_refused(before), filtered = 0;
	pid_t pid;

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(seccomp_program_build(&program, false) == 0);
	CHECK(seccomp_program_install(&program) == 0);
	CHECK(try_all_refused(after) == n);
	for (int i = 0; i < n; i++) {
		CHECK(after[i] == EPERM);
		filtered += before[i] != EPERM;
	}
	/* Calls that fail with EPERM anyway, for lack of a capability, prove nothing. */
	printf("# of %d refused calls %d reached the kernel before\n", n, filtered);
	CHECK(n > 40 && filtered > 15);
	CHECK(try(SYS_read) == EBADF && try(511) == ENOSYS);
	CHECK(socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 && errno == EPERM);
	CHECK(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
	pid = fork();
	if (pid == 0)
		_exit(0);
	CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
}

#ifdef __x86_64__
static void the_32_bit_abi_kills(void)
{
	int st;
	pid_t pid = fork();

	if (pid == 0) {
		long r = 20; /* getpid */

		CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		CHECK(seccomp_program_build(&program, false) == 0);
		CHECK(seccomp_program_install(&program) == 0);
		CHECK(syscall(SYS_getpid | X32) < 0 && errno == ENOSYS);
		__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS);
}
#endif

static void without_the_right_it_is_refused(void)
{
	CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
	CHECK(seccomp_program_build(&program, false) == 0);
	CHECK(seccomp_program_install(&program) == -EACCES);
}

#ifdef __x86_64__
#define T_32_BIT T(the_32_bit_abi_kills),
#else
#define T_32_BIT
#endif

T_MAIN(T(the_program_agrees_with_the_list), T(every_instruction_is_reached),
       T(a_number_costs_few_steps), T(each_number_is_listed_once), T(questions_are_in_order),
       T(other_abis_are_killed), T(important_calls_have_their_verdict),
       T(nesting_opens_namespaces_and_mounts_only), T(the_kernel_refuses_what_the_list_refuses),
       T_32_BIT T(without_the_right_it_is_refused))
