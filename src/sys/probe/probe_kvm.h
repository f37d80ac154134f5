/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware virtualisation: run a small guest and measure its speed, not just open /dev/kvm. */
#pragma once

#include <stdint.h>

#include "sys/probe/probe.h"

enum { PROBE_KVM_API = 12, PROBE_KVM_LIMIT_MS = 60 /* of CPU time */ };

struct probe_kvm {
	int open;
	bool group;	    /* members of its group may open it */
	int api;	    /* version, or -errno */
	int vm;		    /* making a VM with memory and a CPU */
	int run;	    /* the guest reached its first port */
	bool finished;	    /* the guest finished its loop within the limit */
	uint64_t guest_ns;  /* time of the loop in the guest */
	uint64_t native_ns; /* time of the same loop on the host */
};

void probe_kvm(struct probe_kvm *ret);
