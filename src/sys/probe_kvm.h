/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware virtualisation: not whether /dev/kvm is there, but whether a guest runs, and how fast.
 */
#pragma once

#include <stdint.h>

#include "sys/probe.h"

enum { PROBE_KVM_API = 12, PROBE_KVM_LIMIT_MS = 60 /* of CPU time */ };

struct probe_kvm {
	int open;
	bool group;	    /* members of its group may open it */
	int api;	    /* version, or -errno */
	int vm;		    /* making one, with memory and a CPU */
	int run;	    /* the guest reached its first port */
	bool finished;	    /* ...and the end of its loop within the limit */
	uint64_t guest_ns;  /* for the loop */
	uint64_t native_ns; /* for the same one here */
};

void probe_kvm(struct probe_kvm *ret);
