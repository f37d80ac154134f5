/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/filter/seccomp_filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/filter/seccomp_arch.h"
#include "sys/filter/seccomp_list.h"

enum { NUMBERS = 512, EDGES = 256, JUMP_MOST = 255 };

/* Valid from this value up to the next edge. */
struct edge {
	uint32_t from;
	uint8_t answer;
};

struct edges {
	struct edge at[EDGES];
	int n;
};

struct builder {
	struct seccomp_program *p;
	int start[SECCOMP_ANSWERS]; /* start of each question */
	bool failed;
};

static int emit(struct builder *b, uint16_t code, uint32_t k)
{
	if (b->p->n == SECCOMP_PROGRAM_MOST) {
		b->failed = true;
		return 0;
	}
	b->p->code[b->p->n] = (struct sock_filter)BPF_STMT(code, k);
	return b->p->n++;
}

/* seccomp_command.h handles what only some commands may do. */
static uint32_t verdict(uint8_t answer)
{
	static const uint16_t errors[SECCOMP_ASK_FIRST] = {
		[SECCOMP_ABSENT] = ENOSYS,  [SECCOMP_REFUSE] = EPERM,
		[SECCOMP_UNKNOWN] = EINVAL, [SECCOMP_NO_PROTOCOL] = EPROTONOSUPPORT,
		[SECCOMP_PRETEND] = 0,
	};

	if (answer == SECCOMP_ALLOW || answer == SECCOMP_DEV || answer == SECCOMP_INIT ||
	    answer == SECCOMP_INIT_ABSENT)
		return SECCOMP_RET_ALLOW;
	return SECCOMP_RET_ERRNO | errors[answer];
}

/* Until every question has its place, a jump to a question holds the answer as its distance. */
static void emit_answer(struct builder *b, uint8_t answer)
{
	if (answer < SECCOMP_ASK_FIRST)
		(void)emit(b, BPF_RET | BPF_K, verdict(answer));
	else
		(void)emit(b, BPF_JMP | BPF_JA, answer);
}

static void emit_search(struct builder *b, const struct edge *e, int n)
{
	int half = n / 2, at, left;

	if (n == 1) {
		emit_answer(b, e->answer);
		return;
	}
	at = emit(b, BPF_JMP | BPF_JGE | BPF_K, e[half].from);
	emit_search(b, e, half);
	left = b->p->n - at - 1;
	b->failed |= left > JUMP_MOST;
	b->p->code[at].jt = (uint8_t)left;
	emit_search(b, e + half, n - half);
}

static void add_edge(struct edges *e, uint32_t from, uint8_t answer)
{
	if (e->n && e->at[e->n - 1].answer == answer)
		return;
	if (e->n < EDGES)
		e->at[e->n] = (struct edge){ from, answer };
	e->n++;
}

static void emit_edges(struct builder *b, const struct edges *e)
{
	if (e->n > EDGES)
		b->failed = true;
	else
		emit_search(b, e->at, e->n);
}

static void emit_numbers(struct builder *b, bool nested)
{
	uint8_t answers[NUMBERS] = { 0 };
	struct edges e = { .n = 0 };

	for (int i = 0; i < seccomp_ncalls; i++) {
		if (seccomp_calls[i].nr >= NUMBERS - 1)
			b->failed = true;
		else
			answers[seccomp_calls[i].nr] = seccomp_answer_of(&seccomp_calls[i], nested);
	}
	/* The last edge covers every higher number and the x32 ABI: ABSENT. */
	for (uint32_t nr = 0; nr < NUMBERS; nr++)
		add_edge(&e, nr, answers[nr]);
	emit_edges(b, &e);
}

static void emit_question(struct builder *b, uint8_t answer)
{
	const struct seccomp_question *q = &seccomp_questions[answer - SECCOMP_ASK_FIRST];
	uint32_t half =
		(uint32_t)(offsetof(struct seccomp_data, args) + 8u * q->arg + 4u * q->high);
	struct edges e = { .n = 0 };
	uint32_t next = 0;

	b->start[answer] = b->p->n;
	(void)emit(b, BPF_LD | BPF_W | BPF_ABS, half);
	if (q->mask != ~0u)
		(void)emit(b, BPF_ALU | BPF_AND | BPF_K, q->mask);
	for (int i = 0; i < q->n; i++) {
		const struct seccomp_span *s = &q->spans[i];

		if (i == 0 ? s->first > 0 : s->first > next)
			add_edge(&e, next, q->other);
		add_edge(&e, s->first, s->answer);
		next = s->last + 1;
	}
	if (next != 0)
		add_edge(&e, next, q->other);
	emit_edges(b, &e);
}

static void place_jumps(struct builder *b)
{
	for (int i = 0; i < b->p->n; i++) {
		struct sock_filter *f = &b->p->code[i];

		if (f->code == (BPF_JMP | BPF_JA))
			f->k = (uint32_t)(b->start[f->k] - i - 1);
	}
}

int seccomp_program_build(struct seccomp_program *p, bool nested)
{
	struct builder b = { .p = p };
	int at;

	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half comes first");
	p->n = 0;
	(void)emit(&b, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	at = emit(&b, BPF_JMP | BPF_JEQ | BPF_K, SECCOMP_NATIVE_ARCH);
	p->code[at].jt = 1;
	(void)emit(&b, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	(void)emit(&b, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	emit_numbers(&b, nested);
	for (int ask = SECCOMP_ASK_FIRST; ask < SECCOMP_ANSWERS; ask++)
		emit_question(&b, (uint8_t)ask);
	place_jumps(&b);
	return b.failed ? -E2BIG : 0;
}

int seccomp_program_install(struct seccomp_program *p)
{
	struct sock_fprog prog = { .len = (unsigned short)p->n, .filter = p->code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}
