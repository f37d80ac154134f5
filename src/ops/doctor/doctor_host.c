/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "ops/doctor/doctor.h"

#define GROUP "Host"

static void cpu(const struct probe_cpu *p, struct checks *l)
{
	struct check *c;

	if (!p->known)
		check_add(l, GROUP, "CPU weaknesses", CHECK_NOTE, "the kernel does not tell");
	else if (!p->vulnerable[0])
		check_add(l, GROUP, "CPU weaknesses", CHECK_OK, "none is open");
	else {
		c = check_add(l, GROUP, "CPU weaknesses", CHECK_NOTE, "open: %s", p->vulnerable);
		check_fix(
			c,
			p->virtual_
				? "ask whoever runs this virtual machine for a patched CPU model"
				: "sudo apt-get install amd64-microcode intel-microcode, boot without "
				  "mitigations=off");
	}
	if (p->smt > 0) {
		c = check_add(l, GROUP, "SMT", CHECK_NOTE,
			      "on: sandboxes on one core can watch each other");
		check_fix(c, "for tenants who do not trust each other: echo off | sudo tee "
			     "/sys/devices/system/cpu/smt/control");
	} else {
		check_add(l, GROUP, "SMT", CHECK_OK, p->smt < 0 ? "not known" : "off");
	}
}

static void memory(const struct probe_knobs *k, struct checks *l)
{
	if (k->swap)
		check_fix(check_add(l, GROUP, "swap", CHECK_NOTE,
				    "on: memory of sandboxes may reach the disk"),
			  "sudo swapoff -a");
	else
		check_add(l, GROUP, "swap", CHECK_OK, "off");
	if (k->ksm == 1)
		check_fix(check_add(l, GROUP, "KSM", CHECK_NOTE,
				    "on: equal pages are merged, which can be measured"),
			  "echo 2 | sudo tee /sys/kernel/mm/ksm/run");
	else
		check_add(l, GROUP, "KSM", CHECK_OK, k->ksm < 0 ? "not in this kernel" : "off");
}

/* Each sysctl fails only at this value. */
static void sysctls(const struct probe_knobs *k, struct checks *l)
{
	const struct {
		const char *name;
		long value, bad;
		const char *finding, *fix;
	} rows[] = {
		{ "dmesg", k->dmesg_restrict, 0, "any user can read the kernel's log",
		  "kernel.dmesg_restrict=1" },
		{ "ptrace", k->ptrace_scope, 0, "processes of one user can attach to each other",
		  "kernel.yama.ptrace_scope=1" },
		{ "bpf", k->bpf_disabled, 0, "any user can load programs into the kernel",
		  "kernel.unprivileged_bpf_disabled=1" },
		{ "io_uring", k->io_uring_disabled, 0, "any user outside of sandboxes can use it",
		  "kernel.io_uring_disabled=1" },
		{ "TIOCSTI", k->tiocsti, 1, "programs can type into their terminal",
		  "dev.tty.legacy_tiocsti=0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].value == rows[i].bad)
			check_fix(check_add(l, GROUP, rows[i].name, CHECK_NOTE, "%s",
					    rows[i].finding),
				  "sudo sysctl -w %s", rows[i].fix);
		else
			check_add(l, GROUP, rows[i].name, CHECK_OK, "%s",
				  rows[i].value < 0 ? "no such setting here" : "restricted");
	}
}

static void modules(const struct probe_knobs *k, struct checks *l)
{
	struct check *c;

	if (!k->modules[0]) {
		check_add(l, GROUP, "modules", CHECK_OK, "no risky family can be loaded");
		return;
	}
	c = check_add(l, GROUP, "modules", CHECK_NOTE, "any user can have these loaded: %s",
		      k->modules);
	check_fix(c, "printf 'install %%s /bin/false\\n' %s | sudo tee /etc/modprobe.d/cay.conf",
		  k->modules);
}

/*
 * A core limit of 1 stops the kernel from starting the core helper for a crash in a sandbox; a
 * limit of 0 does not. No limit stops the kernel from connecting to a core server.
 */
static void core_dumps(const struct doctor_facts *f, struct checks *l)
{
	const struct probe_knobs *k = &f->knobs;

	if (!k->core_helper[0])
		check_add(l, GROUP, "core dumps", CHECK_OK, "start no program");
	else if (!k->core_socket && f->limits.core > 0)
		check_add(l, GROUP, "core dumps", CHECK_OK,
			  "start %s for crashes outside of sandboxes only", k->core_helper);
	else
		check_fix(check_add(l, GROUP, "core dumps", CHECK_NOTE,
				    k->core_socket
					    ? "every crash, in a sandbox too, is told to %s outside"
					    : "every crash, in a sandbox too, starts %s as root "
					      "outside: the hard limit on core files is 0",
				    k->core_helper),
			  "sudo sysctl -w kernel.core_pattern=core");
}

void checks_host(const struct doctor_facts *f, struct checks *l)
{
	cpu(&f->cpu, l);
	memory(&f->knobs, l);
	core_dumps(f, l);
	sysctls(&f->knobs, l);
	modules(&f->knobs, l);
}
