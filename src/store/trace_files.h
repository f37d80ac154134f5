/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of traces (base/trace_name.h): in sandboxes/ID for an existing sandbox, in ended/ for
 * an ended one. A sandbox can end at any time, so both places are searched.
 */
#pragma once

#include <stdint.h>

#include "store/state.h"

/* The segment that starts at this offset. A descriptor, or -errno: -ENOENT if there is none. */
int trace_file_open(int state_fd, const char *id, uint64_t start);
/*
 * The segment that contains this offset, or the first after it: older segments may be deleted. Sets
 * *start to its first offset. A descriptor, or -errno.
 */
int trace_file_find(int state_fd, const char *id, uint64_t offset, uint64_t *start);
/* The last segment. */
int trace_file_last(int state_fd, const char *id, uint64_t *start);

/* The record of an end that is missing in the trace (store/end_note.h). */
#define END_NOTE "end.json"
