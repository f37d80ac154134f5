/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the trace of a sandbox that runs, was lost, or has ended. */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "store/state.h"
#include "trace/verify.h"

struct trace_file {
	struct state state;
	int fd; /* of the trace, read-only */
	char id[ID_SIZE];
	bool has_head; /* the running sandbox told how its trace ends */
	struct trace_head head;
	char note[sizeof((struct err *)0)->msg + 64]; /* why there is no head although it runs */
};

/*
 * ref: id, name or a unique prefix of an id; of ended sandboxes id or prefix only. A running
 * sandbox is asked first to write every event up to now.
 */
int trace_file_open(const char *ref, struct trace_file *ret, struct err *e);
void trace_file_done(struct trace_file *f);
DEFINE_AUTO(struct trace_file, trace_file_done)
bool trace_file_is_alive(const struct trace_file *f);
