/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "ops/doctor/doctor.h"

#define GROUP "Virtual machines"

/* A loop in a guest takes as long as on the host; an emulator needs a hundred times longer. */
enum { SLOW_FACTOR = 10, EXIT_NS = 2000000 };

enum doctor_kvm doctor_kvm(const struct probe_kvm *k)
{
	if (k->open != 0 || k->api != PROBE_KVM_API || k->vm != 0 || k->run < 0)
		return DOCTOR_KVM_NONE;
	if (k->run == PROBE_UNTRIED)
		return DOCTOR_KVM_RUNS;
	if (!k->finished || k->guest_ns > SLOW_FACTOR * k->native_ns + EXIT_NS)
		return DOCTOR_KVM_SLOW;
	return DOCTOR_KVM_RUNS;
}

static void not_open(const struct doctor_facts *f, struct checks *l)
{
	bool refused = f->kvm.open == -EACCES || f->kvm.open == -EPERM;
	struct check *c =
		check_add(l, GROUP, "KVM", CHECK_NOTE, "/dev/kvm: %s%s", strerror(-f->kvm.open),
			  f->cpu.vmx_svm ? ""
			  : refused	 ? "; whether a guest would run is not known"
					 : ", and this CPU offers no virtualisation");

	if (refused)
		check_fix(c,
			  f->kvm.group ? "sudo usermod -aG kvm %s, then log in again"
				       : "sudo setfacl -m u:%s:rw /dev/kvm",
			  f->subid.user);
	else if (f->cpu.vmx_svm)
		check_fix(c, "sudo modprobe kvm_intel || sudo modprobe kvm_amd");
	else if (f->cpu.virtual_)
		check_fix(c, "switch nested virtualisation on where this virtual machine runs");
	else
		check_fix(c, "switch virtualisation on in the firmware's setup");
}

void checks_vm(const struct doctor_facts *f, struct checks *l)
{
	const struct probe_kvm *k = &f->kvm;

	if (k->open != 0) {
		not_open(f, l);
		return;
	}
	switch (doctor_kvm(k)) {
	case DOCTOR_KVM_RUNS:
		check_add(l, GROUP, "KVM", CHECK_OK, "runs guests at full speed");
		return;
	case DOCTOR_KVM_SLOW:
		if (k->finished)
			check_add(l, GROUP, "KVM", CHECK_NOTE,
				  "runs, but slowly (interpreted): %llu times native",
				  (unsigned long long)(k->guest_ns /
						       (k->native_ns ? k->native_ns : 1)));
		else
			check_add(
				l, GROUP, "KVM", CHECK_NOTE,
				"runs, but slowly (interpreted): a loop of %llu us was not done within %d ms",
				(unsigned long long)(k->native_ns / NS_PER_US), PROBE_KVM_LIMIT_MS);
		return;
	case DOCTOR_KVM_NONE:
	default:
		check_add(l, GROUP, "KVM", CHECK_NOTE, "/dev/kvm is there, but no guest runs (%s)",
			  k->vm < 0    ? strerror(-k->vm)
			  : k->run < 0 ? strerror(-k->run)
				       : "wrong version of its interface");
	}
}
