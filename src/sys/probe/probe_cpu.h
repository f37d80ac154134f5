/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU: its unmitigated vulnerabilities and its features. */
#pragma once

#include "sys/probe/probe.h"

struct probe_cpu {
	bool known;	      /* the kernel reports vulnerabilities */
	char vulnerable[512]; /* names of unmitigated vulnerabilities, separated by blanks */
	long smt;	      /* hyper-threading; -1: unknown */
	bool virtual_;	      /* we run in a virtual machine */
	bool vmx_svm;	      /* has instructions for virtual machines */
};

/* True if the kernel's text says that a vulnerability is unmitigated. */
bool probe_cpu_is_open(const char *said);
/* Parse the first "flags" line of /proc/cpuinfo. */
void probe_cpu_flags(struct str cpuinfo, struct probe_cpu *ret);
void probe_cpu(struct probe_cpu *ret);
