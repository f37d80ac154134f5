/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a sandbox whose warden could not write it to the trace, because it was killed or the
 * machine went down. Whoever finds the sandbox dead writes a note beside the trace: another process
 * must not write to a chain that only the warden can vouch for.
 */
#pragma once

#include <jansson.h>

#include "store/state.h"

/* Write the note for a dead sandbox that has none. Its lock is held. */
void end_note_write(const struct state *s, const char *id);
/* The note of a dead or ended sandbox: an object with time, cause, reason and log; or NULL. */
json_t *end_note_read(const struct state *s, const char *id);
