/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a trace is what its sandbox wrote: every line an event, in sequence, of one
 * sandbox, each with the hash of the line before. The file is read once, with flat memory.
 *
 * The chain alone cannot tell that the last events were cut off, or that everything was
 * written anew with new hashes. A head, told by the living sandbox, can.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"

struct trace_head {
	uint64_t seq;
	char hash[SHA256_HEX];
};

struct trace_summary {
	char sandbox[32];
	struct trace_head head; /* of the last event; seq 0: the trace is empty */
};

/*
 * sandbox: the id that every event must have, or NULL: that of the first. head: where given,
 * the event with this number must be there and have this hash; what comes after it is
 * checked too, but its last line may be unfinished.
 *
 * FAILED, with the line and what is wrong there.
 */
int trace_verify(int fd, const char *sandbox, const struct trace_head *head,
		 struct trace_summary *ret, struct err *e);
