/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU: its known weaknesses that are open here, and what it can do. */
#pragma once

#include "sys/probe.h"

struct probe_cpu {
	bool known;	      /* the kernel tells about weaknesses */
	char vulnerable[512]; /* names of those that are open, with a blank between */
	long smt;	      /* threads of one core share it; -1: not known */
	bool virtual_;	      /* we are in a virtual machine ourselves */
	bool vmx_svm;	      /* has instructions for virtual machines */
};

/* What the kernel says of one weakness: whether it is open. */
bool probe_cpu_is_open(const char *said);
/* Of the first "flags" line of /proc/cpuinfo. */
void probe_cpu_flags(struct str cpuinfo, struct probe_cpu *ret);
void probe_cpu(struct probe_cpu *ret);
