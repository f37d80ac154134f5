/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page of 16-bit code in a VM: an `out` to show that it runs, a loop, and `hlt`. We time the
 * loop against the same loop outside. A nested host without hardware support may accept every ioctl
 * and still interpret each instruction.
 */
#include "sys/probe/probe_kvm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "base/clock.h"

enum { PAGE = 4096, BASE = 0x1000, ROUNDS = 200000, TRIES = 3 };

static const uint8_t guest_code[] = {
	0xb0, 0x2a, 0xe6, 0x10,	      /* mov al, 42; out 0x10, al */
	0x66, 0xb9, 0x40, 0x0d, 3, 0, /* mov ecx, ROUNDS */
	0x66, 0x49, 0x75, 0xfc,	      /* dec ecx; jnz -4 */
	0xf4,			      /* hlt */
};
_Static_assert(ROUNDS == 0x030d40, "the guest's code has the number of rounds");

struct machine {
	int vm, cpu;
	struct kvm_run *run;
};

static int map_code(int vm)
{
	uint8_t *mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kvm_userspace_memory_region region = { .guest_phys_addr = BASE,
						      .memory_size = PAGE,
						      .userspace_addr = (uintptr_t)mem };

	if (mem == MAP_FAILED)
		return -errno;
	memcpy(mem, guest_code, sizeof guest_code);
	return ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) < 0 ? -errno : 0;
}

static int machine_new(int kvm, struct machine *m)
{
	int size, r;

	m->vm = ioctl(kvm, KVM_CREATE_VM, 0);
	if (m->vm < 0)
		return -errno;
	r = map_code(m->vm);
	if (r < 0)
		return r;
	m->cpu = ioctl(m->vm, KVM_CREATE_VCPU, 0);
	size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (m->cpu < 0 || size < (int)sizeof *m->run)
		return -errno;
	m->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, m->cpu, 0);
	return m->run == MAP_FAILED ? -errno : 0;
}

#ifdef __x86_64__
static int start_at_code(int cpu)
{
	struct kvm_regs regs = { .rip = BASE, .rflags = 2 };
	struct kvm_sregs sregs;

	if (ioctl(cpu, KVM_GET_SREGS, &sregs) < 0)
		return -errno;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	if (ioctl(cpu, KVM_SET_SREGS, &sregs) < 0 || ioctl(cpu, KVM_SET_REGS, &regs) < 0)
		return -errno;
	return 0;
}

static uint64_t native_loop(void)
{
	uint64_t start = clock_mono_ns();
	unsigned rounds = ROUNDS;

	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
	return clock_mono_ns() - start;
}

/* Time from the first port access to the end of the loop. 0: it failed, and f->run says why. */
static uint64_t guest_loop(struct probe_kvm *f, const struct machine *m)
{
	uint64_t start;
	int r = start_at_code(m->cpu);

	if (r == 0 && (ioctl(m->cpu, KVM_RUN, 0) < 0 || m->run->exit_reason != KVM_EXIT_IO))
		r = -EIO;
	f->run = r;
	if (r < 0)
		return 0;
	start = clock_mono_ns();
	if (ioctl(m->cpu, KVM_RUN, 0) < 0 || m->run->exit_reason != KVM_EXIT_HLT)
		f->run = -EIO;
	return f->run < 0 ? 0 : clock_mono_ns() - start;
}

/* Take the best of several runs: on a busy host other processes use the CPU in between. */
static void run_guest(struct probe_kvm *f, const struct machine *m)
{
	f->native_ns = UINT64_MAX;
	for (int i = 0; i < TRIES; i++) {
		uint64_t ns = native_loop();

		f->native_ns = ns < f->native_ns ? ns : f->native_ns;
	}
	for (int i = 0; i < TRIES; i++) {
		uint64_t ns = guest_loop(f, m);

		if (ns == 0)
			return;
		f->guest_ns = f->finished && f->guest_ns < ns ? f->guest_ns : ns;
		f->finished = true;
	}
}
#else
static void run_guest(struct probe_kvm *f, const struct machine *m)
{
	(void)m;
	f->run = PROBE_UNTRIED;
}
#endif

static void try_kvm(void *result, const void *arg)
{
	struct probe_kvm *f = result;
	struct machine m = { FD_NONE, FD_NONE, NULL };
	const struct itimerval limit = { .it_value = { .tv_usec = PROBE_KVM_LIMIT_MS * 1000 } };
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	(void)arg;
	f->open = kvm < 0 ? -errno : 0;
	if (kvm < 0)
		return;
	f->api = ioctl(kvm, KVM_GET_API_VERSION, 0);
	if (f->api < 0)
		f->api = -errno;
	if (f->api != PROBE_KVM_API)
		return;
	f->vm = machine_new(kvm, &m);
	if (f->vm < 0)
		return;
	f->run = -ETIMEDOUT;
	/* The signal kills us. */
	(void)setitimer(ITIMER_PROF, &limit, NULL);
	run_guest(f, &m);
}

void probe_kvm(struct probe_kvm *ret)
{
	struct stat st;

	*ret = (struct probe_kvm){
		.open = PROBE_UNTRIED, .api = -ENOENT, .vm = PROBE_UNTRIED, .run = PROBE_UNTRIED
	};
	ret->group = stat("/dev/kvm", &st) == 0 && (st.st_mode & 0060) == 0060;
	(void)probe_in_child(try_kvm, ret, sizeof *ret, NULL, PROBE_TIMEOUT_MS);
}
